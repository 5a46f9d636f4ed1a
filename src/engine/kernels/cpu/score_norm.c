/* The largest singular value s of M = scale W_q' W_k, from matrices of the head's width d: with G_q = W_q W_q' and G_k
 * = W_k W_k' = L L', s^2 is scale^2 times the largest eigenvalue of S = L' G_q L. S is squared again and again, each
 * time divided by its trace. After m = 2^i powers the eigenvalue tr(S^(m+1)) / tr(S^m) is too small by at most d / m of
 * itself, whatever the gap to the next one. */
#include "engine/ops/score_norm.h"

#include <math.h>
#include <string.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

enum { MOST_SQUARINGS = 40, MATRICES = 5 };
#define PRECISION 1e-14

/* In four parts, which the compiler may add side by side. */
static double dot(const float *a, const float *b, int64_t count)
{
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += (double)a[i + j] * (double)b[i + j];
    for (; i < count; i++)
        sum[0] += (double)a[i] * (double)b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* y = x x' of the rows of x [d, columns], in f64. */
static void gram(const float *x, int64_t d, int64_t columns, double *y)
{
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j <= i; j++)
            y[i * d + j] = y[j * d + i] = dot(x + i * columns, x + j * columns, columns);
}

/* y = a b */
static void multiply(const double *a, const double *restrict b, int64_t d, double *restrict y)
{
    memset(y, 0, (size_t)(d * d) * sizeof *y);
    for (int64_t i = 0; i < d; i++)
        for (int64_t k = 0; k < d; k++) {
            const double factor = a[i * d + k];
            for (int64_t j = 0; j < d; j++)
                y[i * d + j] += factor * b[k * d + j];
        }
}

static double trace(const double *x, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++)
        sum += x[i * d + i];
    return sum;
}

/* The Cholesky factor of g, turned: upper = L' with g = L L'. A pivot that is 0 except for rounding gets a row of
 * zeros.
 */
static void factor(const double *g, int64_t d, double *upper)
{
    const double least = 1e-15 * trace(g, d);
    memset(upper, 0, (size_t)(d * d) * sizeof *upper);
    for (int64_t k = 0; k < d; k++) {
        double pivot = g[k * d + k];
        for (int64_t i = 0; i < k; i++)
            pivot -= upper[i * d + k] * upper[i * d + k];
        if (pivot <= least)
            continue;
        for (int64_t j = k; j < d; j++) {
            double sum = g[k * d + j];
            for (int64_t i = 0; i < k; i++)
                sum -= upper[i * d + k] * upper[i * d + j];
            upper[k * d + j] = sum / sqrt(pivot);
        }
    }
}

/* y = x' */
static void turn(const double *x, int64_t d, double *y)
{
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++)
            y[j * d + i] = x[i * d + j];
}

/* tr(a b) of symmetric matrices */
static double trace_of_product(const double *a, const double *b, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d * d; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The largest eigenvalue of s, which is symmetric without negative eigenvalues. power, next: scratch. */
static double largest_eigenvalue(const double *s, int64_t d, double *power, double *next)
{
    double found = 0, size = trace(s, d);
    if (!(size > 0))
        return size < 0 ? 0 : size; /* keeps NaN */
    for (int64_t i = 0; i < d * d; i++)
        power[i] = s[i] / size;
    for (int squaring = 0; squaring < MOST_SQUARINGS; squaring++) {
        double before = found;
        found = trace_of_product(s, power, d);
        multiply(power, power, d, next);
        size = trace(next, d);
        for (int64_t i = 0; i < d * d; i++)
            power[i] = next[i] / size;
        if (fabs(found - before) <= PRECISION * found && 1 - size <= PRECISION)
            break;
    }
    return found;
}

/* matrices: scratch, MATRICES of them. */
static double norm_of(const float *w_q, const float *w_k, int64_t d, int64_t columns, double *matrices)
{
    const int64_t size = d * d;
    double *g = matrices, *upper = g + size, *lower = upper + size, *product = lower + size, *s = product + size;
    gram(w_k, d, columns, g);
    factor(g, d, upper);
    turn(upper, d, lower);
    gram(w_q, d, columns, g);
    multiply(upper, g, d, product);
    multiply(product, lower, d, s);
    return sqrt(largest_eigenvalue(s, d, upper, lower));
}

static att_status norm_prepare(const att_problem *problem, att_prepared *prepared)
{
    const att_score_norm_attrs *attrs = problem->attrs;
    prepared->scratch_bytes = (size_t)(MATRICES * attrs->width * attrs->width) * sizeof(double);
    return ATT_OK;
}

/* Parts share the heads. */
static att_status norm_run(const att_call *call)
{
    const att_score_norm_attrs *attrs = call->problem->attrs;
    const int64_t *q_dims = call->problem->in[0].shape.dims, *k_dims = call->problem->in[1].shape.dims;
    const int64_t samples = att_rows(call, &call->problem->in[0]) / q_dims[0];
    att_range part = att_part_of(call, samples * attrs->heads, 1);
    for (int64_t at = part.begin; at < part.end; at++) {
        int64_t sample = at / attrs->heads, q = at % attrs->heads, k = q / (attrs->heads / attrs->key_heads);
        const float *w_q = call->in[0], *w_k = call->in[1];
        w_q += (sample * q_dims[0] + attrs->q_offset + q * attrs->width) * q_dims[1];
        w_k += (sample * k_dims[0] + attrs->k_offset + k * attrs->width) * k_dims[1];
        ((float *)call->out[0])[at] = (float)(attrs->scale * norm_of(w_q, w_k, attrs->width, q_dims[1], call->scratch));
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(score_norm, .prepare = norm_prepare, .run = norm_run);
