#include "engine/kernels/cpu/tier/channels.h"
#include "engine/kernels/cpu/tiered.h"

/* The larger number; NaN if either is NaN. */
ATT_INLINE vf v_larger(vf a, vf b)
{
    vi take = (b > a) | (b != b);
    return (vf)((take & (vi)b) | (~take & (vi)a));
}

static inline float larger(float a, float b)
{
    return b > a || b != b ? b : a;
}

/* Updates the maxima of one block with `rows` wide rows from element `first` on. */
ATT_INLINE void max_block(const void *x, const channels *c, int64_t first, int64_t rows, int64_t column, float *largest,
                          bool is_bf16)
{
    vf l[CHANNELS_VECTORS];
    for (int v = 0; v < CHANNELS_VECTORS; v++)
        l[v] = v_load(largest + column + v * VW);
    for (int64_t row = 0; row < rows; row++)
        for (int v = 0; v < CHANNELS_VECTORS; v++)
            l[v] = v_larger(l[v], v_get(x, first + row * c->wide + column + v * VW, is_bf16));
    for (int v = 0; v < CHANNELS_VECTORS; v++)
        v_store(largest + column + v * VW, l[v]);
}

ATT_INLINE void max_rest(const void *x, int64_t first, int64_t begin, int64_t end, float *largest, bool is_bf16)
{
    for (int64_t i = begin; i < end; i += VW) {
        vf value = v_get_until(x, first + i, first + end, is_bf16);
        v_put_until(largest, i, end, v_larger(v_get_until(largest, i, end, false), value), false);
    }
}

static void max_fold(const channels *c, float *largest)
{
    for (int64_t half = c->wide / 2; half >= c->columns; half /= 2)
        for (int64_t i = 0; i < half; i++)
            largest[i] = larger(largest[i], largest[half + i]);
}

/* Maxima over rows [begin, end), for the columns `part` of wide rows. */
ATT_INLINE void max_of(const void *x, const channels *c, int64_t begin, int64_t end, att_range part, float *largest,
                       bool is_bf16)
{
    int64_t wide_rows = (end - begin) / c->fold, first = begin * c->columns, last = first + wide_rows * c->wide;
    int64_t blocks = part.begin + (part.end - part.begin) / CHANNELS_BLOCK * CHANNELS_BLOCK;
    for (int64_t i = 0; i < c->columns; i++)
        largest[i] = att_float_get(x, first + i, is_bf16);
    channels_repeat(c, largest);
    for (int64_t column = part.begin; column < blocks; column += CHANNELS_BLOCK)
        max_block(x, c, first, wide_rows, column, largest, is_bf16);
    for (int64_t at = first; blocks < part.end && at < last; at += c->wide)
        max_rest(x, at, blocks, part.end, largest, is_bf16);
    max_rest(x, last, 0, end * c->columns - last, largest, is_bf16);
    max_fold(c, largest);
}

/* Parts share the channels of all samples. */
ATT_INLINE void max_as(const att_call *call, bool is_bf16)
{
    const att_problem *problem = call->problem;
    channels c = channels_of(&problem->in[0]);
    float *largest = call->scratch;
    int64_t rows = att_rows(call, &problem->in[0]) / problem->group;
    att_range own_pieces = att_part_of(call, channels_pieces(&c) * problem->group, 1);
    for (int64_t sample = 0; sample < problem->group; sample++) {
        att_range share = channels_share(&c, own_pieces, sample), kept = channels_kept(&c, share);
        if (share.begin == share.end)
            continue;
        max_of(call->in[0], &c, sample * rows, (sample + 1) * rows, share, largest, is_bf16);
        memcpy((float *)call->out[0] + sample * c.columns + kept.begin, largest + kept.begin,
               (size_t)(kept.end - kept.begin) * sizeof *largest);
    }
}

static att_status max_run(const att_call *call)
{
    return run_for_type(call, max_as, &call->problem->in[0]);
}

static att_status max_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[0], 1);
    return ATT_OK;
}

ATT_SIMD_KERNEL(global_max, .bf16_in = 1, .prepare = max_prepare, .run = max_run);

/* Writes dx for up to `count` channels from element `first` on, over `rows` rows: dy at each channel's first maximum,
 * else 0. */
ATT_INLINE void write_first_maximum(const void *x, vf y, vf dy, void *dx, int64_t first, int64_t rows, int64_t columns,
                                    int64_t count, bool x_is_bf16, bool dx_is_bf16)
{
    vi open = ~(vi){0};
    for (int64_t e = first; e < first + rows * columns; e += columns) {
        vi here = open & (v_get_until(x, e, e + count, x_is_bf16) == y);
        v_put_until(dx, e, e + count, v_where(here, dy), dx_is_bf16);
        open &= ~here;
    }
}

/* Parts share the channels of each sample. */
ATT_INLINE void max_grad_as(const att_call *call, bool x_is_bf16, bool dx_is_bf16)
{
    const att_problem *problem = call->problem;
    const float *dy = call->in[0], *y = call->in[2];
    int64_t columns = att_columns(&problem->in[1]), rows = att_rows(call, &problem->in[1]) / problem->group;
    att_range part = att_part_of(call, columns, VW);
    for (int64_t sample = 0; sample < problem->group; sample++)
        for (int64_t i = part.begin; i < part.end; i += VW) {
            int64_t k = sample * columns + i, end = sample * columns + part.end;
            write_first_maximum(call->in[1], v_get_until(y, k, end, false), v_get_until(dy, k, end, false),
                                call->out[0], sample * rows * columns + i, rows, columns, part.end - i, x_is_bf16,
                                dx_is_bf16);
        }
}

static att_status max_grad_run(const att_call *call)
{
    return run_for_types(call, max_grad_as, &call->problem->in[1], &call->problem->out[0]);
}

ATT_SIMD_KERNEL(global_max_grad, .bf16_in = 2, .bf16_out = 1, .run = max_grad_run);
