/* The heat equation on a grid. Its matrix is symmetric with distinct negative eigenvalues, as theorem 2 asks for. */
#include <math.h>

#include "base/core/error.h"
#include "lab/papers/ode/system.h"

static const double pi = 3.14159265358979323846;

static double spacing_of(const att_ode *ode)
{
    return 1.0 / (ode->info.size + 1);
}

static void product(att_ode *ode, double t, const double *u, const double *v, double *jv)
{
    (void)t;
    (void)u;
    int size = ode->info.size;
    double scale = 1 / (spacing_of(ode) * spacing_of(ode));
    for (int i = 0; i < size; i++)
        jv[i] = scale * ((i > 0 ? v[i - 1] : 0) - 2 * v[i] + (i + 1 < size ? v[i + 1] : 0));
}

static void rate(att_ode *ode, double t, const double *u, double *du)
{
    product(ode, t, u, u, du);
}

/* Component i of the eigenvector `wave`, 1..size, of length 1. */
static double mode(const att_ode *ode, int wave, int i)
{
    return sqrt(2 * spacing_of(ode)) * sin(wave * pi * (i + 1) * spacing_of(ode));
}

static double eigenvalue(const att_ode *ode, int wave)
{
    double s = 2 * sin(wave * pi * spacing_of(ode) / 2) / spacing_of(ode);
    return -s * s;
}

static void exact(att_ode *ode, double t, double *u)
{
    int last = ode->info.size;
    double slow = exp(eigenvalue(ode, 1) * t), fast = exp(eigenvalue(ode, last) * t);
    for (int i = 0; i < last; i++)
        u[i] = sqrt(0.5) * (slow * mode(ode, 1, i) + fast * mode(ode, last, i));
}

static att_status create(att_ode *ode, const att_ode_settings *s)
{
    if (s->points < 2 || s->points > ATT_ODE_MOST_POINTS)
        return att_fail(ode->context, ATT_ERR_ARGUMENT, "heat: %d points, expected 2 to %d", s->points,
                        (int)ATT_ODE_MOST_POINTS);
    ATT_TRY(att_ode_allocate(ode, s->points));
    exact(ode, 0, ode->initial);
    ode->info.end = 0.1;
    ode->info.constant = true;
    ode->rate = rate;
    ode->product = product;
    ode->exact = exact;
    return ATT_OK;
}

const att_ode_kind att_ode_kind_heat = {
    .name = "heat",
    .formula =
        "du_i/dt = (u_{i-1} - 2 u_i + u_{i+1}) / dx^2, dx = 1 / (N + 1), u_0 = u_{N+1} = 0; u(0) = (v_1 + v_N) / "
        "sqrt(2) with the unit eigenvectors of the smallest and the largest |lambda|, t in 0..0.1",
    .source = "closed form: lambda_k = -4 sin^2(k pi dx / 2) / dx^2",
    .create = create,
};
