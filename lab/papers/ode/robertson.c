/* Robertson's chemical reaction: rate constants that differ by nine orders of magnitude. */
#include "lab/papers/ode/system.h"

#include "base/core/error.h"

static const char *const names[] = {"y1", "y2", "y3"};

static void rate(att_ode *ode, double t, const double *y, double *dy)
{
    (void)ode;
    (void)t;
    dy[0] = -0.04 * y[0] + 1e4 * y[1] * y[2];
    dy[2] = 3e7 * y[1] * y[1];
    dy[1] = -dy[0] - dy[2];
}

static void product(att_ode *ode, double t, const double *y, const double *v, double *jv)
{
    (void)ode;
    (void)t;
    jv[0] = -0.04 * v[0] + 1e4 * (y[2] * v[1] + y[1] * v[2]);
    jv[2] = 6e7 * y[1] * v[1];
    jv[1] = -jv[0] - jv[2];
}

static att_status create(att_ode *ode, const att_ode_settings *s)
{
    (void)s;
    ATT_TRY(att_ode_allocate(ode, 3));
    ode->names = names;
    ode->initial[0] = 1;
    ode->info.end = 40;
    ode->rate = rate;
    ode->product = product;
    return ATT_OK;
}

const att_ode_kind att_ode_kind_robertson = {
    .name = "robertson",
    .formula =
        "y1' = -0.04 y1 + 1e4 y2 y3, y2' = 0.04 y1 - 1e4 y2 y3 - 3e7 y2^2, y3' = 3e7 y2^2; y(0) = (1, 0, 0), t "
        "in 0..40",
    .source = "Robertson, 1966; Hairer and Wanner, Solving Ordinary Differential Equations II, section IV.1",
    .create = create,
};
