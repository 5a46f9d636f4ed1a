#include "lab/papers/ode/system.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "lab/papers/ode/list.h"

/* Step of central differences as a share of |u_j|: the cube root of the rounding error. */
static const double DIFFERENCE = 6.1e-6;

static const att_ode_kind *const kinds[] = {
#define KIND_ADDRESS(name) &att_ode_kind_##name,
    ATT_ODE_KIND_LIST(KIND_ADDRESS)
#undef KIND_ADDRESS
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

att_ode_settings att_ode_settings_defaults(void)
{
    return (att_ode_settings){.points = 63, .mu = 100, .end = NAN};
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

att_status att_ode_allocate_array(att_ode *ode, size_t count, size_t size, void *array_at)
{
    size_t bytes = att_size_product(count, size);
    void *array = bytes < SIZE_MAX ? att_arena_allocate(&ode->arena, bytes) : NULL;
    if (!array)
        return att_fail_memory(ode->context, bytes, ode->info.name);
    memcpy(array_at, &array, sizeof array);
    return ATT_OK;
}

static att_status name_components(att_ode *ode)
{
    const char **names = NULL;
    ATT_TRY(att_ode_allocate_array(ode, (size_t)ode->info.size, sizeof *names, &names));
    for (int i = 0; i < ode->info.size; i++) {
        char name[16];
        snprintf(name, sizeof name, "u%d", i + 1);
        names[i] = att_arena_string(&ode->arena, name);
        if (!names[i])
            return att_fail_memory(ode->context, sizeof name, ode->info.name);
    }
    ode->names = names;
    return ATT_OK;
}

att_status att_ode_allocate(att_ode *ode, int size)
{
    ode->info.size = size;
    ATT_TRY(name_components(ode));
    ATT_TRY(att_ode_allocate_array(ode, (size_t)size, sizeof(double), &ode->initial));
    return att_ode_allocate_array(ode, 3 * (size_t)size, sizeof(double), &ode->scratch);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static const char *name_at(const void *user, int index)
{
    (void)user;
    return kinds[index]->name;
}

static att_status create_named(att_ode *ode, const char *name, const att_ode_settings *settings)
{
    for (int i = 0; i < KIND_COUNT; i++) {
        const att_ode_kind *kind = kinds[i];
        if (strcmp(kind->name, name) != 0)
            continue;
        ode->info = (att_ode_info){.name = kind->name, .formula = kind->formula, .source = kind->source};
        return kind->create(ode, settings);
    }
    const char *nearest = att_text_nearest(name, name_at, NULL, KIND_COUNT);
    return att_fail(ode->context, ATT_ERR_NOT_FOUND,
                    "there is no system \"%s\"%s%s%s; the name of a file has a dot or a slash", name,
                    nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

static att_status check_interval(att_ode *ode, double end)
{
    if (!isnan(end))
        ode->info.end = end;
    if (isfinite(ode->info.end) && ode->info.end > ode->info.start)
        return ATT_OK;
    return att_fail(ode->context, ATT_ERR_ARGUMENT, "%s: the interval ends at %g, expected a finite time after %g",
                    ode->info.name, ode->info.end, ode->info.start);
}

static att_status create(att_ode *ode, const char *name, const att_ode_settings *settings)
{
    bool file = strchr(name, '.') || strchr(name, '/');
    ATT_TRY(file ? att_ode_from_file(ode, name) : create_named(ode, name, settings));
    ode->info.exact = ode->exact != NULL;
    ATT_TRY(check_interval(ode, settings->end));
    return att_ode_rate(ode, ode->info.start, ode->initial, ode->scratch);
}

att_status att_ode_open(att_context *context, const char *name, const att_ode_settings *settings, att_ode **out)
{
    att_ode_settings defaults = att_ode_settings_defaults();
    ATT_TRY(att_require(context, name, "the name of the system"));
    att_ode *ode;
    ATT_TRY(att_new(context, &ode, 1, name));
    ode->context = ode->arena.context = context;
    att_status status = create(ode, name, settings ? settings : &defaults);
    if (status == ATT_OK)
        *out = ode;
    else
        att_ode_close(&ode);
    return status;
}

void att_ode_close(att_ode **ode)
{
    if (!ode || !*ode)
        return;
    att_ode *closing = *ode;
    if (closing->close)
        closing->close(closing);
    att_arena_free(&closing->arena);
    att_free(closing->context, closing);
    *ode = NULL;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

att_ode_info att_ode_info_of(const att_ode *ode)
{
    return ode->info;
}

const char *att_ode_component(const att_ode *ode, int index)
{
    return index >= 0 && index < ode->info.size ? ode->names[index] : "";
}

double att_ode_norm(const double *u, int size)
{
    double largest = 0, sum = 0;
    for (int i = 0; i < size; i++)
        largest = fmax(largest, fabs(u[i]));
    for (int i = 0; i < size && largest > 0; i++)
        sum += u[i] / largest * (u[i] / largest);
    return largest * sqrt(sum);
}

/* what: "d%s/dt is" or "J v of %s is" */
static att_status check_finite(const att_ode *ode, double t, const double *values, const char *what)
{
    for (int i = 0; i < ode->info.size; i++) {
        if (isfinite(values[i]))
            continue;
        return att_fail(ode->context, ATT_ERR_NONFINITE, "%s: %s of %s is %g at t = %g, expected a finite number",
                        ode->info.name, what, ode->names[i], isnan(values[i]) ? (double)NAN : values[i], t);
    }
    return ATT_OK;
}

att_status att_ode_rate(att_ode *ode, double t, const double *u, double *du)
{
    ode->rate(ode, t, u, du);
    return check_finite(ode, t, du, "the derivative");
}

/* (f(u + e v) - f(u - e v)) / 2 e */
static void differentiate(att_ode *ode, double t, const double *u, const double *v, double step, double *jv)
{
    int size = ode->info.size;
    double *moved = ode->scratch, *up = moved + size, *down = up + size;
    for (int i = 0; i < size; i++)
        moved[i] = u[i] + step * v[i];
    ode->rate(ode, t, moved, up);
    for (int i = 0; i < size; i++)
        moved[i] = u[i] - step * v[i];
    ode->rate(ode, t, moved, down);
    for (int i = 0; i < size; i++)
        jv[i] = (up[i] - down[i]) / (2 * step);
}

att_status att_ode_product(att_ode *ode, double t, const double *u, const double *v, double *jv)
{
    double largest = 0, scale = 1;
    for (int i = 0; i < ode->info.size; i++) {
        largest = fmax(largest, fabs(v[i]));
        if (v[i] != 0)
            scale = fmax(scale, fabs(u[i]));
    }
    if (ode->product)
        ode->product(ode, t, u, v, jv);
    else if (largest > 0)
        differentiate(ode, t, u, v, DIFFERENCE * scale / largest, jv);
    else
        memset(jv, 0, (size_t)ode->info.size * sizeof *jv);
    return check_finite(ode, t, jv, "the derivative of the rate");
}

att_status att_ode_jacobian(att_ode *ode, double t, const double *u, double *jacobian)
{
    int size = ode->info.size;
    double *unit;
    ATT_TRY(att_new(ode->context, &unit, 2 * (size_t)size, ode->info.name));
    double *column = unit + size;
    att_status status = ATT_OK;
    for (int j = 0; j < size && status == ATT_OK; j++) {
        unit[j] = 1;
        status = att_ode_product(ode, t, u, unit, column);
        unit[j] = 0;
        for (int i = 0; i < size && status == ATT_OK; i++)
            jacobian[(size_t)i * (size_t)size + (size_t)j] = column[i];
    }
    att_free(ode->context, unit);
    return status;
}

typedef struct point {
    att_ode *ode;
    double t;
    const double *u;
} point;

static att_status apply(void *user, const double *x, double *y)
{
    point *p = user;
    return att_ode_product(p->ode, p->t, p->u, x, y);
}

att_status att_ode_spectrum(att_ode *ode, double t, const double *u, att_spectrum_ends *ends)
{
    point p = {ode, t, u};
    const att_operator op = {.size = ode->info.size, .apply = apply, .user = &p};
    if (!ode->has_ends) {
        ATT_TRY(att_spectrum_ends_find(ode->context, &op, NULL, &ode->ends));
        ode->has_ends = ode->info.constant;
    }
    *ends = ode->ends;
    return ATT_OK;
}

att_status att_ode_exact(att_ode *ode, double t, double *u)
{
    if (!ode->exact)
        return att_fail(ode->context, ATT_ERR_UNSUPPORTED, "%s: no closed form of the solution is known",
                        ode->info.name);
    ode->exact(ode, t, u);
    return ATT_OK;
}
