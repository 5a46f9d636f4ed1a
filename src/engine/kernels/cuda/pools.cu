/* Pools over windows of a map, and means over tokens. */
#include "engine/kernels/cuda/rows.cuh"

extern "C" {
#include "engine/ops/adaptive_avg_pool.h"
#include "engine/ops/concat_maps.h"
#include "engine/ops/pool.h"
#include "engine/ops/token_mean.h"
#include "engine/ops/upsample_bilinear.h"
}

namespace
{

/* --- windows ------------------------------------------------------------------------------------------------------ */

struct span {
    int begin, end, counted; /* counted: rows by which averages divide if they count padding */
};

/* x [height, width, channels], y [out_h, out_w, channels] */
struct pool {
    att_pool_attrs attrs;
    int height, width, out_h, out_w, channels;

    __device__ span span_of(int window, int size) const
    {
        int begin = window * attrs.stride - attrs.padding, end = begin + attrs.kernel;
        int last = end < size + attrs.padding ? end : size + attrs.padding;
        return {begin > 0 ? begin : 0, end < size ? end : size, last - begin};
    }
    /* Windows [begin, end) that contain row (or column) `at`. */
    __device__ span windows_around(int at, int windows) const
    {
        int first = at + attrs.padding - attrs.kernel + 1, last = (at + attrs.padding) / attrs.stride + 1;
        return {first > 0 ? (first + attrs.stride - 1) / attrs.stride : 0, last < windows ? last : windows, 0};
    }
    __device__ float elements_of(span rows, span columns) const
    {
        return attrs.count_padding ? (float)rows.counted * (float)columns.counted
                                   : (float)(rows.end - rows.begin) * (float)(columns.end - columns.begin);
    }
    __device__ int64_t pixel(int64_t sample, int i, int j) const
    {
        return ((sample * height + i) * width + j) * channels;
    }
    __device__ int64_t window(int64_t sample, int i, int j) const
    {
        return ((sample * out_h + i) * out_w + j) * channels;
    }
};

static pool pool_of(const att_call *call, const att_desc *x, const att_desc *y)
{
    return {*ATT_ATTRS(call->problem, pool), (int)x->shape.dims[0], (int)x->shape.dims[1],
            (int)y->shape.dims[0],           (int)y->shape.dims[1], (int)x->shape.dims[2]};
}

/* An element of [sample, h, w, channels]. */
struct place {
    int64_t sample;
    int i, j, c;
};

/* Divisions of 32 bits take a third of the time of those of 64. */
__device__ static place place_of(int64_t e, int height, int width, int channels)
{
    if (e <= INT32_MAX) {
        uint32_t i = (uint32_t)e, p = i / (uint32_t)channels, l = p / (uint32_t)width, s = l / (uint32_t)height;
        return {s, (int)(l - s * (uint32_t)height), (int)(p - l * (uint32_t)width), (int)(i - p * (uint32_t)channels)};
    }
    int64_t pixel = e / channels, line = pixel / width, sample = line / height;
    return {sample, (int)(line - sample * height), (int)(pixel - line * width), (int)(e - pixel * channels)};
}

/* The element that is the window's first maximum; NaN is larger than every number. */
template <class X> __device__ static int64_t maximum_at(const pool &p, const X *x, int64_t sample, int i, int j, int c)
{
    span rows = p.span_of(i, p.height), columns = p.span_of(j, p.width);
    int64_t best = -1;
    float largest = 0;
    for (int r = rows.begin; r < rows.end; r++)
        for (int s = columns.begin; s < columns.end; s++) {
            int64_t e = p.pixel(sample, r, s) + c;
            float value = load(x, e);
            if (best < 0 || value > largest || value != value) {
                best = e;
                largest = value;
            }
        }
    return best;
}

template <class Y, class X> struct max_pool {
    pool p;
    Y *y;
    const X *x;
    __device__ void operator()(int64_t e) const
    {
        place at = place_of(e, p.out_h, p.out_w, p.channels);
        store(y, e, load(x, maximum_at(p, x, at.sample, at.i, at.j, at.c)));
    }
};

template <class Y, class X> struct avg_pool {
    pool p;
    Y *y;
    const X *x;
    __device__ void operator()(int64_t e) const
    {
        place at = place_of(e, p.out_h, p.out_w, p.channels);
        span rows = p.span_of(at.i, p.height), columns = p.span_of(at.j, p.width);
        float sum = 0;
        for (int r = rows.begin; r < rows.end; r++)
            for (int s = columns.begin; s < columns.end; s++)
                sum += load(x, p.pixel(at.sample, r, s) + at.c);
        store(y, e, sum / p.elements_of(rows, columns));
    }
};

static att_status run_max_pool(const att_call *call)
{
    pool p = pool_of(call, &call->problem->in[0], &call->problem->out[0]);
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *x) { att_cuda_each(att_cuda_out_count(call, 0), max_pool{p, y, x}); });
    });
    return att_cuda_launched(call);
}

static att_status run_avg_pool(const att_call *call)
{
    pool p = pool_of(call, &call->problem->in[0], &call->problem->out[0]);
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *x) { att_cuda_each(att_cuda_out_count(call, 0), avg_pool{p, y, x}); });
    });
    return att_cuda_launched(call);
}

/* Writes where in its window the maximum of each window lies. */
template <class X> struct find_maximum {
    pool p;
    const X *x;
    uint16_t *taps;
    __device__ void operator()(int64_t e) const
    {
        place at = place_of(e, p.out_h, p.out_w, p.channels);
        int64_t pixel = maximum_at(p, x, at.sample, at.i, at.j, at.c) / p.channels - at.sample * p.height * p.width;
        int row = (int)(pixel / p.width) - at.i * p.attrs.stride + p.attrs.padding;
        int column = (int)(pixel % p.width) - at.j * p.attrs.stride + p.attrs.padding;
        taps[e] = (uint16_t)(row * p.attrs.kernel + column);
    }
};

/* A pixel's gradient is the sum over the windows that contain it. */
template <class DX, class DY> struct max_pool_gradient {
    pool p;
    DX *dx;
    const DY *dy;
    const uint16_t *taps;
    __device__ void operator()(int64_t e) const
    {
        place at = place_of(e, p.height, p.width, p.channels);
        span rows = p.windows_around(at.i, p.out_h), columns = p.windows_around(at.j, p.out_w);
        float sum = 0;
        for (int i = rows.begin; i < rows.end; i++)
            for (int j = columns.begin; j < columns.end; j++) {
                int row = at.i - i * p.attrs.stride + p.attrs.padding;
                int column = at.j - j * p.attrs.stride + p.attrs.padding;
                int64_t window = p.window(at.sample, i, j) + at.c;
                if (taps[window] == row * p.attrs.kernel + column)
                    sum += load(dy, window);
            }
        store(dx, e, sum);
    }
};

template <class DX, class DY> struct avg_pool_gradient {
    pool p;
    DX *dx;
    const DY *dy;
    __device__ void operator()(int64_t e) const
    {
        place at = place_of(e, p.height, p.width, p.channels);
        span rows = p.windows_around(at.i, p.out_h), columns = p.windows_around(at.j, p.out_w);
        float sum = 0;
        for (int i = rows.begin; i < rows.end; i++)
            for (int j = columns.begin; j < columns.end; j++)
                sum += load(dy, p.window(at.sample, i, j) + at.c) /
                       p.elements_of(p.span_of(i, p.height), p.span_of(j, p.width));
        store(dx, e, sum);
    }
};

static att_status run_max_pool_grad(const att_call *call)
{
    pool p = pool_of(call, &call->problem->out[0], &call->problem->in[0]);
    att_cuda_out(call, 0, [&](auto *dx) {
        att_cuda_in(call, 0, [&](auto *dy) {
            uint16_t *taps = (uint16_t *)call->scratch;
            att_cuda_in(call, 1, [&](auto *x) { att_cuda_each(att_cuda_in_count(call, 0), find_maximum{p, x, taps}); });
            att_cuda_each(att_cuda_out_count(call, 0), max_pool_gradient{p, dx, dy, (const uint16_t *)taps});
        });
    });
    return att_cuda_launched(call);
}

static att_status prepare_max_pool_grad(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)att_problem_count(problem, &problem->in[0]) * sizeof(uint16_t);
    return ATT_OK;
}

static att_status run_avg_pool_grad(const att_call *call)
{
    pool p = pool_of(call, &call->problem->out[0], &call->problem->in[0]);
    att_cuda_out(call, 0, [&](auto *dx) {
        att_cuda_in(call, 0, [&](auto *dy) {
            att_cuda_each(att_cuda_out_count(call, 0), avg_pool_gradient{p, dx, dy});
        });
    });
    return att_cuda_launched(call);
}

/* --- adaptive ----------------------------------------------------------------------------------------------------- */

struct adaptive {
    int height, width, out_h, out_w, channels;
    __device__ static span range_of(int i, int size, int places)
    {
        return {(int)((int64_t)i * size / places), (int)(((int64_t)(i + 1) * size + places - 1) / places), 0};
    }
    /* 1 / elements of window i if it contains `at`, else 0 */
    __device__ static float share_of(int i, int places, int at, int size)
    {
        span range = range_of(i, size, places);
        return at >= range.begin && at < range.end ? 1 / (float)(range.end - range.begin) : 0;
    }
};

template <class Y, class X> struct adaptive_pool {
    adaptive p;
    Y *y;
    const X *x;
    __device__ void operator()(int64_t e) const
    {
        place at = place_of(e, p.out_h, p.out_w, p.channels);
        span rows = p.range_of(at.i, p.height, p.out_h), columns = p.range_of(at.j, p.width, p.out_w);
        float sum = 0;
        for (int r = rows.begin; r < rows.end; r++)
            for (int s = columns.begin; s < columns.end; s++)
                sum += load(x, ((at.sample * p.height + r) * p.width + s) * p.channels + at.c);
        store(y, e, sum / (float)((rows.end - rows.begin) * (columns.end - columns.begin)));
    }
};

template <class DX, class DY> struct adaptive_pool_gradient {
    adaptive p;
    DX *dx;
    const DY *dy;
    __device__ void operator()(int64_t e) const
    {
        place at = place_of(e, p.height, p.width, p.channels);
        float sum = 0;
        for (int i = 0; i < p.out_h; i++) {
            float share = p.share_of(i, p.out_h, at.i, p.height);
            for (int j = 0; j < p.out_w && share > 0; j++) {
                float both = share * p.share_of(j, p.out_w, at.j, p.width);
                if (both > 0)
                    sum += both * load(dy, ((at.sample * p.out_h + i) * p.out_w + j) * p.channels + at.c);
            }
        }
        store(dx, e, sum);
    }
};

static adaptive adaptive_of(const att_desc *x, const att_desc *y)
{
    return {(int)x->shape.dims[0], (int)x->shape.dims[1], (int)y->shape.dims[0], (int)y->shape.dims[1],
            (int)x->shape.dims[2]};
}

static att_status run_adaptive_avg_pool(const att_call *call)
{
    adaptive p = adaptive_of(&call->problem->in[0], &call->problem->out[0]);
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *x) { att_cuda_each(att_cuda_out_count(call, 0), adaptive_pool{p, y, x}); });
    });
    return att_cuda_launched(call);
}

static att_status run_adaptive_avg_pool_grad(const att_call *call)
{
    adaptive p = adaptive_of(&call->problem->out[0], &call->problem->in[0]);
    att_cuda_out(call, 0, [&](auto *dx) {
        att_cuda_in(call, 0, [&](auto *dy) {
            att_cuda_each(att_cuda_out_count(call, 0), adaptive_pool_gradient{p, dx, dy});
        });
    });
    return att_cuda_launched(call);
}

/* --- means over tokens -------------------------------------------------------------------------------------------- */

/* Sums over rows [first, total) of each sample. `x` begins at row `first` of the first sample. */
template <int V, class X> struct token_sums {
    const X *x;
    int64_t rows, total, columns, first, skipped;
    __device__ void begin(int64_t sample, int64_t column)
    {
        (void)column;
        skipped = (sample * (total - rows) + first) * columns;
    }
    __device__ void row(int64_t e, float (&sums)[1][V])
    {
        float value[V];
        load_pack<V>(x, e + skipped, value);
#pragma unroll
        for (int k = 0; k < V; k++)
            sums[0][k] += value[k];
    }
};

template <class Y> struct store_mean {
    Y *y;
    int64_t columns;
    float factor;
    __device__ void operator()(int64_t sample, int64_t column, const float *sums) const
    {
        store(y, sample * columns + column, sums[0] * factor);
    }
};

static att_status run_token_mean(const att_call *call)
{
    const att_mean_attrs *attrs = ATT_ATTRS(call->problem, mean);
    int64_t columns = att_cuda_dim(&call->problem->in[0], -1), total = att_cuda_rows(call, 0) / call->problem->group;
    int64_t rows = total - attrs->first;
    float factor = (float)(attrs->factor / (double)rows);
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *x) {
            typedef std::remove_const_t<std::remove_pointer_t<decltype(x)>> X;
            att_cuda_with_width(
                columns,
                [&](auto width) {
                    constexpr int V = width;
                    att_cuda_sums<1, V>(call->problem->group, rows, columns, call->scratch,
                                        token_sums<V, X>{x, rows, total, columns, attrs->first, 0},
                                        store_mean{y, columns, factor});
                },
                x);
        });
    });
    return att_cuda_launched(call);
}

static att_status prepare_token_mean(const att_problem *problem, att_prepared *prepared)
{
    int64_t columns = att_cuda_dim(&problem->in[0], -1), total = att_shape_count(problem->in[0].shape) / columns;
    prepared->scratch_bytes =
        att_cuda_sums_scratch(problem->group, total - ATT_ATTRS(problem, mean)->first, columns, 1);
    return ATT_OK;
}

template <class DX, class DY> struct mean_gradient {
    DX *dx;
    const DY *dy;
    int64_t first, total, columns;
    float factor;
    __device__ void operator()(int64_t e) const
    {
        int64_t row = e / columns, sample = row / total;
        store(dx, e, row - sample * total >= first ? factor * load(dy, sample * columns + e - row * columns) : 0);
    }
};

static att_status run_token_mean_grad(const att_call *call)
{
    const att_mean_attrs *attrs = ATT_ATTRS(call->problem, mean);
    int64_t columns = att_cuda_dim(&call->problem->in[0], 0);
    float factor = (float)(attrs->factor / (attrs->total - attrs->first));
    att_cuda_out(call, 0, [&](auto *dx) {
        att_cuda_in(call, 0, [&](auto *dy) {
            att_cuda_each(att_cuda_out_count(call, 0),
                          mean_gradient{dx, dy, attrs->first, attrs->total, columns, factor});
        });
    });
    return att_cuda_launched(call);
}

/* --- bilinear ----------------------------------------------------------------------------------------------------- */

/* Position of row i of `to` rows in an input of `from` rows, as att_upsample_place_of(). */
__device__ static att_upsample_place upsample_place(int64_t i, int64_t from, int64_t to)
{
    double at = ((double)i + 0.5) * ((double)from / (double)to) - 0.5;
    at = at < 0 ? 0 : at;
    int64_t low = (int64_t)at < from - 1 ? (int64_t)at : from - 1;
    return {low, low + 1 < from ? low + 1 : low, at - (double)low};
}

/* Writes a map with `channels` channels to the channels of y from `first` on, of `total`. */
template <class Y, class X> struct upsampled {
    Y *y;
    const X *x;
    int64_t x_h, x_w, y_h, y_w, channels, first, total;
    __device__ void operator()(int64_t e) const
    {
        place at = place_of(e, (int)y_h, (int)y_w, (int)channels);
        att_upsample_place row = upsample_place(at.i, x_h, y_h), column = upsample_place(at.j, x_w, y_w);
        const int64_t rows[] = {row.low, row.high}, columns[] = {column.low, column.high};
        const float of_row[] = {(float)(1 - row.share), (float)row.share};
        const float of_column[] = {(float)(1 - column.share), (float)column.share};
        float sum = 0;
        for (int i = 0; i < 4; i++)
            sum += of_row[i / 2] * of_column[i % 2] *
                   load(x, ((at.sample * x_h + rows[i / 2]) * x_w + columns[i % 2]) * channels + at.c);
        store(y, e / channels * total + first + at.c, sum);
    }
};

static void upsample(const att_call *call, int i, int64_t first)
{
    const int64_t *x = call->problem->in[i].shape.dims, *y = call->problem->out[0].shape.dims;
    att_cuda_out(call, 0, [&](auto *to) {
        att_cuda_in(call, i, [&](auto *from) {
            att_cuda_each(att_cuda_out_count(call, 0) / y[2] * x[2],
                          upsampled{to, from, x[0], x[1], y[0], y[1], x[2], first, y[2]});
        });
    });
}

static att_status run_upsample_bilinear(const att_call *call)
{
    upsample(call, 0, 0);
    return att_cuda_launched(call);
}

static att_status run_concat_maps(const att_call *call)
{
    int64_t first = 0;
    for (int i = 0; i < call->problem->in_count; i++) {
        upsample(call, i, first);
        first += att_cuda_dim(&call->problem->in[i], -1);
    }
    return att_cuda_launched(call);
}

/* Share of row (or column) `at` of x in row i of y. */
__device__ static float upsample_share(int64_t i, int64_t at, int64_t from, int64_t to)
{
    att_upsample_place place = upsample_place(i, from, to);
    return (place.low == at ? (float)(1 - place.share) : 0) + (place.high == at ? (float)place.share : 0);
}

/* dy has `total` channels, of which those from `first` on are of the map. */
template <class DX, class DY> struct upsample_gradient {
    DX *dx;
    const DY *dy;
    int64_t x_h, x_w, y_h, y_w, channels, first, total;
    __device__ static int64_t first_of(int64_t at, int64_t from, int64_t to)
    {
        int64_t first = (int64_t)(((double)at - 0.5) * (double)to / (double)from - 0.5) - 1;
        return first > 0 ? first : 0;
    }
    __device__ static int64_t end_of(int64_t at, int64_t from, int64_t to)
    {
        int64_t end = (int64_t)(((double)at + 1.5) * (double)to / (double)from - 0.5) + 2;
        return at == from - 1 || end > to ? to : end;
    }
    __device__ void operator()(int64_t e) const
    {
        place at = place_of(e, (int)x_h, (int)x_w, (int)channels);
        float sum = 0;
        for (int64_t i = first_of(at.i, x_h, y_h); i < end_of(at.i, x_h, y_h); i++) {
            float row = upsample_share(i, at.i, x_h, y_h);
            for (int64_t j = first_of(at.j, x_w, y_w); j < end_of(at.j, x_w, y_w) && row != 0; j++)
                sum += row * upsample_share(j, at.j, x_w, y_w) *
                       load(dy, ((at.sample * y_h + i) * y_w + j) * total + first + at.c);
        }
        store(dx, e, sum);
    }
};

static void upsample_grad(const att_call *call, int i, int64_t first)
{
    const int64_t *x = call->problem->out[i].shape.dims, *y = call->problem->in[0].shape.dims;
    att_cuda_out(call, i, [&](auto *dx) {
        att_cuda_in(call, 0, [&](auto *dy) {
            att_cuda_each(att_cuda_out_count(call, i),
                          upsample_gradient{dx, dy, x[0], x[1], y[0], y[1], x[2], first, y[2]});
        });
    });
}

static att_status run_upsample_bilinear_grad(const att_call *call)
{
    upsample_grad(call, 0, 0);
    return att_cuda_launched(call);
}

static att_status run_concat_maps_grad(const att_call *call)
{
    const att_concat_maps_attrs *attrs = ATT_ATTRS(call->problem, concat_maps);
    int64_t first = 0;
    for (int i = 0; i < attrs->count; i++) {
        if (call->out[i])
            upsample_grad(call, i, first);
        first += attrs->size[i][2];
    }
    return att_cuda_launched(call);
}

} // namespace

ATT_CUDA_KERNEL(max_pool, run_max_pool);
ATT_CUDA_KERNEL(avg_pool, run_avg_pool);
ATT_CUDA_PREPARED_KERNEL(max_pool_grad, prepare_max_pool_grad, run_max_pool_grad, nullptr);
ATT_CUDA_KERNEL(avg_pool_grad, run_avg_pool_grad);
ATT_CUDA_KERNEL(adaptive_avg_pool, run_adaptive_avg_pool);
ATT_CUDA_KERNEL(adaptive_avg_pool_grad, run_adaptive_avg_pool_grad);
ATT_CUDA_PREPARED_KERNEL(token_mean, prepare_token_mean, run_token_mean, nullptr);
ATT_CUDA_KERNEL(token_mean_grad, run_token_mean_grad);
ATT_CUDA_KERNEL(upsample_bilinear, run_upsample_bilinear);
ATT_CUDA_KERNEL(upsample_bilinear_grad, run_upsample_bilinear_grad);
ATT_CUDA_KERNEL(concat_maps, run_concat_maps);
ATT_CUDA_KERNEL(concat_maps_grad, run_concat_maps_grad);
