#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/gemm.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/batch_moments.h"

/* Moments of all pairs of channels, in f32. An estimate of the mean is subtracted from the rows before they are
 * multiplied, so that a large mean does not cost accuracy. The sums of the differences correct the estimate. */

/* DEPTH: rows per pass, which fit into the first-level cache. BLOCK: rows of the result per block; the result is
 * symmetric, so a block omits the columns before its first row. PROBED: rows from which the mean is estimated. SUMS:
 * independent sums of each column. */
enum { DEPTH = 128, BLOCK = 16, PROBED = 32, SUMS = 4 };

/* Scratch. Rows have length `padded`. */
typedef struct gram {
    int64_t columns, padded, rows;
    float *mean, *sum, *packed, *product;
} gram;

static gram gram_of(const att_problem *problem, float *scratch)
{
    int64_t columns = att_columns(&problem->in[0]), padded = whole_vectors(columns);
    gram g = {
        .columns = columns, .padded = padded, .rows = att_shape_count(problem->in[0].shape) / columns, .mean = scratch};
    g.sum = g.mean + padded;
    g.packed = g.sum + padded;
    g.product = g.packed + DEPTH * padded;
    return g;
}

static att_status gram_prepare(const att_problem *problem, att_prepared *prepared)
{
    int64_t padded = whole_vectors(att_columns(&problem->in[0]));
    prepared->scratch_bytes = (size_t)(padded * (2 + DEPTH + padded)) * sizeof(float);
    return ATT_OK;
}

/* Estimates the mean from some of the rows that begin at element `first` of x. */
ATT_INLINE void estimate_mean(const gram *g, const void *x, int64_t first, bool is_bf16)
{
    int64_t step = (g->rows + PROBED - 1) / PROBED, count = (g->rows + step - 1) / step;
    for (int64_t column = 0; column < g->columns; column += VW) {
        vf sum = {0};
        for (int64_t row = 0; row < g->rows; row += step) {
            int64_t at = first + row * g->columns;
            sum += v_get_until(x, at + column, at + g->columns, is_bf16);
        }
        v_store(g->mean + column, sum * (1 / (float)count));
    }
}

/* Packs `count` rows from element `first` on, minus the estimated mean; columns past the last are 0. The local sums
 * start at 0 in each call, because a long sum of rounded bf16 differences drifts. */
ATT_INLINE void pack_rows(const gram *g, const void *x, int64_t first, int64_t count, bool is_bf16)
{
    for (int64_t column = 0; column < g->columns; column += VW) {
        vf mean = v_load(g->mean + column), sum[SUMS] = {{0}};
        for (int64_t row = 0; row < count; row += SUMS)
            for (int i = 0; i < SUMS && row + i < count; i++) {
                int64_t at = first + (row + i) * g->columns;
                vf difference = v_get_until(x, at + column, at + g->columns, is_bf16) - mean;
                v_store(g->packed + (row + i) * g->padded + column, difference);
                sum[i] += difference;
            }
        v_store(g->sum + column, v_load(g->sum + column) + (sum[0] + sum[1] + (sum[2] + sum[3])));
    }
}

/* Adds to rows [begin, end) of the product, from the diagonal's block on. */
static void add_products(const gram *g, int64_t count, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row += BLOCK) {
        int64_t height = end - row < BLOCK ? end - row : BLOCK;
        gemm(GEMM_F32, height, g->padded - row, count, (gemm_a){g->packed + row, 1, g->padded},
             (gemm_b){g->packed + row, g->padded}, (gemm_c){g->product + row * g->padded + row, g->padded, 1, true});
    }
}

/* Stores row `row` of the moments and, by symmetry, its column. */
static void put_row(const gram *g, int64_t row, float *moments)
{
    const float *product = g->product + row * g->padded;
    float difference = g->sum[row] / (float)g->rows;
    for (int64_t column = row; column < g->columns; column++) {
        float value = product[column] - difference * g->sum[column];
        moments[row * g->columns + column] = value;
        moments[column * g->columns + row] = value;
    }
}

/* Computes rows [begin, end) of the moments of `sample`, and its mean if begin is 0. */
ATT_INLINE void run_sample(const att_call *call, const gram *g, int64_t sample, int64_t begin, int64_t end,
                           bool is_bf16)
{
    const void *x = call->in[0];
    float *to = (float *)call->out[0] + sample * (g->columns + 1) * g->columns;
    int64_t first = sample * g->rows * g->columns;
    estimate_mean(g, x, first, is_bf16);
    memset(g->sum, 0, (size_t)g->padded * sizeof(float));
    memset(g->product + begin * g->padded, 0, (size_t)((end - begin) * g->padded) * sizeof(float));
    for (int64_t row = 0; row < g->rows; row += DEPTH) {
        int64_t count = g->rows - row < DEPTH ? g->rows - row : DEPTH;
        pack_rows(g, x, first + row * g->columns, count, is_bf16);
        add_products(g, count, begin, end);
    }
    for (int64_t row = begin; row < end && row < g->columns; row++)
        put_row(g, row, to + g->columns);
    for (int64_t column = 0; begin == 0 && column < g->columns; column++)
        to[column] = g->mean[column] + g->sum[column] / (float)g->rows;
}

/* Parts share the blocks of all samples. */
static att_status gram_run(const att_call *call)
{
    gram g = gram_of(call->problem, call->scratch);
    int64_t blocks = (g.padded + BLOCK - 1) / BLOCK;
    bool is_bf16 = att_is_bf16(&call->problem->in[0]);
    att_range own_pieces = att_part_of(call, blocks * call->problem->group, 1);
    for (int64_t next, block = own_pieces.begin; block < own_pieces.end; block = next) {
        int64_t sample = block / blocks, begin = block % blocks * BLOCK;
        next = (sample + 1) * blocks < own_pieces.end ? (sample + 1) * blocks : own_pieces.end;
        int64_t end = begin + (next - block) * BLOCK < g.padded ? begin + (next - block) * BLOCK : g.padded;
        if (is_bf16)
            run_sample(call, &g, sample, begin, end, true);
        else
            run_sample(call, &g, sample, begin, end, false);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(channel_gram, .bf16_in = 1, .prepare = gram_prepare, .run = gram_run);

/* --- merging over the batch, in f64------------------------------------------------------------------------------- */

static void mean_of_samples(const att_call *call, int64_t columns, double *mean)
{
    memset(mean, 0, (size_t)columns * sizeof *mean);
    for (int64_t sample = 0; sample < call->samples; sample++) {
        const float *from = (const float *)call->in[0] + sample * (columns + 1) * columns;
#pragma omp simd
        for (int64_t k = 0; k < columns; k++)
            mean[k] += (double)from[k];
    }
    for (int64_t k = 0; k < columns; k++)
        mean[k] /= (double)call->samples;
}

/* Row k from the diagonal on and, by symmetry, column k (Chan, Golub, LeVeque 1983, for all samples at once). */
static void merge_row(const att_call *call, int64_t columns, int64_t k, const double *mean, double *sum)
{
    double rows = (double)ATT_ATTRS(call->problem, moments)->rows, share = 1 / (rows * (double)call->samples);
    float *to = (float *)call->out[0];
    memset(sum, 0, (size_t)columns * sizeof *sum);
    for (int64_t sample = 0; sample < call->samples; sample++) {
        const float *from = (const float *)call->in[0] + sample * (columns + 1) * columns;
        const float *row = from + (1 + k) * columns;
        double difference = rows * ((double)from[k] - mean[k]);
#pragma omp simd
        for (int64_t j = k; j < columns; j++)
            sum[j] += (double)row[j] + difference * ((double)from[j] - mean[j]);
    }
    to[k] = (float)mean[k];
    for (int64_t j = k; j < columns; j++)
        to[(1 + k) * columns + j] = to[(1 + j) * columns + k] = (float)(sum[j] * share);
}

/* Parts take rows in turn, because the first rows are the longest. */
static att_status merge_run(const att_call *call)
{
    int64_t columns = att_columns(&call->problem->in[0]);
    double *mean = call->scratch, *sum = mean + columns;
    mean_of_samples(call, columns, mean);
    for (int64_t k = call->part; k < columns; k += call->parts)
        merge_row(call, columns, k, mean, sum);
    return ATT_OK;
}

static att_status merge_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = 2 * (size_t)att_columns(&problem->in[0]) * sizeof(double);
    return ATT_OK;
}

ATT_SIMD_KERNEL(merge_gram, .prepare = merge_prepare, .run = merge_run);
