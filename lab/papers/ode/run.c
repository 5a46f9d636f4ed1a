#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "lab/papers/ode/list.h"

static const double GROWTH = 1e20, NEAR_0 = 1e-6;
enum { FIRST_CAPACITY = 1024, PROGRESS_EVERY = 256 };

static const att_ode_method *const methods[] = {
#define METHOD_ADDRESS(name) &att_ode_method_##name,
    ATT_ODE_METHOD_LIST(METHOD_ADDRESS)
#undef METHOD_ADDRESS
};
enum { METHOD_COUNT = sizeof methods / sizeof *methods };

int att_ode_method_count(void)
{
    return METHOD_COUNT;
}

att_ode_method_info att_ode_method_at(int index)
{
    return index >= 0 && index < METHOD_COUNT ? methods[index]->info : (att_ode_method_info){0};
}

static const char *name_at(const void *user, int index)
{
    (void)user;
    return methods[index]->info.name;
}

static att_status find(att_context *context, const char *name, const att_ode_method **method)
{
    for (int i = 0; i < METHOD_COUNT; i++) {
        *method = methods[i];
        if (strcmp(name, methods[i]->info.name) != 0)
            continue;
        if (methods[i]->info.available)
            return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: %s", name, methods[i]->info.available);
        return ATT_OK;
    }
    const char *nearest = att_text_nearest(name, name_at, NULL, METHOD_COUNT);
    return att_fail(context, ATT_ERR_NOT_FOUND, "there is no method \"%s\"%s%s%s", name,
                    nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

att_ode_options att_ode_options_defaults(void)
{
    return (att_ode_options){.rtol = 1e-6, .atol = 1e-9, .most_steps = 200000};
}

static att_status check(att_context *context, const att_ode_options *o)
{
    if (!(o->step >= 0 && isfinite(o->step)))
        return att_fail(context, ATT_ERR_ARGUMENT, "step %g, expected a finite number of at least 0", o->step);
    if (!(o->rtol >= 1e-14 && o->rtol < 1 && o->atol >= 0 && isfinite(o->atol)))
        return att_fail(context, ATT_ERR_ARGUMENT, "rtol %g, atol %g, expected 1e-14 to 1 and at least 0", o->rtol,
                        o->atol);
    if (o->most_steps < 1 || o->most_steps > ATT_ODE_MOST_STEPS)
        return att_fail(context, ATT_ERR_ARGUMENT, "most_steps %lld, expected 1 to %d", (long long)o->most_steps,
                        (int)ATT_ODE_MOST_STEPS);
    return ATT_OK;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static att_status make_room(att_ode_advance *run)
{
    att_ode_trajectory *out = run->trajectory;
    if (out->count >= run->options->most_steps)
        return att_fail(run->ode->context, ATT_ERR_ARGUMENT,
                        "%s: more than %lld steps are needed; t = %g of %g was reached", run->ode->info.name,
                        (long long)run->options->most_steps, out->t, run->ode->info.end);
    if (out->count < run->capacity)
        return ATT_OK;
    int64_t wanted = run->capacity ? 2 * run->capacity : FIRST_CAPACITY;
    att_ode_step *steps = att_reallocate(run->ode->context, out->steps, (size_t)wanted * sizeof *steps);
    if (!steps)
        return att_fail_memory(run->ode->context, (size_t)wanted * sizeof *steps, "the steps of a trajectory");
    out->steps = steps;
    if (run->options->states) {
        size_t bytes = att_size_product((size_t)wanted * sizeof(double), (size_t)run->ode->info.size);
        double *states = att_reallocate(run->ode->context, out->states, bytes);
        if (!states)
            return att_fail_memory(run->ode->context, bytes, "the states of a trajectory");
        out->states = states;
    }
    run->capacity = wanted;
    return ATT_OK;
}

static double distance(const double *a, const double *b, double *scratch, int size)
{
    for (int i = 0; i < size; i++)
        scratch[i] = b[i] - a[i];
    return att_ode_norm(scratch, size);
}

static att_status report(const att_ode_advance *run)
{
    const att_ode_options *o = run->options;
    const att_ode_info *info = &run->ode->info;
    double share = (run->trajectory->t - info->start) / (info->end - info->start);
    if (run->trajectory->count % PROGRESS_EVERY == 0 && o->progress && !o->progress(o->user, share))
        return att_fail(run->ode->context, ATT_ERR_STOPPED, "%s: stopped at t = %g", info->name, run->trajectory->t);
    return ATT_OK;
}

att_status att_ode_accept(att_ode_advance *run, double h, const double *next)
{
    att_ode *ode = run->ode;
    att_ode_trajectory *out = run->trajectory;
    att_spectrum_ends ends;
    ATT_TRY(make_room(run));
    ATT_TRY(att_ode_spectrum(ode, out->t, out->state, &ends));
    double size = att_ode_norm(out->state, ode->info.size);
    out->largest = fmax(out->largest, size);
    double moved = distance(out->state, next, ode->scratch, ode->info.size);
    if (out->states)
        memcpy(out->states + out->count * ode->info.size, out->state, (size_t)ode->info.size * sizeof *next);
    out->steps[out->count++] = (att_ode_step){.t = out->t,
                                              .h = h,
                                              .stiffness_index = ends.stiffness_index,
                                              .sai = moved / h / size,
                                              .sai_simplified = moved / h,
                                              .nsi = moved / size};
    out->above_limit += h * ends.stiffness_index > run->limit;
    memcpy(out->state, next, (size_t)ode->info.size * sizeof *next);
    out->t += h;
    out->diverged = !(att_ode_norm(next, ode->info.size) <= run->bound);
    return report(run);
}

/* A rounding error before the end is no reason for one more step. */
bool att_ode_is_finished(const att_ode_advance *run)
{
    const att_ode_info *info = &run->ode->info;
    return run->trajectory->diverged || info->end - run->trajectory->t <= 1e-12 * (info->end - info->start);
}

att_status att_ode_run(att_ode *ode, const char *name, const att_ode_options *options, att_ode_trajectory *trajectory)
{
    att_ode_options defaults = att_ode_options_defaults();
    const att_ode_method *method = NULL;
    att_ode_trajectory out = {.context = ode->context, .t = ode->info.start};
    att_ode_advance run = {.ode = ode, .options = options ? options : &defaults, .trajectory = &out};
    size_t bytes = (size_t)ode->info.size * sizeof *out.state;
    ATT_TRY(att_require(ode->context, name, "the name of the method"));
    ATT_TRY(check(ode->context, run.options));
    ATT_TRY(find(ode->context, name, &method));
    out.state = att_allocate(ode->context, bytes);
    if (!out.state)
        return att_fail_memory(ode->context, bytes, "the state of a trajectory");
    memcpy(out.state, ode->initial, bytes);
    run.limit = method->info.limit;
    run.bound = GROWTH * (1 + att_ode_norm(ode->initial, ode->info.size));
    att_status status = method->run(&run);
    if (status == ATT_OK)
        *trajectory = out;
    else
        att_ode_trajectory_free(&out);
    return status;
}

void att_ode_trajectory_free(att_ode_trajectory *trajectory)
{
    if (!trajectory->context)
        return;
    att_free(trajectory->context, trajectory->steps);
    att_free(trajectory->context, trajectory->states);
    att_free(trajectory->context, trajectory->state);
    *trajectory = (att_ode_trajectory){0};
}

double att_ode_error_unit(const double *u, double largest, int size)
{
    const double norm = att_ode_norm(u, size), unit = norm >= NEAR_0 * largest ? norm : largest;
    return unit > 0 ? unit : 1;
}

att_status att_ode_reference(att_ode *ode, double *u, double *unit, const char **how)
{
    const att_ode_options tight = {.rtol = 1e-10, .atol = 1e-13, .most_steps = ATT_ODE_MOST_STEPS};
    if (ode->exact) {
        *how = "closed form";
        ATT_TRY(att_ode_exact(ode, ode->info.end, u));
        *unit = att_ode_error_unit(u, att_ode_norm(ode->initial, ode->info.size), ode->info.size);
        return ATT_OK;
    }
    if (att_ode_method_bdf.info.available) {
        *how = "RK4, with its steps doubled until the state changes by at most 1e-9";
        return att_ode_refine(ode, u, unit);
    }
    att_ode_trajectory found = {0};
    ATT_TRY(att_ode_run(ode, "bdf", &tight, &found));
    bool finished = !found.diverged;
    memcpy(u, found.state, (size_t)ode->info.size * sizeof *u);
    *unit = att_ode_error_unit(u, found.largest, ode->info.size);
    att_ode_trajectory_free(&found);
    if (!finished)
        return att_fail(ode->context, ATT_ERR_NONFINITE, "%s: the solution grows without bound", ode->info.name);
    *how = "BDF with rtol 1e-10, atol 1e-13";
    return ATT_OK;
}
