#include <math.h>

#include "base/core/error.h"
#include "lab/papers/ode/system.h"

static const double MOST_NONLINEAR = 1e-8;

/* What counts as 0, relative to the largest element of J or to SI. The error of differences is about 1e-10. */
typedef struct tolerances {
    double asymmetry, eigenvalue, gap;
} tolerances;
static const tolerances of_exact = {1e-12, 0, 1e-14}, of_differences = {1e-8, 1e-8, 1e-8};

typedef struct work {
    double *jacobian, *vectors; /* [size, size] */
    double *values, *shares;    /* [size]: eigenvalues; <u, v_k> */
    double *rate, *image;       /* [size]: f(u); J u */
} work;

static double dot(const double *a, const double *b, int size)
{
    double sum = 0;
    for (int i = 0; i < size; i++)
        sum += a[i] * b[i];
    return sum;
}

static double asymmetry_of(const double *a, size_t size)
{
    double largest = 0, difference = 0;
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < size; j++) {
            largest = fmax(largest, fabs(a[i * size + j]));
            difference = fmax(difference, fabs(a[i * size + j] - a[j * size + i]));
        }
    return largest > 0 ? difference / largest : 0;
}

static double gap_of(const double *values, int size)
{
    double gap = INFINITY;
    for (int i = 1; i < size; i++)
        gap = fmin(gap, values[i] - values[i - 1]);
    return gap;
}

static double nonlinear_of(const work *w, int size)
{
    double norm = att_ode_norm(w->rate, size);
    for (int i = 0; i < size; i++)
        w->image[i] -= w->rate[i];
    double difference = att_ode_norm(w->image, size);
    return norm > 0 ? difference / norm : difference > 0 ? INFINITY : 0;
}

static const char *first_failure(const att_ode_theorem *t, const tolerances *most, const double *u, int size)
{
    return !(att_ode_norm(u, size) > 0)                             ? "the initial value is 0"
           : !(t->asymmetry <= most->asymmetry)                     ? "J is not symmetric"
           : !(t->largest < -most->eigenvalue * t->stiffness_index) ? "an eigenvalue of J is not negative"
           : !(t->gap > most->gap)                                  ? "eigenvalues of J are not distinct"
           : !(t->nonlinear <= MOST_NONLINEAR) ? "f(u) is not J u, so that the formula of c does not apply"
                                               : NULL;
}

/* With the shares a_k of u on the eigenvectors, |J u|^2 = sum (lambda_k a_k)^2. The eigenvector of the largest |lambda|
 * is the first one. */
static void compute_terms(const work *w, const double *u, int size, double step, att_ode_theorem *t)
{
    double norm = att_ode_norm(u, size);
    for (int k = 0; k < size; k++) {
        w->shares[k] = dot(u, w->vectors + (size_t)k * (size_t)size, size);
        w->image[k] = expm1(w->values[k] * step) * w->shares[k];
    }
    t->c = fabs(w->shares[0]) / norm;
    t->sai_at_step = att_ode_norm(w->image, size) / (step * norm);
    for (int k = 0; k < size; k++)
        w->image[k] = w->values[k] * w->shares[k];
    t->sai = att_ode_norm(w->image, size) / norm;
    /* SAI - c SI = (SAI^2 - c^2 SI^2) / (SAI + c SI), in which the largest terms need not be subtracted. */
    double others = att_ode_norm(w->image + 1, size - 1) / norm;
    t->rest = others * others / (t->sai + t->c * t->stiffness_index);
}

static att_status check(att_ode *ode, double step, const work *w, att_ode_theorem *t)
{
    int size = ode->info.size;
    const tolerances *most = ode->product ? &of_exact : &of_differences;
    const double *u = ode->initial;
    att_spectrum_ends ends;
    ATT_TRY(att_ode_spectrum(ode, ode->info.start, u, &ends));
    ATT_TRY(att_ode_rate(ode, ode->info.start, u, w->rate));
    ATT_TRY(att_ode_product(ode, ode->info.start, u, u, w->image));
    ATT_TRY(att_ode_jacobian(ode, ode->info.start, u, w->jacobian));
    *t = (att_ode_theorem){.asymmetry = asymmetry_of(w->jacobian, (size_t)size),
                           .largest = ends.right.re,
                           .gap = NAN,
                           .nonlinear = nonlinear_of(w, size),
                           .stiffness_index = ends.stiffness_index,
                           .sai = NAN,
                           .c = NAN,
                           .rest = NAN,
                           .sai_at_step = NAN};
    if (t->asymmetry <= most->asymmetry) {
        ATT_TRY(att_spectrum_symmetric(ode->context, size, w->jacobian, w->values, w->vectors));
        t->largest = w->values[size - 1];
        t->gap = gap_of(w->values, size) / t->stiffness_index;
    }
    t->fails = first_failure(t, most, u, size);
    if (!t->fails)
        compute_terms(w, u, size, step, t);
    return ATT_OK;
}

att_status att_ode_theorem_check(att_ode *ode, double step, att_ode_theorem *theorem)
{
    if (!(step > 0 && isfinite(step)))
        return att_fail(ode->context, ATT_ERR_ARGUMENT, "theorem 2 with step %g, expected a finite number above 0",
                        step);
    size_t n = (size_t)ode->info.size, count = 2 * n * n + 4 * n;
    double *block;
    ATT_TRY(att_new(ode->context, &block, count, "theorem 2"));
    const work w = {block,
                    block + n * n,
                    block + 2 * n * n,
                    block + 2 * n * n + n,
                    block + 2 * n * n + 2 * n,
                    block + 2 * n * n + 3 * n};
    att_status status = check(ode, step, &w, theorem);
    att_free(ode->context, block);
    return status;
}
