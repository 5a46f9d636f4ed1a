/* Maps resized by bilinear interpolation, alone or side by side. */
#include "engine/ops/upsample_bilinear.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/concat_maps.h"

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* Sums four pixels of x, which begin at elements `at`, with these shares. */
ATT_INLINE void make_pixel(const void *x, const int64_t at[4], const vf share[4], int64_t channels, void *y, int64_t to,
                           bool x_is_bf16, bool y_is_bf16)
{
    for (int64_t c = 0; c < channels; c += VW) {
        vf sum = share[0] * v_get_until(x, at[0] + c, at[0] + channels, x_is_bf16);
        for (int i = 1; i < 4; i++)
            sum = v_fma(share[i], v_get_until(x, at[i] + c, at[i] + channels, x_is_bf16), sum);
        v_put_until(y, to + c, to + channels, sum, y_is_bf16);
    }
}

/* Writes input i, resized, to the channels of y from `first` on. Parts share the pixels of y of all samples. */
ATT_INLINE void resize_as(const att_call *call, int i, int64_t to, bool x_is_bf16, bool y_is_bf16)
{
    const int64_t *x = call->problem->in[i].shape.dims, *y = call->problem->out[0].shape.dims;
    att_range part = att_part_of(call, call->problem->group * y[0] * y[1], 1);
    for (int64_t pixel = part.begin; pixel < part.end; pixel++) {
        att_upsample_place row = att_upsample_place_of(pixel / y[1] % y[0], x[0], y[0]);
        att_upsample_place column = att_upsample_place_of(pixel % y[1], x[1], y[1]);
        int64_t first = pixel / (y[0] * y[1]) * x[0], low = (first + row.low) * x[1], high = (first + row.high) * x[1];
        const int64_t at[] = {(low + column.low) * x[2], (low + column.high) * x[2], (high + column.low) * x[2],
                              (high + column.high) * x[2]};
        const vf share[] = {v_set((float)((1 - row.share) * (1 - column.share))),
                            v_set((float)((1 - row.share) * column.share)),
                            v_set((float)(row.share * (1 - column.share))), v_set((float)(row.share * column.share))};
        make_pixel(call->in[i], at, share, x[2], call->out[0], pixel * y[2] + to, x_is_bf16, y_is_bf16);
    }
}

ATT_INLINE void upsample_as(const att_call *call, bool x_is_bf16, bool y_is_bf16)
{
    resize_as(call, 0, 0, x_is_bf16, y_is_bf16);
}

static att_status upsample_bilinear_run(const att_call *call)
{
    return run_for_types(call, upsample_as, &call->problem->in[0], &call->problem->out[0]);
}

ATT_SIMD_KERNEL(upsample_bilinear, .bf16_in = 1, .bf16_out = 1, .run = upsample_bilinear_run);

static bool same_size(const att_desc *a, const att_desc *b)
{
    return a->shape.dims[0] == b->shape.dims[0] && a->shape.dims[1] == b->shape.dims[1];
}

/* Copies `count` channels of each pixel of this part. A pixel has `from_total` channels in x and `to_total` in y. */
static void copy_channels(const void *x, int64_t from, int64_t from_total, bool x_is_bf16, void *y, int64_t to,
                          int64_t to_total, bool y_is_bf16, int64_t count, att_range pixels)
{
    for (int64_t pixel = pixels.begin; pixel < pixels.end; pixel++)
        att_float_move(x, pixel * from_total + from, x_is_bf16, y, pixel * to_total + to, y_is_bf16, count);
}

static void place_map(const att_call *call, int i, int64_t to)
{
    const att_desc *x = &call->problem->in[i], *y = &call->problem->out[0];
    const bool x_is_bf16 = att_is_bf16(x), y_is_bf16 = att_is_bf16(y);
    const int64_t channels = x->shape.dims[2];
    if (same_size(x, y))
        copy_channels(call->in[i], 0, channels, x_is_bf16, call->out[0], to, y->shape.dims[2], y_is_bf16, channels,
                      att_part_of(call, att_rows(call, y), 1));
    else if (x_is_bf16 && y_is_bf16)
        resize_as(call, i, to, true, true);
    else if (!x_is_bf16 && !y_is_bf16)
        resize_as(call, i, to, false, false);
    else
        resize_as(call, i, to, x_is_bf16, y_is_bf16);
}

static att_status concat_maps_run(const att_call *call)
{
    int64_t to = 0;
    for (int i = 0; i < call->problem->in_count; i++) {
        place_map(call, i, to);
        to += call->problem->in[i].shape.dims[2];
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(concat_maps, .bf16_in = (1u << ATT_CONCAT_MAPS) - 1, .bf16_out = 1, .run = concat_maps_run);

/* --- gradient ----------------------------------------------------------------------------------------------------- */

enum { VECTORS = 4 }; /* vectors of channels that are summed at once */

/* The rows (or columns) of y that are interpolated from one row of x, and its share in each. */
typedef struct readers {
    int64_t begin, end;
    const float *share; /* of row begin + i at index i */
} readers;

static bool reads(att_upsample_place place, int64_t at)
{
    return place.low == at || place.high == at;
}

/* The readers of row `at` of `from` rows of x, with `to` rows of y. Writes their shares to `share`. The bounds from
 * which the search starts are those of rows that lie less than one row of x away. */
static readers readers_of(int64_t at, int64_t from, int64_t to, float *share)
{
    double step = (double)to / (double)from;
    int64_t begin = (int64_t)(((double)at - 0.5) * step) - 1, end = (int64_t)(((double)at + 1.5) * step) + 1;
    begin = begin > 0 ? begin : 0;
    end = at < from - 1 && end < to ? end : to;
    while (begin < end && !reads(att_upsample_place_of(begin, from, to), at))
        begin++;
    while (begin < end && !reads(att_upsample_place_of(end - 1, from, to), at))
        end--;
    for (int64_t i = begin; i < end; i++) {
        att_upsample_place place = att_upsample_place_of(i, from, to);
        share[i - begin] = (float)((place.low == at ? 1 - place.share : 0) + (place.high == at ? place.share : 0));
    }
    return (readers){begin, end, share};
}

/* In scratch: the readers of each column of x, with all their shares, and the shares of a row. A column of y reads at
 * most two of x. */
typedef struct tables {
    readers *columns;
    float *column_shares, *row_shares;
} tables;

static tables tables_in(void *scratch, const int64_t *x, const int64_t *y)
{
    readers *columns = scratch;
    float *shares = (float *)(columns + x[1]);
    return (tables){columns, shares, shares + 2 * y[1]};
}

static size_t tables_bytes(const int64_t *x, const int64_t *y)
{
    return (size_t)x[1] * sizeof(readers) + (size_t)(2 * y[1] + y[0]) * sizeof(float);
}

static void fill_columns(const tables *t, const int64_t *x, const int64_t *y)
{
    float *share = t->column_shares;
    for (int64_t j = 0; j < x[1]; j++) {
        t->columns[j] = readers_of(j, x[1], y[1], share);
        share += t->columns[j].end - t->columns[j].begin;
    }
}

/* `vectors` vectors of channels from c on of a pixel of dx, which begins at element `to`. The map's channels of dy,
 * whose pixels have y[2] channels, begin at element `from`. */
ATT_INLINE void sum_pixel(const void *dy, int64_t from, const int64_t *y, const readers *rows, const readers *columns,
                          int64_t c, int vectors, void *dx, int64_t to, int64_t channels, bool dy_is_bf16,
                          bool dx_is_bf16)
{
    vf sum[VECTORS] = {0};
    for (int64_t i = rows->begin; i < rows->end; i++)
        for (int64_t j = columns->begin; j < columns->end; j++) {
            int64_t pixel = from + (i * y[1] + j) * y[2];
            vf share = v_set(rows->share[i - rows->begin] * columns->share[j - columns->begin]);
            for (int v = 0; v < vectors; v++)
                sum[v] = v_fma(share, v_get_until(dy, pixel + c + v * VW, pixel + channels, dy_is_bf16), sum[v]);
        }
    for (int v = 0; v < vectors; v++)
        v_put_until(dx, to + c + v * VW, to + channels, sum[v], dx_is_bf16);
}

/* The gradient of output i from the channels of dy from `first` on. Parts share the rows of dx of all samples. */
ATT_INLINE void gradient_of(const att_call *call, int i, int64_t first, bool dy_is_bf16, bool dx_is_bf16)
{
    const int64_t *x = call->problem->out[i].shape.dims, *y = call->problem->in[0].shape.dims;
    att_range part = att_part_of(call, call->problem->group * x[0], 1);
    tables t = tables_in(call->scratch, x, y);
    fill_columns(&t, x, y);
    for (int64_t row = part.begin; row < part.end; row++) {
        readers rows = readers_of(row % x[0], x[0], y[0], t.row_shares);
        int64_t from = row / x[0] * (y[0] * y[1] * y[2]) + first;
        for (int64_t j = 0; j < x[1]; j++) {
            int64_t to = (row * x[1] + j) * x[2], c = 0;
            for (; c + VECTORS * VW <= x[2]; c += VECTORS * VW)
                sum_pixel(call->in[0], from, y, &rows, &t.columns[j], c, VECTORS, call->out[i], to, x[2], dy_is_bf16,
                          dx_is_bf16);
            for (; c < x[2]; c += VW)
                sum_pixel(call->in[0], from, y, &rows, &t.columns[j], c, 1, call->out[i], to, x[2], dy_is_bf16,
                          dx_is_bf16);
        }
    }
}

ATT_INLINE void gradient_as(const att_call *call, bool dy_is_bf16, bool dx_is_bf16)
{
    gradient_of(call, 0, 0, dy_is_bf16, dx_is_bf16);
}

static att_status upsample_bilinear_grad_run(const att_call *call)
{
    return run_for_types(call, gradient_as, &call->problem->in[0], &call->problem->out[0]);
}

static att_status upsample_bilinear_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = tables_bytes(problem->out[0].shape.dims, problem->in[0].shape.dims);
    return ATT_OK;
}

ATT_SIMD_KERNEL(upsample_bilinear_grad, .bf16_in = 1, .bf16_out = 1, .prepare = upsample_bilinear_grad_prepare,
                .run = upsample_bilinear_grad_run);

static void take_map(const att_call *call, int i, int64_t first)
{
    const att_desc *dx = &call->problem->out[i], *dy = &call->problem->in[0];
    const bool dx_is_bf16 = att_is_bf16(dx), dy_is_bf16 = att_is_bf16(dy);
    const int64_t channels = dx->shape.dims[2];
    if (same_size(dx, dy))
        copy_channels(call->in[0], first, dy->shape.dims[2], dy_is_bf16, call->out[i], 0, channels, dx_is_bf16,
                      channels, att_part_of(call, att_rows(call, dy), 1));
    else if (dx_is_bf16 && dy_is_bf16)
        gradient_of(call, i, first, true, true);
    else if (!dx_is_bf16 && !dy_is_bf16)
        gradient_of(call, i, first, false, false);
    else
        gradient_of(call, i, first, dy_is_bf16, dx_is_bf16);
}

static att_status concat_maps_grad_run(const att_call *call)
{
    const att_concat_maps_attrs *attrs = call->problem->attrs;
    int64_t first = 0;
    for (int i = 0; i < attrs->count; i++) {
        if (call->out[i])
            take_map(call, i, first);
        first += attrs->size[i][2];
    }
    return ATT_OK;
}

static att_status concat_maps_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    for (int i = 0; i < problem->out_count; i++) {
        const bool is_read = att_desc_present(&problem->out[i]);
        const size_t bytes = is_read ? tables_bytes(problem->out[i].shape.dims, problem->in[0].shape.dims) : 0;
        prepared->scratch_bytes = bytes > prepared->scratch_bytes ? bytes : prepared->scratch_bytes;
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(concat_maps_grad, .bf16_in = 1, .bf16_out = (1u << ATT_CONCAT_MAPS) - 1,
                .prepare = concat_maps_grad_prepare, .run = concat_maps_grad_run);
