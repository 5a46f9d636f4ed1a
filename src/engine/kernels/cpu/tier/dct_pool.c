#include <math.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/dct_pool.h"

/* Weights of each row and each column of the map in each channel's output: the cosine bases combined with adaptive
 * average pooling. */
typedef struct tables {
    float *rows, *columns; /* [map height, C], [map width, C] */
} tables;

/* B(i, k, length) of attscope/ops.h. */
static double cosine(int64_t i, int k, int length)
{
    const double pi = 3.14159265358979323846;
    return cos(pi * k * ((double)i + 0.5) / length) / sqrt(length) * (k > 0 ? sqrt(2) : 1);
}

/* Adds frequency k to the channels [begin, end) of table [size, channels]. */
static void add_frequency(float *table, int64_t size, int64_t channels, int k, int length, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < length; i++) {
        int64_t first = i * size / length, last = ((i + 1) * size + length - 1) / length;
        double weight = cosine(i, k, length) / (double)(last - first);
        for (int64_t place = first; place < last; place++)
            for (int64_t c = begin; c < end; c++)
                table[place * channels + c] += (float)weight;
    }
}

static att_status make_tables(const att_problem *problem, att_prepared *prepared)
{
    const att_dct_attrs *attrs = problem->attrs;
    int64_t channels = att_columns(&problem->in[0]), width = channels / attrs->count;
    size_t places = (size_t)attrs->map_height + (size_t)attrs->map_width;
    size_t bytes = att_size_sum(64, att_size_product(att_size_product(places, (size_t)channels), sizeof(float)));
    tables *t = att_allocate(problem->context, bytes);
    if (!t)
        return att_fail_memory(problem->context, bytes, "the bases of a cosine transform");
    t->rows = (float *)((char *)t + 64);
    t->columns = t->rows + attrs->map_height * channels;
    for (int g = 0; g < attrs->count; g++) {
        add_frequency(t->rows, attrs->map_height, channels, attrs->rows[g], attrs->height, g * width, (g + 1) * width);
        add_frequency(t->columns, attrs->map_width, channels, attrs->columns[g], attrs->width, g * width,
                      (g + 1) * width);
    }
    prepared->state = t;
    return ATT_OK;
}

static void release_tables(att_context *context, void *state)
{
    att_free(context, state);
}

/* Pools `vectors` vectors of channels from c on; channels from `end` on do not exist. */
ATT_INLINE void pool_block(const att_call *call, int64_t sample, int64_t c, int64_t end, int vectors, bool is_bf16)
{
    enum { MOST = 4 };
    const att_dct_attrs *attrs = call->problem->attrs;
    const tables *t = call->state;
    int64_t channels = att_columns(&call->problem->in[0]);
    int64_t at = sample * attrs->map_height * attrs->map_width * channels;
    vf sum[MOST] = {{0}};
    for (int64_t i = 0; i < attrs->map_height; i++) {
        vf row[MOST] = {{0}};
        for (int64_t j = 0; j < attrs->map_width; j++, at += channels)
            for (int v = 0; v < vectors; v++) {
                int64_t k = c + v * VW;
                vf weight = v_get_until(t->columns, j * channels + k, j * channels + end, false);
                row[v] = v_fma(v_get_until(call->in[0], at + k, at + end, is_bf16), weight, row[v]);
            }
        for (int v = 0; v < vectors; v++)
            sum[v] = v_fma(v_get_until(t->rows, i * channels + c + v * VW, i * channels + end, false), row[v], sum[v]);
    }
    for (int v = 0; v < vectors; v++)
        v_put_until(call->out[0], sample * channels + c + v * VW, sample * channels + end, sum[v], false);
}

/* Parts share the channels of each sample. */
ATT_INLINE void pool_as(const att_call *call, bool is_bf16)
{
    att_range part = att_part_of(call, att_columns(&call->problem->in[0]), VW);
    for (int64_t sample = 0; sample < call->problem->group; sample++) {
        int64_t c = part.begin;
        for (; c + 4 * VW <= part.end; c += 4 * VW)
            pool_block(call, sample, c, c + 4 * VW, 4, is_bf16);
        for (; c < part.end; c += VW)
            pool_block(call, sample, c, part.end, 1, is_bf16);
    }
}

static att_status pool_run(const att_call *call)
{
    return run_for_type(call, pool_as, &call->problem->in[0]);
}

ATT_SIMD_KERNEL(dct_pool, .bf16_in = 1, .prepare = make_tables, .run = pool_run, .release = release_tables);

/* Parts share the rows of the maps. */
ATT_INLINE void grad_as(const att_call *call, bool is_bf16)
{
    const att_dct_attrs *attrs = call->problem->attrs;
    const tables *t = call->state;
    int64_t channels = att_columns(&call->problem->in[0]), height = attrs->map_height, width = attrs->map_width;
    att_range part = att_part_of(call, height * call->problem->group, 1);
    float *scaled = call->scratch;
    for (int64_t row = part.begin; row < part.end; row++) {
        const float *dy = (const float *)call->in[0] + row / height * channels;
        const float *weight = t->rows + row % height * channels;
#pragma omp simd
        for (int64_t c = 0; c < channels; c++)
            scaled[c] = dy[c] * weight[c];
        for (int64_t j = 0; j < width; j++) {
            int64_t at = (row * width + j) * channels, end = at + channels;
            for (int64_t c = 0; c < channels; c += VW) {
                vf column_weight = v_get_until(t->columns, j * channels + c, (j + 1) * channels, false);
                v_put_until(call->out[0], at + c, end, v_get_until(scaled, c, channels, false) * column_weight,
                            is_bf16);
            }
        }
    }
}

static att_status grad_run(const att_call *call)
{
    return run_for_type(call, grad_as, &call->problem->out[0]);
}

static att_status grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)att_columns(&problem->in[0]) * sizeof(float);
    return make_tables(problem, prepared);
}

ATT_SIMD_KERNEL(dct_pool_grad, .bf16_out = 1, .prepare = grad_prepare, .run = grad_run, .release = release_tables);
