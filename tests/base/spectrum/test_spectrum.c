/* Eigenvalues against closed forms, and Arnoldi iteration against dense decompositions. */

#include <pthread.h>

#include "base/io/scratch.h"
#include "base/spectrum/singular.h"
#include "base/spectrum/spectrum.h"
#include "formula.h"

enum { MOST = 400 };
static const double pi = 3.14159265358979323846;

static att_status second_difference(void *user, const double *x, double *y)
{
    int n = *(const int *)user;
    for (int i = 0; i < n; i++)
        y[i] = (i > 0 ? x[i - 1] : 0) - 2 * x[i] + (i + 1 < n ? x[i + 1] : 0);
    return ATT_OK;
}

typedef struct matrix {
    int size;
    double a[MOST * MOST];
} matrix;

static att_status product(void *user, const double *x, double *y)
{
    const matrix *m = user;
    for (int i = 0; i < m->size; i++) {
        y[i] = 0;
        for (int j = 0; j < m->size; j++)
            y[i] += m->a[i * m->size + j] * x[j];
    }
    return ATT_OK;
}

/* Not symmetric, with complex eigenvalues. */
static matrix *random_matrix(int size)
{
    matrix *m = malloc(sizeof *m);
    m->size = size;
    for (int i = 0; i < size * size; i++)
        m->a[i] = formula("spectrum", (uint32_t)i);
    for (int i = 0; i < size; i++)
        m->a[i * size + i] -= 3;
    return m;
}

SCRATCH_TEST(a_rotation_has_a_complex_pair)
{
    const double a[] = {-1, -5, 5, -1};
    att_eigenvalue values[2];
    assert_int_equal(att_spectrum_eigenvalues(self->context, 2, a, values), ATT_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(fabs(values[i].re + 1) < 1e-14);
        assert_true(fabs(fabs(values[i].im) - 5) < 1e-14);
    }
}

SCRATCH_TEST(symmetric_matrices_have_orthonormal_vectors)
{
    const double a[] = {2, -1, 0, -1, 2, -1, 0, -1, 2};
    double values[3], vectors[9];
    assert_int_equal(att_spectrum_symmetric(self->context, 3, a, values, vectors), ATT_OK);
    for (int k = 0; k < 3; k++) {
        assert_true(fabs(values[k] - (2 - 2 * cos((k + 1) * pi / 4))) < 1e-14);
        for (int i = 0; i < 3; i++) {
            double image = 0;
            for (int j = 0; j < 3; j++)
                image += a[i * 3 + j] * vectors[k * 3 + j];
            assert_true(fabs(image - values[k] * vectors[k * 3 + i]) < 1e-14);
        }
    }
}

/* Of [3 0 0; 4 5 0] and of its transpose: the eigenvalues of A A' = [9 12; 12 41] are 25 +- 20. */
SCRATCH_TEST(singular_values_of_both_orientations)
{
    static const double lying[] = {3, 0, 0, 4, 5, 0}, standing[] = {3, 4, 0, 5, 0, 0};
    for (int i = 0; i < 2; i++) {
        double entries[6], values[2];
        size_t bytes;
        memcpy(entries, i ? standing : lying, sizeof entries);
        assert_int_equal(att_spectrum_singular_work(self->context, i ? 3 : 2, i ? 2 : 3, &bytes), ATT_OK);
        void *work = malloc(bytes);
        assert_non_null(work);
        assert_int_equal(att_spectrum_singular(self->context, i ? 3 : 2, i ? 2 : 3, entries, values, work), ATT_OK);
        free(work);
        assert_true(fabs(values[0] - sqrt(45)) < 1e-14 && fabs(values[1] - sqrt(5)) < 1e-14); /* measured: 9e-16 */
    }
}

SCRATCH_TEST(sizes_without_singular_values_are_refused)
{
    static const struct {
        int64_t rows, columns;
        att_status status;
    } cases[] = {{1, 1, ATT_OK},           {1, 65536, ATT_OK},
                 {65536, 1, ATT_OK},       {0, 1, ATT_ERR_ARGUMENT},
                 {1, 0, ATT_ERR_ARGUMENT}, {46341, 46341, ATT_ERR_ARGUMENT},
                 {46340, 46340, ATT_OK},   {1, 1LL << 31, ATT_ERR_ARGUMENT},
                 {65536, 32767, ATT_OK},   {65536, 32768, ATT_ERR_ARGUMENT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes;
        assert_int_equal(att_spectrum_singular_work(self->context, cases[i].rows, cases[i].columns, &bytes),
                         cases[i].status);
    }
}

/* lambda_k = -4 sin^2(k pi / 2(n + 1)); the ends are k = n and k = 1. */
SCRATCH_TEST(arnoldi_finds_both_ends_of_a_known_spectrum)
{
    int n = MOST;
    const att_operator op = {n, second_difference, &n};
    att_spectrum_ends ends;
    assert_int_equal(att_spectrum_ends_find(self->context, &op, NULL, &ends), ATT_OK);
    assert_true(ends.converged && !ends.dense && ends.residual <= 1e-6);
    double left = -4 * pow(sin(n * pi / 2 / (n + 1)), 2), right = -4 * pow(sin(pi / 2 / (n + 1)), 2);
    /* The tolerance of the residual, 1e-6 |J|, bounds the error of a symmetric matrix. */
    assert_true(fabs(ends.left.re - left) < 4e-6);
    assert_true(fabs(ends.right.re - right) < 4e-6);
    assert_true(fabs(ends.stiffness_index + left) < 4e-6);
}

/* On a ring, with the eigenvalues -4 sin^2(k pi / n), of which the largest is 0. */
static att_status ring(void *user, const double *x, double *y)
{
    int n = *(const int *)user;
    for (int i = 0; i < n; i++)
        y[i] = x[(i + n - 1) % n] - 2 * x[i] + x[(i + 1) % n];
    return ATT_OK;
}

/* Without a shift of the operator, ARPACK finds the next eigenvalue, -2.5e-4, instead of 0. */
SCRATCH_TEST(an_end_at_0_is_found)
{
    int n = MOST;
    const att_operator op = {n, ring, &n};
    att_spectrum_ends ends;
    assert_int_equal(att_spectrum_ends_find(self->context, &op, NULL, &ends), ATT_OK);
    assert_true(ends.converged && fabs(ends.right.re) < 1e-6 && fabs(ends.left.re + 4) < 4e-6);
}

SCRATCH_TEST(arnoldi_agrees_with_the_dense_decomposition)
{
    matrix *m = random_matrix(100);
    const att_operator op = {m->size, product, m};
    att_spectrum_options options = att_spectrum_options_defaults();
    att_spectrum_ends dense, arnoldi;
    options.dense = 100;
    assert_int_equal(att_spectrum_ends_find(self->context, &op, &options, &dense), ATT_OK);
    options.dense = 3;
    options.tolerance = 1e-10;
    assert_int_equal(att_spectrum_ends_find(self->context, &op, &options, &arnoldi), ATT_OK);
    assert_true(dense.dense && arnoldi.converged);
    assert_true(fabs(dense.left.re - arnoldi.left.re) < 1e-8 && fabs(dense.right.re - arnoldi.right.re) < 1e-8);
    assert_true(fabs(dense.left.im - arnoldi.left.im) < 1e-8 && fabs(dense.right.im - arnoldi.right.im) < 1e-8);
    assert_int_equal(dense.products, 100);
    free(m);
}

/* ARPACK lists the negative imaginary part of some of these pairs first, of which the other one is reported. */
SCRATCH_TEST(the_value_of_a_pair_with_a_positive_imaginary_part_is_reported)
{
    int pairs = 0;
    double worst = 0;
    for (int size = 20; size < 40; size++) {
        matrix *m = random_matrix(size);
        const att_operator op = {size, product, m};
        att_spectrum_options options = att_spectrum_options_defaults();
        att_spectrum_ends dense, arnoldi;
        assert_int_equal(att_spectrum_ends_find(self->context, &op, &options, &dense), ATT_OK);
        options.dense = 3;
        options.basis = 20;
        options.tolerance = 1e-10;
        assert_int_equal(att_spectrum_ends_find(self->context, &op, &options, &arnoldi), ATT_OK);
        assert_true(arnoldi.converged && dense.left.im >= 0 && dense.right.im >= 0);
        worst = fmax(worst, fmax(fabs(dense.left.im - arnoldi.left.im), fabs(dense.right.im - arnoldi.right.im)));
        pairs += (dense.left.im > 0) + (dense.right.im > 0);
        free(m);
    }
    printf("%d pairs, largest error of an imaginary part %.2g\n", pairs, worst);
    assert_true(pairs >= 10 && worst < 1e-8); /* measured: 1.8e-10 */
}

SCRATCH_TEST(small_operators_are_decomposed)
{
    matrix *m = random_matrix(2);
    const att_operator op = {2, product, m};
    static const struct {
        double a[4], index, im;
    } cases[] = {{{-1, -5, 5, -1}, 1, 5}, {{3, 0, 0, -1}, 3, 0}, {{1, 0, 0, -3}, 3, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_spectrum_ends ends;
        memcpy(m->a, cases[i].a, sizeof cases[i].a);
        assert_int_equal(att_spectrum_ends_find(self->context, &op, NULL, &ends), ATT_OK);
        assert_true(ends.dense && ends.converged && ends.residual == 0);
        assert_int_equal(ends.products, 2);
        assert_true(fabs(ends.stiffness_index - cases[i].index) < 1e-14);
        assert_true(fabs(ends.left.im - cases[i].im) < 1e-14 && fabs(ends.right.im - cases[i].im) < 1e-14);
    }
    free(m);
}

/* Counts the products that continue a power iteration: their vector is the previous product, normalised. */
typedef struct power {
    int size, steps;
    double next[MOST];
} power;

static att_status watched_difference(void *user, const double *x, double *y)
{
    power *p = user;
    double norm = 0, distance = 0;
    (void)second_difference(&p->size, x, y);
    for (int i = 0; i < p->size; i++) {
        distance = fmax(distance, fabs(x[i] - p->next[i]));
        norm += y[i] * y[i];
    }
    p->steps += distance < 1e-12;
    for (int i = 0; i < p->size; i++)
        p->next[i] = y[i] / sqrt(norm);
    return ATT_OK;
}

SCRATCH_TEST(ten_steps_of_power_iteration_estimate_the_scale)
{
    power p = {.size = 100};
    const att_operator op = {p.size, watched_difference, &p};
    att_spectrum_ends ends;
    assert_int_equal(att_spectrum_ends_find(self->context, &op, NULL, &ends), ATT_OK);
    assert_int_equal(p.steps, 9); /* the first step has no previous one */
}

static att_status scale(void *user, const double *x, double *y)
{
    for (int i = 0; i < 80; i++)
        y[i] = *(const double *)user * x[i];
    return ATT_OK;
}

/* The Krylov space of a multiple of the identity has one dimension. */
SCRATCH_TEST(multiples_of_the_identity_are_found)
{
    for (double factor = -7; factor <= 7; factor += 7) {
        const att_operator op = {80, scale, &factor};
        att_spectrum_ends ends;
        assert_int_equal(att_spectrum_ends_find(self->context, &op, NULL, &ends), ATT_OK);
        assert_true(ends.converged);
        assert_true(fabs(ends.left.re - factor) < 1e-5 && fabs(ends.right.re - factor) < 1e-5);
    }
}

SCRATCH_TEST(a_limit_of_products_ends_the_search)
{
    int n = MOST;
    const att_operator op = {n, second_difference, &n};
    att_spectrum_options options = att_spectrum_options_defaults();
    att_spectrum_ends ends;
    options.tolerance = 1e-13;
    options.most_products = 200;
    assert_int_equal(att_spectrum_ends_find(self->context, &op, &options, &ends), ATT_OK);
    assert_false(ends.converged);
    assert_true(ends.products <= 220);
    options.most_products = 30; /* fewer than the basis has vectors */
    options.tolerance = 1e-6;
    assert_int_equal(att_spectrum_ends_find(self->context, &op, &options, &ends), ATT_OK);
    assert_false(ends.converged);
    /* Ten steps of power iteration; for each end a product for the start vector, those of one basis, two for the
     * residual. */
    options.most_products = 1;
    assert_int_equal(att_spectrum_ends_find(self->context, &op, &options, &ends), ATT_OK);
    assert_int_equal(ends.products, 10 + 2 * (1 + 48 + 1));
    assert_false(ends.converged);
    assert_true(ends.left.re < -3.9 && ends.right.re > -0.1);
}

/* Also where the residual is little above the tolerance. */
SCRATCH_TEST(an_end_has_converged_if_its_residual_is_within_the_tolerance)
{
    int n = MOST, near = 0, converged = 0;
    const att_operator op = {n, second_difference, &n};
    att_spectrum_options options = att_spectrum_options_defaults();
    options.tolerance = 1e-4;
    for (options.most_products = 100; options.most_products <= 2000; options.most_products += 50) {
        att_spectrum_ends ends;
        assert_int_equal(att_spectrum_ends_find(self->context, &op, &options, &ends), ATT_OK);
        assert_int_equal(ends.converged, ends.residual <= options.tolerance);
        near += ends.residual > options.tolerance && ends.residual < 10 * options.tolerance;
        converged += ends.converged;
    }
    assert_true(near > 0 && converged > 0);
}

/* Products in single precision, whose errors ARPACK's own bound does not see. */
static att_status rounded_difference(void *user, const double *x, double *y)
{
    (void)second_difference(user, x, y);
    for (int i = 0; i < *(const int *)user; i++)
        y[i] = (double)(float)y[i] + 1e-7 * formula("rounding", (uint32_t)(1e6 * fabs(x[i])));
    return ATT_OK;
}

SCRATCH_TEST(the_residual_includes_the_error_of_products)
{
    int n = MOST;
    const att_operator op = {n, rounded_difference, &n};
    att_spectrum_options options = att_spectrum_options_defaults();
    att_spectrum_ends ends;
    options.tolerance = 1e-9;
    assert_int_equal(att_spectrum_ends_find(self->context, &op, &options, &ends), ATT_OK);
    assert_true(!ends.converged && ends.residual > 1e-9 && ends.residual < 1e-5);
    assert_true(fabs(ends.stiffness_index - 4) < 1e-3);
}

static att_status turn_nan(void *user, const double *x, double *y)
{
    (void)x;
    for (int i = 0; i < *(const int *)user; i++)
        y[i] = i == 2 ? NAN : 0;
    return ATT_OK;
}

SCRATCH_TEST(wrong_options_are_refused)
{
    int n = 10;
    const att_operator op = {n, second_difference, &n};
    const att_spectrum_options good = att_spectrum_options_defaults();
    att_spectrum_options cases[10];
    att_spectrum_ends ends;
    for (int i = 0; i < 10; i++)
        cases[i] = good;
    cases[0].tolerance = 0, cases[1].tolerance = 1, cases[2].tolerance = NAN;
    cases[3].basis = 3, cases[4].basis = 257, cases[5].dense = 2, cases[6].most_products = 0;
    cases[7].basis = 4, cases[8].basis = 256, cases[9].dense = 3;
    for (int i = 0; i < 10; i++) {
        att_status expected = i < 7 ? ATT_ERR_ARGUMENT : ATT_OK;
        assert_int_equal(att_spectrum_ends_find(self->context, &op, &cases[i], &ends), expected);
        if (i < 7)
            assert_message_has(self, i < 3 ? "of a spectrum, expected a number between 0 and 1"
                                           : "of a spectrum, expected 4 to 256, at least 3, at least 1");
    }
}

SCRATCH_TEST(wrong_input_is_refused)
{
    int n = 100;
    const double infinite[] = {1, INFINITY, 0, 1};
    att_operator op = {n, turn_nan, &n};
    att_spectrum_ends ends;
    att_eigenvalue values[2];
    double numbers[2], vectors[4];
    assert_fails(self->context, att_spectrum_ends_find(self->context, &op, NULL, &ends), ATT_ERR_NONFINITE,
                 "component 2 of product 1 is nan");
    assert_fails(self->context, att_spectrum_eigenvalues(self->context, 2, infinite, values), ATT_ERR_NONFINITE,
                 "row 0, column 1 is inf");
    assert_int_equal(att_spectrum_eigenvalues(self->context, 0, infinite, values), ATT_ERR_ARGUMENT);
    assert_int_equal(att_spectrum_eigenvalues(self->context, 4096, infinite, values), ATT_ERR_NONFINITE);
    assert_fails(self->context, att_spectrum_eigenvalues(self->context, 4097, infinite, values), ATT_ERR_ARGUMENT,
                 "a matrix of size 4097, expected 1 to 4096");
    assert_int_equal(att_spectrum_symmetric(self->context, 2, infinite, numbers, vectors), ATT_ERR_NONFINITE);
    op.size = 0;
    assert_int_equal(att_spectrum_ends_find(self->context, &op, NULL, &ends), ATT_ERR_ARGUMENT);
}

static att_status find_small(scratch *s)
{
    int n = 70;
    const att_operator op = {n, second_difference, &n};
    att_spectrum_ends ends;
    att_spectrum_options options = att_spectrum_options_defaults();
    att_status status = att_spectrum_ends_find(s->context, &op, &options, &ends);
    options.dense = n;
    return status == ATT_OK ? att_spectrum_ends_find(s->context, &op, &options, &ends) : status;
}

SCRATCH_TEST(lack_of_memory_leaves_nothing)
{
    assert_survives_lack_of_memory(self, find_small);
}

typedef struct worker {
    int size;
    att_spectrum_ends ends;
    att_status status;
} worker;

/* Waits, so that threads take turns within an iteration. */
static att_status slow_second_difference(void *user, const double *x, double *y)
{
    usleep(20);
    return second_difference(user, x, y);
}

static void *work(void *user)
{
    worker *w = user;
    att_context *context = NULL;
    const att_operator op = {w->size, slow_second_difference, &w->size};
    w->status = att_context_create_with(NULL, NULL, &context);
    if (w->status == ATT_OK)
        w->status = att_spectrum_ends_find(context, &op, NULL, &w->ends);
    att_context_destroy(&context);
    return NULL;
}

/* ARPACK's state is static: without the lock, two iterations at once give wrong values. */
TEST(threads_find_what_one_thread_finds)
{
    enum { WORKERS = 4 };
    worker alone[WORKERS], together[WORKERS];
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        alone[i] = together[i] = (worker){.size = 100 + 50 * i};
        work(&alone[i]);
    }
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &together[i]), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(alone[i].status, ATT_OK);
        assert_int_equal(together[i].status, ATT_OK);
        assert_true(alone[i].ends.left.re == together[i].ends.left.re);
        assert_true(alone[i].ends.right.re == together[i].ends.right.re);
    }
}
