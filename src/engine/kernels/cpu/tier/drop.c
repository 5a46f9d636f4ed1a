#include "engine/ops/drop.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/draws.h"
#include "engine/kernels/cpu/tiered.h"

/* --- dropout ------------------------------------------------------------------------------------------------------ */

/* Word e % 4 of block e / 4 decides about element e of the sample, which begins at element `at`. */
ATT_INLINE void drop_range(const att_call *call, const draws *d, int64_t sample, int64_t at, att_range range,
                           bool x_is_bf16, bool y_is_bf16)
{
    const void *x = att_float_at(call->in[0], at, x_is_bf16);
    void *y = (char *)call->out[0] + (size_t)at * att_float_size(y_is_bf16);
    uint64_t position = (uint64_t)(call->position + sample);
    for (int64_t i = range.begin; i < range.end; i += DRAW_WORDS) {
        vu words[2];
        draw(d->key, position, (uint64_t)i / 4, words);
        v_put_until(y, i, range.end, drop(d, words[0], v_get_until(x, i, range.end, x_is_bf16)), y_is_bf16);
        if (i + VW < range.end)
            v_put_until(y, i + VW, range.end, drop(d, words[1], v_get_until(x, i + VW, range.end, x_is_bf16)),
                        y_is_bf16);
    }
}

ATT_INLINE void dropout_as(const att_call *call, bool x_is_bf16, bool y_is_bf16)
{
    const att_drop_attrs *attrs = call->problem->attrs;
    const draws d = draws_of(call, attrs->rate, attrs->stream);
    int64_t count = att_shape_count(call->problem->in[0].shape);
    int64_t samples = att_elements(call, &call->problem->in[0]) / count;
    att_range part = att_part_of(call, count, DRAW_WORDS);
    for (int64_t sample = 0; sample < samples; sample++)
        drop_range(call, &d, sample, sample * count, part, x_is_bf16, y_is_bf16);
}

static att_status dropout_run(const att_call *call)
{
    bool x = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    if (!x && !y)
        dropout_as(call, false, false);
    else
        dropout_as(call, x, y);
    return ATT_OK;
}

/* --- dropout of channels ------------------------------------------------------------------------------------------ */

/* Two registers of factors, for the channels from i on, of all rows of a sample that begins at element `at`. */
ATT_INLINE void drop_columns(const att_call *call, const draws *d, const vu words[2], int64_t at, int64_t i,
                             int64_t rows, int64_t columns, bool x_is_bf16, bool y_is_bf16)
{
    for (int64_t row = 0; row < rows; row++, at += columns) {
        const void *x = att_float_at(call->in[0], at, x_is_bf16);
        void *y = (char *)call->out[0] + (size_t)at * att_float_size(y_is_bf16);
        v_put_until(y, i, columns, drop(d, words[0], v_get_until(x, i, columns, x_is_bf16)), y_is_bf16);
        if (i + VW < columns)
            v_put_until(y, i + VW, columns, drop(d, words[1], v_get_until(x, i + VW, columns, x_is_bf16)), y_is_bf16);
    }
}

/* Word c % 4 of block c / 4 decides about channel c of the sample. */
ATT_INLINE void channel_dropout_as(const att_call *call, bool x_is_bf16, bool y_is_bf16)
{
    const att_drop_attrs *attrs = call->problem->attrs;
    const draws d = draws_of(call, attrs->rate, attrs->stream);
    const att_shape *shape = &call->problem->in[0].shape;
    const int64_t columns = shape->dims[shape->rank - 1], count = att_shape_count(*shape), rows = count / columns;
    const att_range part = att_part_of(call, columns, DRAW_WORDS);
    for (int64_t sample = 0; sample < call->problem->group; sample++)
        for (int64_t i = part.begin; i < part.end; i += DRAW_WORDS) {
            vu words[2];
            draw(d.key, (uint64_t)(call->position + sample), (uint64_t)i / 4, words);
            drop_columns(call, &d, words, sample * count, i, rows, columns, x_is_bf16, y_is_bf16);
        }
}

static att_status channel_dropout_run(const att_call *call)
{
    return run_for_types(call, channel_dropout_as, &call->problem->in[0], &call->problem->out[0]);
}

/* --- drop path ---------------------------------------------------------------------------------------------------- */

ATT_INLINE void drop_path_as(const att_call *call, bool x_is_bf16, bool y_is_bf16)
{
    const att_drop_attrs *attrs = call->problem->attrs;
    const draws d = draws_of(call, attrs->rate, attrs->stream);
    int64_t count = att_elements(call, &call->problem->in[0]) / call->problem->group;
    att_range part = att_part_of(call, count, VW);
    for (int64_t sample = 0; sample < call->problem->group; sample++) {
        bool keep = att_philox_block(d.key, (uint64_t)(call->position + sample), 0).word[0] >= d.least;
        const void *x = att_float_at(call->in[0], sample * count, x_is_bf16);
        void *y = (char *)call->out[0] + (size_t)(sample * count) * att_float_size(y_is_bf16);
        for (int64_t i = part.begin; i < part.end; i += VW) {
            vf kept = keep ? v_get_until(x, i, part.end, x_is_bf16) * d.keep : (vf){0};
            v_put_until(y, i, part.end, kept, y_is_bf16);
        }
    }
}

/* Forward, x and y are bf16 in a branch. In the gradient, x is the f32 gradient of the residual stream. */
static att_status drop_path_run(const att_call *call)
{
    return run_for_types(call, drop_path_as, &call->problem->in[0], &call->problem->out[0]);
}

ATT_SIMD_KERNEL(dropout, .bf16_in = 1, .bf16_out = 1, .run = dropout_run);
ATT_SIMD_KERNEL(channel_dropout, .bf16_in = 1, .bf16_out = 1, .run = channel_dropout_run);
ATT_SIMD_KERNEL(drop_path, .bf16_in = 1, .bf16_out = 1, .run = drop_path_run);
