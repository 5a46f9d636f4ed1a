/* Linear systems, with exp(A t) by scaling and squaring of a Taylor polynomial. */
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "lab/papers/ode/system.h"

static const double standard[] = {-1, -1000};

/* Of the scaled matrix, whose norm is at most 1/2: 2^-18 / 18! = 6e-22. */
enum { TERMS = 17 };

typedef struct linear {
    double *matrix;      /* [size, size]; NULL: diagonal */
    double *eigenvalues; /* [size], of a diagonal matrix */
    double *work;        /* [3, size, size], for exp(A t) */
} linear;

static void multiply(const double *a, const double *x, double *y, int size)
{
    for (int i = 0; i < size; i++) {
        double sum = 0;
        for (int j = 0; j < size; j++)
            sum += a[i * size + j] * x[j];
        y[i] = sum;
    }
}

static void product(att_ode *ode, double t, const double *u, const double *v, double *jv)
{
    (void)t;
    (void)u;
    const linear *l = ode->data;
    if (l->matrix) {
        multiply(l->matrix, v, jv, ode->info.size);
        return;
    }
    for (int i = 0; i < ode->info.size; i++)
        jv[i] = l->eigenvalues[i] * v[i];
}

static void rate(att_ode *ode, double t, const double *u, double *du)
{
    product(ode, t, u, u, du);
}

static void square(double *a, double *b, double factor, double *out, int size)
{
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            double sum = 0;
            for (int k = 0; k < size; k++)
                sum += a[i * size + k] * b[k * size + j];
            out[i * size + j] = factor * sum;
        }
}

/* The largest sum of a row of absolute values. */
static double norm_of(const double *a, int size)
{
    double norm = 0;
    for (int i = 0; i < size; i++) {
        double sum = 0;
        for (int j = 0; j < size; j++)
            sum += fabs(a[i * size + j]);
        norm = fmax(norm, sum);
    }
    return norm;
}

/* sum = exp(a), by Horner's rule I + a (I + a/2 (I + a/3 (...))). */
static void exponentiate(double *a, double *sum, double *next, int size)
{
    size_t bytes = (size_t)size * (size_t)size * sizeof *a;
    memset(sum, 0, bytes);
    for (int term = TERMS; term >= 0; term--) {
        if (term < TERMS)
            square(a, sum, 1.0 / (term + 1), next, size);
        else
            memset(next, 0, bytes);
        memcpy(sum, next, bytes);
        for (int i = 0; i < size; i++)
            sum[i * size + i] += 1;
    }
}

static void exact(att_ode *ode, double t, double *u)
{
    const linear *l = ode->data;
    int size = ode->info.size, halvings = 0;
    size_t count = (size_t)size * (size_t)size;
    double time = t - ode->info.start;
    if (!l->matrix) {
        for (int i = 0; i < size; i++)
            u[i] = exp(l->eigenvalues[i] * time) * ode->initial[i];
        return;
    }
    double *a = l->work, *sum = a + count, *next = sum + count;
    frexp(2 * norm_of(l->matrix, size) * fabs(time), &halvings);
    halvings = halvings > 0 ? halvings : 0;
    for (size_t i = 0; i < count; i++)
        a[i] = ldexp(l->matrix[i] * time, -halvings);
    exponentiate(a, sum, next, size);
    for (; halvings > 0; halvings--) {
        square(sum, sum, 1, next, size);
        memcpy(sum, next, count * sizeof *sum);
    }
    multiply(sum, ode->initial, u, size);
}

static att_status read(att_ode *ode, linear *l, const char *path)
{
    int size = 0;
    ATT_TRY(att_ode_read_matrix(ode, path, &size, &l->matrix));
    ATT_TRY(att_ode_allocate(ode, size));
    return att_ode_allocate_array(ode, 3 * (size_t)size * (size_t)size, sizeof *l->work, &l->work);
}

static att_status take(att_ode *ode, linear *l, const double *eigenvalues, int count)
{
    if (count < 1 || count > ATT_ODE_MOST_MATRIX)
        return att_fail(ode->context, ATT_ERR_ARGUMENT, "linear: %d eigenvalues, expected 1 to %d", count,
                        (int)ATT_ODE_MOST_MATRIX);
    for (int i = 0; i < count; i++)
        if (!isfinite(eigenvalues[i]))
            return att_fail(ode->context, ATT_ERR_ARGUMENT, "linear: eigenvalue %d is %g, expected a finite number",
                            i + 1, eigenvalues[i]);
    ATT_TRY(att_ode_allocate(ode, count));
    ATT_TRY(att_ode_allocate_array(ode, (size_t)count, sizeof *l->eigenvalues, &l->eigenvalues));
    memcpy(l->eigenvalues, eigenvalues, (size_t)count * sizeof *eigenvalues);
    return ATT_OK;
}

static att_status create(att_ode *ode, const att_ode_settings *s)
{
    linear *l;
    ATT_TRY(att_ode_allocate_array(ode, 1, sizeof *l, &l));
    ode->data = l;
    if (s->matrix)
        ATT_TRY(read(ode, l, s->matrix));
    else if (s->eigenvalues)
        ATT_TRY(take(ode, l, s->eigenvalues, s->eigenvalue_count));
    else
        ATT_TRY(take(ode, l, standard, sizeof standard / sizeof *standard));
    for (int i = 0; i < ode->info.size; i++)
        ode->initial[i] = 1;
    ode->info.end = 1;
    ode->info.constant = true;
    ode->rate = rate;
    ode->product = product;
    ode->exact = exact;
    return ATT_OK;
}

const att_ode_kind att_ode_kind_linear = {
    .name = "linear",
    .formula = "du/dt = A u, u(0) = (1, ..., 1), t in 0..1",
    .source = "closed form: u(t) = exp(A t) u(0)",
    .create = create,
};
