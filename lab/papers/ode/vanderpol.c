/* Van der Pol's oscillator: slow along two branches, with fast jumps between them. */
#include "base/core/error.h"
#include "lab/papers/ode/system.h"

static const char *const names[] = {"x", "y"};

static double mu_of(const att_ode *ode)
{
    return *(const double *)ode->data;
}

static void rate(att_ode *ode, double t, const double *u, double *du)
{
    (void)t;
    du[0] = u[1];
    du[1] = mu_of(ode) * (1 - u[0] * u[0]) * u[1] - u[0];
}

static void product(att_ode *ode, double t, const double *u, const double *v, double *jv)
{
    (void)t;
    jv[0] = v[1];
    jv[1] = (-2 * mu_of(ode) * u[0] * u[1] - 1) * v[0] + mu_of(ode) * (1 - u[0] * u[0]) * v[1];
}

static att_status create(att_ode *ode, const att_ode_settings *s)
{
    double *mu;
    if (!(s->mu >= 0 && s->mu <= 1e6))
        return att_fail(ode->context, ATT_ERR_ARGUMENT, "vanderpol: mu %g, expected 0 to 1e6", s->mu);
    ATT_TRY(att_ode_allocate(ode, 2));
    ATT_TRY(att_ode_allocate_array(ode, 1, sizeof *mu, &mu));
    *mu = s->mu;
    ode->data = mu;
    ode->names = names;
    ode->initial[0] = 2;
    ode->info.end = s->mu > 10 ? 2 * s->mu : 20;
    ode->rate = rate;
    ode->product = product;
    return ATT_OK;
}

const att_ode_kind att_ode_kind_vanderpol = {
    .name = "vanderpol",
    .formula = "x' = y, y' = mu (1 - x^2) y - x; x(0) = 2, y(0) = 0, t in 0..2 mu (0..20 for mu up to 10)",
    .source = "Hairer and Wanner, Solving Ordinary Differential Equations II, section IV.1",
    .create = create,
};
