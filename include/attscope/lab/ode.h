/* attscope/lab/ode.h - stiff ordinary differential equations: how the step size of a method follows the stiffness
 * index.
 *
 * A residual network x_{t+1} = x_t + f(x_t) dt is forward Euler for du/dt = f(u) (Huang et al., "Understanding
 * Self-attention Mechanism via Dynamical System Perspective", ICCV 2023). This part measures the classical side of the
 * analogy. Along a trajectory u_0, u_1, ... with steps h_i = t_{i+1} - t_i:
 *
 *   stiffness index SI       max_j |Re lambda_j|, where lambda_j are the eigenvalues of the Jacobian J of f at u_i
 *   stiffness-aware index    SAI = |(u_{i+1} - u_i) / h_i| / |u_i|; simplified: without the division by |u_i|
 *   NSI zeta of the states   reading unit: |u_{i+1} - u_i| / |u_i| = h_i SAI. The reading attention divides by the step
 *                            h_i, which is what a gate is in the paper, and is SAI itself
 *
 * Norms are Euclidean. An explicit method is stable on a negative real eigenvalue lambda if h |lambda| is at most its
 * stability limit: 2 for forward Euler. So h may be at most limit / SI if the eigenvalues are real and negative.
 */
#ifndef ATTSCOPE_LAB_ODE_H
#define ATTSCOPE_LAB_ODE_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ATT_ODE_MOST_POINTS = 1024,   /* of the heat equation */
    ATT_ODE_MOST_MATRIX = 256,    /* rows of a matrix from a file */
    ATT_ODE_MOST_EQUATIONS = 64,  /* of a system from a file */
    ATT_ODE_MOST_CONSTANTS = 64,  /* in such a file */
    ATT_ODE_MOST_STEPS = 1000000, /* of one trajectory */
};

/* --- systems ------------------------------------------------------------------------------------------------------ */

/* A system du/dt = f(t, u) with its initial value. It belongs to one thread at a time. */
typedef struct att_ode att_ode;

typedef struct att_ode_info {
    const char *name;    /* "heat", or the path of the file */
    const char *formula; /* f and the initial value, one line */
    const char *source;
    int size;          /* components of u */
    double start, end; /* the interval of t */
    bool constant;     /* J depends neither on t nor on u */
    bool exact;        /* the solution is known in closed form */
} att_ode_info;

typedef struct att_ode_settings {
    const double *eigenvalues; /* linear: f(u) = diag(eigenvalues) u, u_0 = 1. NULL: -1, -1000 */
    int eigenvalue_count;      /* 0..ATT_ODE_MOST_MATRIX */
    const char *matrix;        /* linear: f(u) = A u, u_0 = 1, with A from this text file: a row on each line, numbers
                                  separated by spaces or commas, `#` begins a comment. NULL: eigenvalues */
    int points;                /* heat: interior points, 2..ATT_ODE_MOST_POINTS */
    double mu;                 /* vanderpol: 0..1e6 */
    double end;                /* end of the interval; NaN: that of the system */
} att_ode_settings;
/* No matrix, 63 points, mu 100, end NaN. */
ATT_API att_ode_settings att_ode_settings_defaults(void);

/* Opens a system by its name, or from a file, if `name` has a dot or a slash. Lines of such a file:
 *
 *   k = 0.04             a constant; its expression may use constants above
 *   x' = -k * x + t      an equation for the variable x; t is the time
 *   x(0) = 1             the initial value of x, at the start of the interval
 *   t = 0 .. 40          the interval, 0 .. 1 if this line is missing
 *   # ...                a comment
 *
 * Expressions are those of muParser: + - * / ^, comparisons, ?:, sin, exp, ln, sqrt, abs, min and others. A file may
 * have ATT_ODE_MOST_EQUATIONS equations, ATT_ODE_MOST_CONSTANTS constants, 64 KiB, and 1000 bytes in a line. settings:
 * NULL means the defaults. On success the caller owns *ode and frees it with att_ode_close(). Errors: ERR_NOT_FOUND (no
 * such system or file), ERR_ARGUMENT (settings), ERR_FORMAT (the message has line and column), ERR_NONFINITE (initial
 * value, or f there), ERR_UNSUPPORTED (a file, in a build without muParser), ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_ode_open(att_context *context, const char *name, const att_ode_settings *settings,
                                               att_ode **ode);
ATT_API void att_ode_close(att_ode **ode);

ATT_API att_ode_info att_ode_info_of(const att_ode *ode);
/* Name of a component of u, owned by the system: that in the file, otherwise "u1", "u2", ... */
ATT_API const char *att_ode_component(const att_ode *ode, int index);

/* --- methods ------------------------------------------------------------------------------------------------------ */

typedef struct att_ode_method_info {
    const char *name;      /* "rk4" */
    const char *title;     /* "classical Runge-Kutta" */
    const char *source;    /* where the coefficients are from */
    bool adaptive;         /* chooses its step so that the estimated error is below the tolerance */
    double limit;          /* length of the stability interval on the negative real axis; infinite: all of it */
    const char *available; /* NULL, or a sentence why this build does not have the method */
} att_ode_method_info;

ATT_API int att_ode_method_count(void);
ATT_API att_ode_method_info att_ode_method_at(int index);

typedef struct att_ode_step {
    double t, h;            /* the step goes from t to t + h */
    double stiffness_index; /* at the beginning of the step, as all others */
    double sai, sai_simplified, nsi;
} att_ode_step;

typedef struct att_ode_options {
    double step;       /* methods with a fixed step; 0: 1/1000 of the interval */
    double rtol, atol; /* adaptive methods: the error of u_j is kept near rtol |u_j| + atol */
    int64_t most_steps;
    bool states; /* keep the state at the beginning of each step */
    /* Called now and then with the finished share of the interval. Return false to stop: ERR_STOPPED. NULL: none. */
    bool (*progress)(void *user, double share);
    void *user;
} att_ode_options;
/* Step 0, rtol 1e-6, atol 1e-9, 200,000 steps, no states. */
ATT_API att_ode_options att_ode_options_defaults(void);

typedef struct att_ode_trajectory {
    att_context *context;
    att_ode_step *steps; /* the accepted steps */
    int64_t count;
    double *states; /* [count, size]: u at the beginning of each step; NULL without att_ode_options.states */
    double *state;  /* [size]: u at `t` */
    double t;       /* where the trajectory ends */
    double largest; /* norm of a state at the beginning of a step */
    /* The trajectory ends before the interval does. The state exceeded 1e20 (1 + |u_0|): the method is unstable with
     * this step, or the solution grows without bound. Or the steps of an adaptive method fell below the rounding of t,
     * as before a pole of the solution. */
    bool diverged;
    int64_t rejected;    /* steps that were computed again, because of their error or because a solver failed */
    int64_t rate_calls;  /* evaluations of f, without those for Jacobians */
    int64_t above_limit; /* steps with h SI above the method's stability limit */
} att_ode_trajectory;

/* Integrates from the initial value to the end of the interval. The last step of a fixed-step method is shortened to
 * end there. Free the trajectory with att_ode_trajectory_free(). Errors: ERR_NOT_FOUND (no such method), ERR_ARGUMENT
 * (options, or more than most_steps steps), ERR_UNSUPPORTED (a method that needs SUNDIALS, in a build without it),
 * ERR_NONFINITE (f or its Jacobian), ERR_STOPPED, ERR_INTERNAL (the solver failed), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_ode_run(att_ode *ode, const char *method, const att_ode_options *options,
                                              att_ode_trajectory *trajectory);
ATT_API void att_ode_trajectory_free(att_ode_trajectory *trajectory);

/* The solution at the end of the interval, to compare with: in closed form, else by BDF with rtol 1e-10 and atol 1e-13;
 * in a build without SUNDIALS by RK4 with so many steps that twice as many change it by at most 1e-9 of its norm. *how
 * says which. *unit: what to divide errors by, |u|; if |u| is below 1e-6 of the largest norm of the reference on its
 * way (closed form: at both ends), that largest norm, and 1 if it is 0, too. Errors: as att_ode_run(); ERR_UNSUPPORTED
 * if RK4 needs more than 2^24 steps / size. */
ATT_API att_status att_ode_reference(att_ode *ode, double *u, double *unit, const char **how);

/* --- theorem 2 ---------------------------------------------------------------------------------------------------- */

/* Theorem 2 of Huang et al.: if J is symmetric with distinct negative eigenvalues, SAI = c SI + Q(SI), where c is a
 * constant and Q(SI) -> 0 for SI -> inf. For f(u) = J u and small steps, SAI -> |J u| / |u|. With the eigenvector v of
 * the largest |lambda|, c = |<u, v>| / |u|, and Q = O(1 / SI) if c and the other eigenvalues are kept. For a step h,
 * the exact solution gives |(exp(h J) - I) u| / (h |u|), which cannot exceed 1 / h: SAI saturates near c / h. */
typedef struct att_ode_theorem {
    /* The hypotheses, each computed from the matrix J at the initial value. The second bounds are those of systems from
     * files, where J comes from differences with a relative error of about 1e-10. */
    double asymmetry;  /* max |J - J'| / max |J|; symmetric: at most 1e-12, or 1e-8 */
    double largest;    /* the largest eigenvalue; negative: below 0, or -1e-8 SI */
    double gap;        /* least distance of two eigenvalues / SI; distinct: above 1e-14, or 1e-8 */
    double nonlinear;  /* |f(u) - J u| / |f(u)|; at most 1e-8. Not in the theorem, but in the formula of c above */
    const char *fails; /* the first hypothesis that does not hold (u = 0 has no SAI), or NULL. If not NULL, the rest is
                          NaN, except SI */

    double stiffness_index, sai; /* SAI in the limit of small steps */
    double c, rest;              /* rest: Q = sai - c SI */
    double sai_at_step;          /* with the step that was asked for */
} att_ode_theorem;

/* Checks the hypotheses at the initial value and computes the terms. step: above 0. Errors: ERR_ARGUMENT (step),
 * ERR_NONFINITE, ERR_MEMORY. */
ATT_API att_status att_ode_theorem_check(att_ode *ode, double step, att_ode_theorem *theorem);

/* --- picture ------------------------------------------------------------------------------------------------------ */

typedef struct att_ode_line {
    const char *method;
    const att_ode_trajectory *trajectory;
} att_ode_line;

/* Writes a page like that of att_report_write(): step size against stiffness index, and both over time, one line for
 * each trajectory. Long trajectories are thinned to 2000 points, and the page reports it. Errors: as
 * att_report_write().
 */
ATT_API att_status att_ode_page_write(const att_ode *ode, const att_ode_line *lines, int count, const char *path);

#ifdef __cplusplus
}
#endif
#endif
