#include <math.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/rows.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/residual_norms.h"

/* Sums of one sample's columns. */
typedef struct column_sums {
    float *centre, *whole, *rest; /* per column: the centre; sums of |x|; sums of |x - centre| */
} column_sums;

typedef struct norms {
    float one, infinity;
    double squares;
} norms;

ATT_INLINE vf v_abs(vf x)
{
    return (vf)((vi)x & 0x7fffffff);
}

ATT_INLINE void add_row(rows_of x, int64_t columns, const column_sums *sums, norms *whole, norms *rest)
{
    vf row = {0}, row_rest = {0}, squares = {0}, squares_rest = {0};
    for (int64_t i = 0; i < columns; i += VW) {
        vf value = v_get_until(x.x, x.first + i, x.first + columns, x.is_bf16);
        vf left = value - v_get_until(sums->centre, i, columns, false);
        row += v_abs(value);
        row_rest += v_abs(left);
        squares = v_fma(value, value, squares);
        squares_rest = v_fma(left, left, squares_rest);
        v_store(sums->whole + i, v_load(sums->whole + i) + v_abs(value));
        v_store(sums->rest + i, v_load(sums->rest + i) + v_abs(left));
    }
    whole->infinity = fmaxf(whole->infinity, v_sum(row));
    rest->infinity = fmaxf(rest->infinity, v_sum(row_rest));
    whole->squares += (double)v_sum(squares);
    rest->squares += (double)v_sum(squares_rest);
}

static void put_norms(norms n, const float *sums, int64_t columns, float *out)
{
    for (int64_t i = 0; i < columns; i++)
        n.one = fmaxf(n.one, sums[i]);
    out[0] = n.one;
    out[1] = n.infinity;
    out[2] = (float)sqrt(n.squares);
}

ATT_INLINE void put_means(rows_of x, int64_t rows, int64_t columns, float *centre)
{
    rows_add_as(x, (rows_of){0}, rows, columns, 0, columns, centre);
    for (int64_t i = 0; i < columns; i++)
        centre[i] /= (float)rows;
}

/* Maps f32 to unsigned integers in the same order. */
ATT_INLINE vu key_of(vf x)
{
    vu bits = (vu)x;
    return bits ^ ((vu)((vi)bits >> 31) | 0x80000000u);
}

ATT_INLINE vf from_key(vu key)
{
    return (vf)(key ^ ((vu)((vi)~key >> 31) | 0x80000000u));
}

/* For each of VW columns, the element at index `place` in ascending order, found bit by bit from the highest bit. */
ATT_INLINE vf select_place(const vu *keys, int64_t rows, int64_t place)
{
    vu found = {0};
    for (int bit = 31; bit >= 0; bit--) {
        vu candidate = found | 1u << bit;
        vi below = {0};
        for (int64_t row = 0; row < rows; row++)
            below -= (vi)(keys[row] < candidate);
        found |= (vu)(below <= (int)place) & 1u << bit;
    }
    return from_key(found);
}

/* keys: memory for one vector per row. */
ATT_INLINE void put_medians(rows_of x, int64_t rows, int64_t columns, vu *keys, float *centre)
{
    for (int64_t i = 0; i < columns; i += VW) {
        for (int64_t row = 0; row < rows; row++)
            keys[row] = key_of(v_get_until(x.x, x.first + row * columns + i, x.first + (row + 1) * columns, x.is_bf16));
        vf low = select_place(keys, rows, (rows - 1) / 2);
        vf high = rows % 2 ? low : select_place(keys, rows, rows / 2);
        v_store(centre + i, 0.5f * low + 0.5f * high);
    }
}

ATT_INLINE void residual_norms_as(const att_call *call, bool is_bf16)
{
    int64_t rows = call->problem->in[0].shape.dims[0], columns = call->problem->in[0].shape.dims[1];
    int64_t padded = (columns + VW - 1) / VW * VW;
    column_sums sums = {call->scratch, (float *)call->scratch + padded, (float *)call->scratch + 2 * padded};
    att_range part = att_part_of(call, call->problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        rows_of x = {call->in[0], sample * rows * columns, is_bf16};
        norms whole = {0}, rest = {0};
        memset(call->scratch, 0, (size_t)(3 * padded) * sizeof(float));
        if (ATT_ATTRS(call->problem, centre)->median)
            put_medians(x, rows, columns, (vu *)((float *)call->scratch + 3 * padded), sums.centre);
        else
            put_means(x, rows, columns, sums.centre);
        for (int64_t row = 0; row < rows; row++, x.first += columns)
            add_row(x, columns, &sums, &whole, &rest);
        put_norms(whole, sums.whole, columns, (float *)call->out[0] + 6 * sample);
        put_norms(rest, sums.rest, columns, (float *)call->out[0] + 6 * sample + 3);
    }
}

/* Parts share the samples. */
static att_status residual_norms_run(const att_call *call)
{
    return run_for_type(call, residual_norms_as, &call->problem->in[0]);
}

static att_status residual_norms_prepare(const att_problem *problem, att_prepared *prepared)
{
    int64_t padded = (problem->in[0].shape.dims[1] + VW - 1) / VW * VW;
    int64_t keys = ATT_ATTRS(problem, centre)->median ? problem->in[0].shape.dims[0] * VW : 0;
    prepared->scratch_bytes = (size_t)(3 * padded + keys) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(residual_norms, .bf16_in = 1, .prepare = residual_norms_prepare, .run = residual_norms_run);
