#include "base/spectrum/spectrum.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include <arpack.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "base/spectrum/lapack.h"

enum { SCALE_STEPS = 10, LEAST_DENSE = 3, LEAST_BASIS = 4, MOST_BASIS = 256 };

/* ARPACK's routines keep their state between calls in static variables. */
static pthread_mutex_t arpack = PTHREAD_MUTEX_INITIALIZER;

typedef struct search {
    att_context *context;
    const att_operator *op;
    const att_spectrum_options *options;
    int products;
    double scale; /* estimate of |J| */
} search;

/* One end of the real axis: the operator is J - shift I, whose eigenvalue there is the largest in absolute value. */
typedef struct end {
    const char *which; /* ARPACK's name: SR or LR */
    double shift;
    att_eigenvalue value;
    double residual; /* |J v - lambda v| */
    bool converged;
} end;

att_spectrum_options att_spectrum_options_defaults(void)
{
    return (att_spectrum_options){.tolerance = 1e-6, .basis = 48, .dense = 64, .most_products = 20000, .seed = 42};
}

static att_status check(att_context *context, const att_operator *op, const att_spectrum_options *o)
{
    if (op->size < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "the spectrum of an operator of size %d, expected at least 1",
                        op->size);
    if (!(o->tolerance > 0 && o->tolerance < 1))
        return att_fail(context, ATT_ERR_ARGUMENT, "tolerance %g of a spectrum, expected a number between 0 and 1",
                        o->tolerance);
    if (o->basis < LEAST_BASIS || o->basis > MOST_BASIS || o->dense < LEAST_DENSE || o->most_products < 1)
        return att_fail(
            context, ATT_ERR_ARGUMENT,
            "basis %d, dense %d, most_products %d of a spectrum, expected %d to %d, at least %d, at least 1", o->basis,
            o->dense, o->most_products, (int)LEAST_BASIS, (int)MOST_BASIS, (int)LEAST_DENSE);
    return ATT_OK;
}

static att_status multiply(search *s, const double *x, double *y)
{
    s->products++;
    ATT_TRY(s->op->apply(s->op->user, x, y));
    for (int i = 0; i < s->op->size; i++)
        if (!isfinite(y[i]))
            return att_fail(s->context, ATT_ERR_NONFINITE,
                            "the spectrum of an operator of size %d: component %d of product %d is %g", s->op->size, i,
                            s->products, y[i]);
    return ATT_OK;
}

/* Scales by the largest component first, so that squares neither overflow nor vanish. */
static double norm_of(const double *x, int count)
{
    double largest = 0, sum = 0;
    for (int i = 0; i < count; i++)
        largest = fmax(largest, fabs(x[i]));
    for (int i = 0; i < count && largest > 0; i++)
        sum += x[i] / largest * (x[i] / largest);
    return largest * sqrt(sum);
}

static void draw(const search *s, double *x)
{
    att_random random = att_random_from(att_random_key(s->options->seed, att_random_hash("spectrum"), 0));
    for (int i = 0; i < s->op->size; i++)
        x[i] = att_random_normal(&random);
}

/* --- dense -------------------------------------------------------------------------------------------------------- */

static att_status form(search *s, double *columns, double *unit)
{
    size_t n = (size_t)s->op->size;
    for (size_t j = 0; j < n; j++) {
        unit[j] = 1;
        ATT_TRY(multiply(s, unit, columns + j * n));
        unit[j] = 0;
    }
    return ATT_OK;
}

/* The products are the columns of J, so the matrix is transposed, which does not change the eigenvalues. Of a pair,
 * LAPACK lists the one with the positive imaginary part first, which is taken. */
static att_status find_dense(search *s, end *left, end *right)
{
    size_t n = (size_t)s->op->size, bytes = (n * n + n) * sizeof(double) + n * sizeof(att_eigenvalue);
    double *matrix = att_allocate(s->context, bytes);
    if (!matrix)
        return att_fail_memory(s->context, bytes, "the spectrum of an operator");
    att_eigenvalue *values = (att_eigenvalue *)(matrix + n * n + n);
    att_status status = form(s, matrix, matrix + n * n);
    if (status == ATT_OK)
        status = att_spectrum_eigenvalues(s->context, s->op->size, matrix, values);
    for (size_t i = 0; i < n && status == ATT_OK; i++) {
        if (i == 0 || values[i].re < left->value.re)
            left->value = values[i];
        if (i == 0 || values[i].re > right->value.re)
            right->value = values[i];
    }
    left->converged = right->converged = true;
    att_free(s->context, matrix);
    return status;
}

/* --- Arnoldi ------------------------------------------------------------------------------------------------------ */

typedef struct workspace {
    int basis;
    double *block, *start, *vectors, *work, *projected;
    int projected_size;
} workspace;

static att_status allocate(search *s, workspace *w)
{
    size_t n = (size_t)s->op->size;
    w->basis = s->options->basis < s->op->size ? s->options->basis : s->op->size;
    size_t basis = (size_t)w->basis, projected = 3 * basis * basis + 6 * basis;
    size_t count = att_size_sum(att_size_product(n, basis + 4), projected);
    ATT_TRY(att_new(s->context, &w->block, count, "the basis of a spectrum"));
    w->start = w->block;
    w->work = w->start + n;
    w->vectors = w->work + 3 * n;
    w->projected = w->vectors + n * basis;
    w->projected_size = (int)projected;
    return ATT_OK;
}

/* Power iteration. The largest growth of a vector is at most |J|. */
static att_status estimate_scale(search *s, double *x, double *y)
{
    int n = s->op->size;
    draw(s, x);
    for (int step = 0; step < SCALE_STEPS; step++) {
        double before = norm_of(x, n);
        ATT_TRY(multiply(s, x, y));
        double after = norm_of(y, n);
        s->scale = fmax(s->scale, after / before);
        if (after == 0)
            break;
        for (int i = 0; i < n; i++)
            x[i] = y[i] / after;
    }
    return ATT_OK;
}

/* Where ARPACK leaves the last basis and its projection in the workspace. */
enum { PROJECTION = 4, RE = 5, IM = 6 };

/* Reads the Ritz value at the end. ARPACK leaves all Ritz values of the last basis in its workspace, and those of a
 * pair in any order. */
static void take_ritz(const workspace *w, const int pointers[14], end *e)
{
    const double *re = w->projected + pointers[RE] - 1, *im = w->projected + pointers[IM] - 1;
    int best = 0;
    for (int i = 1; i < w->basis; i++)
        if (e->which[0] == 'S' ? re[i] < re[best] : re[i] > re[best])
            best = i;
    e->value = (att_eigenvalue){re[best] + e->shift, fabs(im[best])};
}

/* Writes the Ritz vector of e->value to x (real part) and y (imaginary part), which is 0 if the value is real. */
static att_status take_ritz_vector(search *s, const workspace *w, const int pointers[14], const end *e, double *x,
                                   double *y)
{
    const double *projection = w->projected + pointers[PROJECTION] - 1;
    size_t basis = (size_t)w->basis, n = (size_t)s->op->size, size = 2 * basis * basis + 2 * basis;
    double *h;
    ATT_TRY(att_new(s->context, &h, size, "a vector of a spectrum"));
    double *vectors = h + basis * basis, *re = vectors + basis * basis, *im = re + basis;
    for (size_t j = 0; j < basis; j++) /* ARPACK keeps other numbers below the subdiagonal */
        for (size_t i = 0; i < basis && i <= j + 1; i++)
            h[j * basis + i] = projection[j * basis + i];
    att_status status = att_spectrum_decompose(s->context, w->basis, h, re, im, vectors);
    size_t best = 0;
    for (size_t i = 1; i < basis && status == ATT_OK; i++)
        if (hypot(re[i] + e->shift - e->value.re, im[i] - e->value.im) <
            hypot(re[best] + e->shift - e->value.re, im[best] - e->value.im))
            best = i;
    memset(x, 0, n * sizeof *x);
    memset(y, 0, n * sizeof *y);
    bool pair = status == ATT_OK && im[best] > 0;
    for (size_t k = 0; k < basis && status == ATT_OK; k++)
        for (size_t i = 0; i < n; i++) {
            x[i] += vectors[best * basis + k] * w->vectors[k * n + i];
            y[i] += pair ? vectors[(best + 1) * basis + k] * w->vectors[k * n + i] : 0;
        }
    att_free(s->context, h);
    return status;
}

/* Computes |J v - lambda v| / |v| from products with v. ARPACK's own bound assumes that its products are exact. */
static att_status check_residual(search *s, const workspace *w, const int pointers[14], end *e)
{
    int n = s->op->size;
    double *x = w->work, *y = x + n, *jx = y + n, *jy = w->start, a = e->value.re, b = e->value.im;
    ATT_TRY(take_ritz_vector(s, w, pointers, e, x, y));
    double norm = hypot(norm_of(x, n), norm_of(y, n));
    bool pair = norm_of(y, n) > 0;
    ATT_TRY(multiply(s, x, jx));
    memset(jy, 0, (size_t)n * sizeof *jy);
    if (pair)
        ATT_TRY(multiply(s, y, jy));
    for (int i = 0; i < n; i++) {
        jx[i] -= a * x[i] - b * y[i];
        jy[i] -= a * y[i] + b * x[i];
    }
    e->residual = hypot(norm_of(jx, n), norm_of(jy, n)) / norm;
    return ATT_OK;
}

/* Number of restarts that the products allow: after the first basis, ARPACK keeps half of the vectors, rounded down. */
static int most_restarts(const workspace *w, int products)
{
    int restarts = (products - w->basis) / (w->basis - w->basis / 2);
    return restarts > 1 ? restarts : 1;
}

/* The limit allows one product for the start vector and those of one basis, so that there are Ritz values. */
static att_status iterate(search *s, workspace *w, end *e)
{
    int n = s->op->size, task = 0, info = 1, pointers[14] = {0}, share = s->options->most_products / 2;
    int settings[11] = {1, 0, most_restarts(w, share), 1, 0, 0, 1}, limit = s->products + 1 + w->basis + share;
    draw(s, w->start);
    for (;;) {
        dnaupd_c(&task, "I", n, e->which, 1, s->options->tolerance / 2, w->start, w->basis, w->vectors, n, settings,
                 pointers, w->work, w->projected, w->projected_size, &info);
        if ((task != 1 && task != -1) || s->products >= limit)
            break;
        const double *x = w->work + pointers[0] - 1;
        double *y = w->work + pointers[1] - 1;
        ATT_TRY(multiply(s, x, y));
        for (int i = 0; i < n; i++)
            y[i] -= e->shift * x[i];
    }
    if (info < 0)
        return att_fail(s->context, ATT_ERR_INTERNAL, "ARPACK's dnaupd failed for an operator of size %d (info %d)", n,
                        info);
    take_ritz(w, pointers, e);
    ATT_TRY(check_residual(s, w, pointers, e));
    e->converged = e->residual <= s->options->tolerance * s->scale;
    return ATT_OK;
}

static att_status find_by_arnoldi(search *s, end *left, end *right)
{
    workspace w = {0};
    ATT_TRY(allocate(s, &w));
    att_status status = estimate_scale(s, w.start, w.work);
    left->converged = right->converged = true;
    if (status == ATT_OK && s->scale > 0) {
        left->shift = s->scale;
        right->shift = -s->scale;
        pthread_mutex_lock(&arpack);
        status = iterate(s, &w, left);
        if (status == ATT_OK)
            status = iterate(s, &w, right);
        pthread_mutex_unlock(&arpack);
    }
    att_free(s->context, w.block);
    return status;
}

att_status att_spectrum_ends_find(att_context *context, const att_operator *op, const att_spectrum_options *options,
                                  att_spectrum_ends *ends)
{
    att_spectrum_options defaults = att_spectrum_options_defaults();
    search s = {.context = context, .op = op, .options = options ? options : &defaults};
    end left = {.which = "SR"}, right = {.which = "LR"};
    ATT_TRY(check(context, op, s.options));
    bool dense = op->size <= s.options->dense;
    ATT_TRY(dense ? find_dense(&s, &left, &right) : find_by_arnoldi(&s, &left, &right));
    *ends = (att_spectrum_ends){.left = left.value,
                                .right = right.value,
                                .stiffness_index = fmax(fabs(left.value.re), fabs(right.value.re)),
                                .residual = s.scale > 0 ? fmax(left.residual, right.residual) / s.scale : 0,
                                .converged = left.converged && right.converged,
                                .dense = dense,
                                .products = s.products};
    return ATT_OK;
}
