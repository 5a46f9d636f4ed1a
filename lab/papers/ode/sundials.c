/* The adaptive methods of SUNDIALS, which return after each accepted step. */
#include <arkode/arkode_erkstep.h>
#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

#include <string.h>

#include "base/core/error.h"
#include "lab/papers/ode/adaptive.h"
#include "lab/papers/ode/method.h"

typedef struct solver {
    att_ode_advance *run;
    SUNContext sundials;
    N_Vector state;
    SUNMatrix matrix;
    SUNLinearSolver linear;
    void *memory;
    double *jacobian;   /* [size, size] */
    att_status failure; /* of f or its Jacobian */
    bool undefined;     /* f or its Jacobian was not finite during this step */
} solver;

/* A positive result asks SUNDIALS to try a smaller step: f may be undefined at a trial point only. */
static int failed(solver *s, att_status status)
{
    s->failure = status;
    s->undefined = s->undefined || status == ATT_ERR_NONFINITE;
    return status == ATT_OK ? 0 : status == ATT_ERR_NONFINITE ? 1 : -1;
}

static int rate(double t, N_Vector u, N_Vector du, void *user)
{
    solver *s = user;
    return failed(s, att_ode_rate(s->run->ode, t, N_VGetArrayPointer(u), N_VGetArrayPointer(du)));
}

static int jacobian(double t, N_Vector u, N_Vector du, SUNMatrix matrix, void *user, N_Vector a, N_Vector b, N_Vector c)
{
    (void)du, (void)a, (void)b, (void)c;
    solver *s = user;
    int size = s->run->ode->info.size;
    att_status status = att_ode_jacobian(s->run->ode, t, N_VGetArrayPointer(u), s->jacobian);
    for (int j = 0; j < size && status == ATT_OK; j++)
        for (int i = 0; i < size; i++)
            SUNDenseMatrix_Column(matrix, j)[i] = s->jacobian[(size_t)i * (size_t)size + (size_t)j];
    return failed(s, status);
}

/* SUNDIALS prints its messages unless it gets a handler. */
static void ignore(int code, const char *module, const char *function, char *message, void *user)
{
    (void)code, (void)module, (void)function, (void)message, (void)user;
}

static att_status start(att_ode_advance *run, solver *s)
{
    *s = (solver){.run = run};
    att_ode *ode = run->ode;
    if (SUNContext_Create(NULL, &s->sundials) != 0)
        return att_fail(ode->context, ATT_ERR_INTERNAL, "%s: SUNDIALS could not be started", ode->info.name);
    s->state = N_VNew_Serial(ode->info.size, s->sundials);
    if (!s->state)
        return att_fail_memory(ode->context, (size_t)ode->info.size * sizeof(double), ode->info.name);
    memcpy(N_VGetArrayPointer(s->state), ode->initial, (size_t)ode->info.size * sizeof(double));
    return ATT_OK;
}

static void finish(solver *s)
{
    if (s->linear)
        SUNLinSolFree(s->linear);
    if (s->matrix)
        SUNMatDestroy(s->matrix);
    if (s->state)
        N_VDestroy(s->state);
    if (s->sundials)
        SUNContext_Free(&s->sundials);
    att_free(s->run->ode->context, s->jacobian);
}

static att_status fail_solver(const solver *s, const char *what, int code)
{
    const att_ode *ode = s->run->ode;
    if (s->failure != ATT_OK)
        return s->failure;
    return att_fail(ode->context, ATT_ERR_INTERNAL, "%s: %s failed at t = %g (code %d)", ode->info.name, what,
                    s->run->trajectory->t, code);
}

/* Steps until the end of the interval. evolve() makes one step and stores the time that it reached. */
static att_status step(solver *s, const char *what, int (*evolve)(solver *s, double *t))
{
    while (!att_ode_is_finished(s->run)) {
        double before = s->run->trajectory->t, t = before;
        s->undefined = false;
        int code = evolve(s, &t);
        if (code < 0)
            return fail_solver(s, what, code);
        if (!(t > before) && s->undefined)
            return ATT_ERR_NONFINITE; /* the message is that of f */
        s->run->trajectory->diverged = !(t > before);
        if (s->run->trajectory->diverged)
            break;
        ATT_TRY(att_ode_accept(s->run, t - before, N_VGetArrayPointer(s->state)));
        s->run->trajectory->t = t;
    }
    return ATT_OK;
}

/* --- RKF45 -------------------------------------------------------------------------------------------------------- */

static int evolve_rkf45(solver *s, double *t)
{
    return ERKStepEvolve(s->memory, s->run->ode->info.end, s->state, t, ARK_ONE_STEP);
}

static int set_up_rkf45(solver *s)
{
    const att_ode_options *o = s->run->options;
    s->memory = ERKStepCreate(rate, s->run->ode->info.start, s->state, s->sundials);
    if (!s->memory)
        return ARK_MEM_FAIL;
    int code = ERKStepSetErrHandlerFn(s->memory, ignore, NULL);
    if (code == 0)
        code = ERKStepSStolerances(s->memory, o->rtol, o->atol);
    if (code == 0)
        code = ERKStepSetUserData(s->memory, s);
    if (code == 0)
        code = ERKStepSetTableNum(s->memory, ARKODE_FEHLBERG_6_4_5);
    return code == 0 ? ERKStepSetStopTime(s->memory, s->run->ode->info.end) : code;
}

static void count_rkf45(const solver *s)
{
    long errors = 0, calls = 0;
    ERKStepGetNumErrTestFails(s->memory, &errors);
    ERKStepGetNumRhsEvals(s->memory, &calls);
    s->run->trajectory->rejected = errors;
    s->run->trajectory->rate_calls = calls;
}

static att_status run_rkf45(att_ode_advance *run)
{
    solver s;
    att_status status = start(run, &s);
    int code = status == ATT_OK ? set_up_rkf45(&s) : 0;
    if (code != 0)
        status = fail_solver(&s, "setting up RKF45", code);
    if (status == ATT_OK)
        status = step(&s, "RKF45", evolve_rkf45);
    if (s.memory) {
        count_rkf45(&s);
        ERKStepFree(&s.memory);
    }
    finish(&s);
    return status;
}

/* --- BDF ---------------------------------------------------------------------------------------------------------- */

static int evolve_bdf(solver *s, double *t)
{
    return CVode(s->memory, s->run->ode->info.end, s->state, t, CV_ONE_STEP);
}

static int set_up_bdf(solver *s)
{
    const att_ode_options *o = s->run->options;
    size_t size = (size_t)s->run->ode->info.size;
    s->jacobian = att_allocate_array(s->run->ode->context, size * size, sizeof *s->jacobian);
    s->matrix = SUNDenseMatrix((sunindextype)size, (sunindextype)size, s->sundials);
    s->linear = s->matrix ? SUNLinSol_Dense(s->state, s->matrix, s->sundials) : NULL;
    s->memory = CVodeCreate(CV_BDF, s->sundials);
    if (!s->jacobian || !s->linear || !s->memory)
        return CV_MEM_FAIL;
    int code = CVodeSetErrHandlerFn(s->memory, ignore, NULL);
    if (code == 0)
        code = CVodeInit(s->memory, rate, s->run->ode->info.start, s->state);
    if (code == 0)
        code = CVodeSStolerances(s->memory, o->rtol, o->atol);
    if (code == 0)
        code = CVodeSetUserData(s->memory, s);
    if (code == 0)
        code = CVodeSetLinearSolver(s->memory, s->linear, s->matrix);
    if (code == 0)
        code = CVodeSetJacFn(s->memory, jacobian);
    return code == 0 ? CVodeSetStopTime(s->memory, s->run->ode->info.end) : code;
}

static void count_bdf(const solver *s)
{
    long errors = 0, failures = 0, calls = 0;
    CVodeGetNumErrTestFails(s->memory, &errors);
    CVodeGetNumNonlinSolvConvFails(s->memory, &failures);
    CVodeGetNumRhsEvals(s->memory, &calls);
    s->run->trajectory->rejected = errors + failures;
    s->run->trajectory->rate_calls = calls;
}

static att_status run_bdf(att_ode_advance *run)
{
    solver s;
    att_status status = start(run, &s);
    int code = status == ATT_OK ? set_up_bdf(&s) : 0;
    if (code != 0)
        status = fail_solver(&s, "setting up BDF", code);
    if (status == ATT_OK)
        status = step(&s, "BDF", evolve_bdf);
    if (s.memory) {
        count_bdf(&s);
        CVodeFree(&s.memory);
    }
    finish(&s);
    return status;
}

const att_ode_method att_ode_method_rkf45 = {.info = {ATT_ODE_RKF45_INFO}, .run = run_rkf45};
const att_ode_method att_ode_method_bdf = {.info = {ATT_ODE_BDF_INFO}, .run = run_bdf};
