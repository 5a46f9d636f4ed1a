/* Explicit methods with a fixed step: forward Euler and the classical Runge-Kutta method of order 4. */
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "lab/papers/ode/method.h"

enum { DEFAULT_STEPS = 1000, SLOPES_OF_RK4 = 4, FIRST_REFINED = 1 << 10, MOST_REFINED = 1 << 24, STOP_EVERY = 1 << 12 };
static const double REFINED = 1e-9;

/* next = the state after a step of size h. k: room for the slopes, and behind them for the last point inside the step.
 */
typedef att_status (*advance_fn)(att_ode *ode, double t, double h, const double *u, double *k, double *next);

static void move(const double *u, double h, const double *slope, double *to, int size)
{
    for (int i = 0; i < size; i++)
        to[i] = u[i] + h * slope[i];
}

static att_status euler(att_ode *ode, double t, double h, const double *u, double *k, double *next)
{
    ATT_TRY(att_ode_rate(ode, t, u, k));
    move(u, h, k, next, ode->info.size);
    return ATT_OK;
}

static att_status rk4(att_ode *ode, double t, double h, const double *u, double *k, double *next)
{
    int n = ode->info.size;
    double *k1 = k, *k2 = k1 + n, *k3 = k2 + n, *k4 = k3 + n, *at = k4 + n;
    ATT_TRY(att_ode_rate(ode, t, u, k1));
    move(u, h / 2, k1, at, n);
    ATT_TRY(att_ode_rate(ode, t + h / 2, at, k2));
    move(u, h / 2, k2, at, n);
    ATT_TRY(att_ode_rate(ode, t + h / 2, at, k3));
    move(u, h, k3, at, n);
    ATT_TRY(att_ode_rate(ode, t + h, at, k4));
    for (int i = 0; i < n; i++)
        next[i] = u[i] + h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    return ATT_OK;
}

static att_status check_steps(const att_ode_advance *run, double step)
{
    const att_ode_info *info = &run->ode->info;
    double steps = ceil((info->end - info->start) / step);
    if (steps <= (double)run->options->most_steps)
        return ATT_OK;
    return att_fail(run->ode->context, ATT_ERR_ARGUMENT,
                    "%s: %.0f steps of %g from %g to %g, expected at most %lld; use a larger step or a later end",
                    info->name, steps, step, info->start, info->end, (long long)run->options->most_steps);
}

/* Whether f is not finite because the point inside a step is beyond all bounds. The trajectory has then diverged. */
static bool has_grown(att_ode_advance *run, const double *point)
{
    run->trajectory->diverged = !(att_ode_norm(point, run->ode->info.size) <= run->bound);
    return run->trajectory->diverged;
}

static att_status run_fixed(att_ode_advance *run, advance_fn advance, int slopes)
{
    att_ode *ode = run->ode;
    att_ode_trajectory *out = run->trajectory;
    size_t count = ((size_t)slopes + 2) * (size_t)ode->info.size;
    double interval = ode->info.end - ode->info.start;
    double step = run->options->step > 0 ? run->options->step : interval / DEFAULT_STEPS;
    ATT_TRY(check_steps(run, step));
    double *k;
    ATT_TRY(att_new(ode->context, &k, count, "the slopes of a step"));
    double *last_point = k + (size_t)slopes * (size_t)ode->info.size, *next = last_point + ode->info.size;
    att_status status = ATT_OK;
    while (status == ATT_OK && !att_ode_is_finished(run)) {
        double rest = ode->info.end - out->t, h = rest < step * (1 + 1e-9) ? rest : step;
        status = advance(ode, out->t, h, out->state, k, next);
        out->rate_calls += slopes;
        if (status == ATT_OK)
            status = att_ode_accept(run, h, next);
        else if (status == ATT_ERR_NONFINITE && has_grown(run, last_point))
            status = ATT_OK;
    }
    att_free(ode->context, k);
    return status;
}

static att_status run_euler(att_ode_advance *run)
{
    return run_fixed(run, euler, 1);
}

static att_status run_rk4(att_ode_advance *run)
{
    return run_fixed(run, rk4, SLOPES_OF_RK4);
}

/* --- the reference ------------------------------------------------------------------------------------------------ */

/* u: the initial value, then the state after `steps` equal steps of RK4. largest: norm on the way. room: [SLOPES_OF_RK4
 * + 2, size] */
static att_status walk(att_ode *ode, int64_t steps, double *room, double *u, double *largest)
{
    const size_t bytes = (size_t)ode->info.size * sizeof *u;
    const double h = (ode->info.end - ode->info.start) / (double)steps;
    double *next = room + (SLOPES_OF_RK4 + 1) * (size_t)ode->info.size;
    memcpy(u, ode->initial, bytes);
    *largest = att_ode_norm(u, ode->info.size);
    for (int64_t i = 0; i < steps; i++) {
        if (i % STOP_EVERY == 0 && att_stop_asked(ode->context))
            return att_fail(ode->context, ATT_ERR_STOPPED, "%s: stopped while the reference was computed",
                            ode->info.name);
        ATT_TRY(rk4(ode, ode->info.start + (double)i * h, h, u, room, next));
        memcpy(u, next, bytes);
        *largest = fmax(*largest, att_ode_norm(u, ode->info.size));
    }
    return ATT_OK;
}

/* Doubles the steps until the state at the end is as good as unchanged. A walk whose state grows beyond all numbers is
 * unstable with its step, and says nothing. */
static att_status refine(att_ode *ode, double *room, double *u, double *unit)
{
    const int size = ode->info.size;
    double *before = room, *difference = before + size, *inner = difference + size;
    double largest = 0;
    bool has_before = false;
    for (int64_t steps = FIRST_REFINED; steps * size <= MOST_REFINED; steps *= 2) {
        const att_status status = walk(ode, steps, inner, u, &largest);
        if (status != ATT_OK && status != ATT_ERR_NONFINITE)
            return status;
        for (int i = 0; i < size && has_before; i++)
            difference[i] = u[i] - before[i];
        *unit = att_ode_error_unit(u, largest, size);
        if (status == ATT_OK && has_before && att_ode_norm(difference, size) <= REFINED * *unit)
            return ATT_OK;
        has_before = status == ATT_OK;
        memcpy(before, u, (size_t)size * sizeof *u);
    }
    return att_fail(ode->context, ATT_ERR_UNSUPPORTED,
                    "%s: the end state of RK4 still changes by more than 1e-9 with %d steps; install SUNDIALS 6 "
                    "(libsundials-dev) for a reference by BDF",
                    ode->info.name, MOST_REFINED / size);
}

att_status att_ode_refine(att_ode *ode, double *u, double *unit)
{
    const size_t count = (SLOPES_OF_RK4 + 4) * (size_t)ode->info.size;
    double *room;
    ATT_TRY(att_new(ode->context, &room, count, "the slopes of a step"));
    const att_status status = refine(ode, room, u, unit);
    att_free(ode->context, room);
    return status;
}

const att_ode_method att_ode_method_euler = {
    .info = {.name = "euler",
             .title = "forward Euler, order 1",
             .source = "u + h f(u); stable for h |lambda| <= 2",
             .limit = 2},
    .run = run_euler,
};

const att_ode_method att_ode_method_rk4 = {
    .info = {.name = "rk4",
             .title = "classical Runge-Kutta, order 4",
             .source = "Kutta, 1901; stable for h |lambda| <= 2.785, the root of |1 + z + z^2/2 + z^3/6 + z^4/24| = 1",
             .limit = 2.785293563405282},
    .run = run_rk4,
};
