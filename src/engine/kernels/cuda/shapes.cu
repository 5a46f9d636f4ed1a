/* Ops that move elements: each element of the result is an element of an input, or 0. */
#include "engine/kernels/cuda/cuda.cuh"

extern "C" {
#include "engine/ops/concat.h"
#include "engine/ops/embed.h"
#include "engine/ops/merge_patches.h"
#include "engine/ops/patchify.h"
#include "engine/ops/shortcut_pad.h"
#include "engine/ops/slice_channels.h"
#include "engine/ops/slice_tokens.h"
#include "engine/ops/transpose.h"
#include "engine/ops/windows.h"
}

namespace
{

/* y[i] = x[source(i)], or 0 if the source is negative. */
template <class Y, class X, class Source> struct moved {
    Y *y;
    const X *x;
    Source source;
    __device__ void operator()(int64_t i) const
    {
        int64_t from = source(i);
        store(y, i, from < 0 ? 0 : load(x, from));
    }
};

/* Output 0 from input 0. source: a struct with a __device__ operator(). */
template <class Source> static att_status move(const att_call *call, Source source)
{
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *x) { att_cuda_each(att_cuda_out_count(call, 0), moved{y, x, source}); });
    });
    return att_cuda_launched(call);
}

/* --- channels and tokens ------------------------------------------------------------------------------------------ */

/* Inner elements [first, first + count) of every `total`. */
struct slice_source {
    int64_t first, count, total;
    __device__ int64_t operator()(int64_t i) const
    {
        return i / count * total + first + i % count;
    }
};

struct slice_grad_source {
    int64_t first, count, total;
    __device__ int64_t operator()(int64_t i) const
    {
        int64_t inside = i % total - first;
        return inside >= 0 && inside < count ? i / total * count + inside : -1;
    }
};

static att_status run_slice_channels(const att_call *call)
{
    const att_channels_attrs *attrs = ATT_ATTRS(call->problem, channels);
    return move(call, slice_source{attrs->first, attrs->count, att_cuda_dim(&call->problem->in[0], -1)});
}

static att_status run_slice_channels_grad(const att_call *call)
{
    const att_channels_attrs *attrs = ATT_ATTRS(call->problem, channels);
    return move(call, slice_grad_source{attrs->first, attrs->count, attrs->total});
}

static att_status run_slice_tokens(const att_call *call)
{
    const att_slice_attrs *attrs = ATT_ATTRS(call->problem, slice);
    int64_t columns = att_cuda_dim(&call->problem->in[0], 1), total = att_cuda_dim(&call->problem->in[0], 0);
    return move(call, slice_source{attrs->first * columns, attrs->count * columns, total * columns});
}

static att_status run_slice_tokens_grad(const att_call *call)
{
    const att_slice_attrs *attrs = ATT_ATTRS(call->problem, slice);
    int64_t columns = att_cuda_dim(&call->problem->in[0], 1);
    return move(call, slice_grad_source{attrs->first * columns, attrs->count * columns, attrs->total * columns});
}

/* --- two values in one -------------------------------------------------------------------------------------------- */

/* Of every a + b elements, a of the first value and b of the second. */
template <class Y, class A, class B> struct joined {
    Y *y;
    const A *a;
    const B *b;
    int64_t a_count, b_count;
    bool a_repeats; /* the first value is the same everywhere */
    __device__ void operator()(int64_t i) const
    {
        int64_t part = i / (a_count + b_count), inside = i % (a_count + b_count);
        store(y, i,
              inside < a_count ? load(a, a_repeats ? inside : part * a_count + inside)
                               : load(b, part * b_count + inside - a_count));
    }
};

static att_status join(const att_call *call, int64_t a_count, int64_t b_count, bool a_repeats)
{
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *a) {
            att_cuda_in(call, 1, [&](auto *b) {
                att_cuda_each(att_cuda_out_count(call, 0), joined{y, a, b, a_count, b_count, a_repeats});
            });
        });
    });
    return att_cuda_launched(call);
}

static att_status run_concat(const att_call *call)
{
    return join(call, att_cuda_dim(&call->problem->in[0], -1), att_cuda_dim(&call->problem->in[1], -1), false);
}

static att_status run_prepend_tokens(const att_call *call)
{
    return join(call, att_cuda_in_count(call, 0), att_shape_count(call->problem->in[1].shape), true);
}

static att_status run_concat_grad(const att_call *call)
{
    int64_t total = att_cuda_dim(&call->problem->in[0], -1), first = ATT_ATTRS(call->problem, concat)->first;
    const slice_source sources[] = {{0, first, total}, {first, total - first, total}};
    for (int i = 0; i < 2; i++)
        if (call->out[i])
            att_cuda_out(call, i, [&](auto *y) {
                att_cuda_in(call, 0, [&](auto *x) {
                    att_cuda_each(att_cuda_out_count(call, i), moved{y, x, sources[i]});
                });
            });
    return att_cuda_launched(call);
}

/* --- patches ------------------------------------------------------------------------------------------------------ */

/* Element of the images [group, h, w, c] for an element of the patches [group, N, c P Q]. I: the type of indices;
 * divisions of 32 bits take a third of the time of those of 64. */
template <class I> struct patch_source {
    I height, width, channels, patch_h, patch_w;
    __device__ int64_t operator()(int64_t element) const
    {
        I i = (I)element, row_number = i / patch_w, column = i - row_number * patch_w;
        I plane = row_number / patch_h, row = row_number - plane * patch_h, number = plane / channels;
        I channel = plane - number * channels, across = width / patch_w, down = height / patch_h;
        I line = number / across, sample = line / down;
        I y = (line - sample * down) * patch_h + row, x = (number - line * across) * patch_w + column;
        return ((sample * height + y) * width + x) * channels + channel;
    }
};

struct patch_grad_source {
    int64_t height, width, channels, patch_h, patch_w;
    __device__ int64_t operator()(int64_t i) const
    {
        int64_t across = width / patch_w, down = height / patch_h, channel = i % channels, x = i / channels % width;
        int64_t line = i / channels / width, y = line % height, sample = line / height;
        if (x >= across * patch_w || y >= down * patch_h)
            return -1;
        int64_t number = (sample * down + y / patch_h) * across + x / patch_w;
        return ((number * channels + channel) * patch_h + y % patch_h) * patch_w + x % patch_w;
    }
};

static att_status run_patchify(const att_call *call)
{
    const att_patch_attrs *attrs = ATT_ATTRS(call->problem, patch);
    const int64_t *x = call->problem->in[0].shape.dims;
    const int32_t *patch = attrs->patch;
    if (att_cuda_in_count(call, 0) <= INT32_MAX)
        return move(call, patch_source<int32_t>{(int32_t)x[0], (int32_t)x[1], (int32_t)x[2], patch[0], patch[1]});
    return move(call, patch_source<int64_t>{x[0], x[1], x[2], patch[0], patch[1]});
}

static att_status run_patchify_grad(const att_call *call)
{
    const att_patch_attrs *attrs = ATT_ATTRS(call->problem, patch);
    return move(call,
                patch_grad_source{attrs->height, attrs->width, attrs->channels, attrs->patch[0], attrs->patch[1]});
}

/* 2 x 2 pixels side by side; a map of odd size is padded with zeros. */
struct merge_source {
    int64_t height, width, channels;
    __device__ int64_t operator()(int64_t i) const
    {
        int64_t rows = (height + 1) / 2, columns = (width + 1) / 2;
        int64_t quarter = i / channels % 4, pixel = i / (4 * channels);
        int64_t row = 2 * (pixel / columns % rows) + quarter % 2, column = 2 * (pixel % columns) + quarter / 2;
        if (row >= height || column >= width)
            return -1;
        return ((pixel / (rows * columns) * height + row) * width + column) * channels + i % channels;
    }
};

struct merge_grad_source {
    int64_t height, width, channels;
    __device__ int64_t operator()(int64_t i) const
    {
        int64_t rows = (height + 1) / 2, columns = (width + 1) / 2, channel = i % channels;
        int64_t x = i / channels % width, y = i / (channels * width) % height, sample = i / (channels * width * height);
        int64_t pixel = (sample * rows + y / 2) * columns + x / 2, quarter = x % 2 * 2 + y % 2;
        return (pixel * 4 + quarter) * channels + channel;
    }
};

static att_status run_merge_patches(const att_call *call)
{
    const int64_t *x = call->problem->in[0].shape.dims;
    return move(call, merge_source{x[0], x[1], x[2]});
}

static att_status run_merge_patches_grad(const att_call *call)
{
    const int64_t *x = call->problem->out[0].shape.dims;
    return move(call, merge_grad_source{x[0], x[1], x[2]});
}

/* --- maps --------------------------------------------------------------------------------------------------------- */

struct shortcut_source {
    int64_t stride, before, x_h, x_w, x_c, y_h, y_w, y_c;
    __device__ int64_t operator()(int64_t i) const
    {
        int64_t channel = i % y_c - before, pixel = i / y_c;
        int64_t sample = pixel / (y_h * y_w), row = pixel / y_w % y_h, column = pixel % y_w;
        if (channel < 0 || channel >= x_c)
            return -1;
        return ((sample * x_h + stride * row) * x_w + stride * column) * x_c + channel;
    }
};

struct shortcut_grad_source {
    int64_t stride, before, x_h, x_w, x_c, y_h, y_w, y_c;
    __device__ int64_t operator()(int64_t i) const
    {
        int64_t channel = i % x_c, pixel = i / x_c;
        int64_t sample = pixel / (x_h * x_w), row = pixel / x_w % x_h, column = pixel % x_w;
        if (row % stride || column % stride)
            return -1;
        return ((sample * y_h + row / stride) * y_w + column / stride) * y_c + before + channel;
    }
};

static att_status run_shortcut_pad(const att_call *call)
{
    const att_shortcut_attrs *attrs = ATT_ATTRS(call->problem, shortcut);
    const int64_t *x = call->problem->in[0].shape.dims, *y = call->problem->out[0].shape.dims;
    return move(call, shortcut_source{attrs->stride, attrs->before, x[0], x[1], x[2], y[0], y[1], y[2]});
}

static att_status run_shortcut_pad_grad(const att_call *call)
{
    const att_shortcut_attrs *attrs = ATT_ATTRS(call->problem, shortcut);
    const int64_t *x = call->problem->out[0].shape.dims, *y = call->problem->in[0].shape.dims;
    return move(call, shortcut_grad_source{attrs->stride, attrs->before, x[0], x[1], x[2], y[0], y[1], y[2]});
}

struct transpose_source {
    att_shape x, y;
    int32_t axes[ATT_MAX_RANK];
    int64_t count;
    __device__ int64_t operator()(int64_t i) const
    {
        int64_t index[ATT_MAX_RANK] = {}, at = 0, rest = i % count;
        for (int axis = y.rank - 1; axis >= 0; axis--) {
            index[axes[axis]] = rest % y.dims[axis];
            rest /= y.dims[axis];
        }
        for (int axis = 0; axis < x.rank; axis++)
            at = at * x.dims[axis] + index[axis];
        return i / count * count + at;
    }
};

static att_status run_transpose(const att_call *call)
{
    transpose_source source = {call->problem->in[0].shape, call->problem->out[0].shape, {}, 0};
    memcpy(source.axes, ATT_ATTRS(call->problem, transpose)->axes, sizeof source.axes);
    source.count = att_shape_count(source.x);
    return move(call, source);
}

/* Pixel of the map for a row of the windows, and the inverse (ops/windows.h). */
struct windows_source {
    att_windows_attrs attrs;
    int64_t rows, columns, channels;
    __device__ int64_t operator()(int64_t i) const
    {
        int64_t row = i / channels, pixels = rows * columns;
        int64_t area = (int64_t)attrs.height * attrs.width, across = columns / attrs.width;
        int64_t window = row % pixels / area, inside = row % pixels % area;
        int64_t y = window / across * attrs.height + inside / attrs.width + attrs.shift_y;
        int64_t x = window % across * attrs.width + inside % attrs.width + attrs.shift_x;
        return (row / pixels * pixels + y % rows * columns + x % columns) * channels + i % channels;
    }
};

struct windows_back_source {
    att_windows_attrs attrs;
    int64_t rows, columns, channels;
    __device__ int64_t operator()(int64_t i) const
    {
        int64_t pixel = i / channels, pixels = rows * columns, across = columns / attrs.width;
        int64_t y = (pixel % pixels / columns - attrs.shift_y % rows + rows) % rows;
        int64_t x = (pixel % columns - attrs.shift_x % columns + columns) % columns;
        int64_t window = y / attrs.height * across + x / attrs.width;
        int64_t inside = y % attrs.height * attrs.width + x % attrs.width;
        int64_t row = window * attrs.height * attrs.width + inside;
        return (pixel / pixels * pixels + row) * channels + i % channels;
    }
};

static att_status run_windows(const att_call *call)
{
    const int64_t *map = call->problem->in[0].shape.dims;
    return move(call, windows_source{*ATT_ATTRS(call->problem, windows), map[0], map[1], map[2]});
}

static att_status run_windows_back(const att_call *call)
{
    const int64_t *map = call->problem->out[0].shape.dims;
    return move(call, windows_back_source{*ATT_ATTRS(call->problem, windows), map[0], map[1], map[2]});
}

/* --- embeddings --------------------------------------------------------------------------------------------------- */

template <class Y, class T> struct embedded {
    Y *y;
    const T *table;
    const int32_t *index;
    int64_t rows, columns;
    __device__ void operator()(int64_t i) const
    {
        int64_t row = index[i / columns];
        store(y, i, row >= 0 && row < rows ? load(table, row * columns + i % columns) : NAN);
    }
};

static att_status run_embed(const att_call *call)
{
    int64_t rows = att_cuda_dim(&call->problem->in[0], 0), columns = att_cuda_dim(&call->problem->in[0], 1);
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *table) {
            att_cuda_each(att_cuda_in_count(call, 1) * columns,
                          embedded{y, table, (const int32_t *)call->in[1], rows, columns});
        });
    });
    return att_cuda_launched(call);
}

/* One thread for each element of the table looks for its rows in order. */
template <class DY> struct embed_gradient {
    float *sum;
    const DY *dy;
    const int32_t *index;
    int64_t count, columns;
    __device__ void operator()(int64_t i) const
    {
        float total = 0;
        for (int64_t k = 0; k < count; k++)
            if (index[k] == i / columns)
                total += load(dy, k * columns + i % columns);
        sum[i] += total;
    }
};

static att_status run_embed_grad(const att_call *call)
{
    int64_t rows = ATT_ATTRS(call->problem, embed)->rows, columns = att_cuda_dim(&call->problem->in[0], -1);
    att_cuda_in(call, 0, [&](auto *dy) {
        att_cuda_each(rows * columns, embed_gradient{(float *)call->out[0], dy, (const int32_t *)call->in[1],
                                                     att_cuda_in_count(call, 1), columns});
    });
    return att_cuda_launched(call);
}

} // namespace

ATT_CUDA_KERNEL(slice_channels, run_slice_channels);
ATT_CUDA_KERNEL(slice_channels_grad, run_slice_channels_grad);
ATT_CUDA_KERNEL(slice_tokens, run_slice_tokens);
ATT_CUDA_KERNEL(slice_tokens_grad, run_slice_tokens_grad);
ATT_CUDA_KERNEL(concat, run_concat);
ATT_CUDA_KERNEL(prepend_tokens, run_prepend_tokens);
ATT_CUDA_KERNEL(concat_grad, run_concat_grad);
ATT_CUDA_KERNEL(patchify, run_patchify);
ATT_CUDA_KERNEL(patchify_grad, run_patchify_grad);
ATT_CUDA_KERNEL(merge_patches, run_merge_patches);
ATT_CUDA_KERNEL(merge_patches_grad, run_merge_patches_grad);
ATT_CUDA_KERNEL(shortcut_pad, run_shortcut_pad);
ATT_CUDA_KERNEL(shortcut_pad_grad, run_shortcut_pad_grad);
ATT_CUDA_KERNEL(transpose, run_transpose);
ATT_CUDA_KERNEL(windows, run_windows);
ATT_CUDA_KERNEL(windows_back, run_windows_back);
ATT_CUDA_KERNEL(embed, run_embed);
ATT_CUDA_KERNEL(embed_grad, run_embed_grad);
