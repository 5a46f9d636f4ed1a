/* Pools of all rows of a channel, or of all channels of a row: global_max, global_style, channel_pool, dct_pool. */
#include "engine/kernels/cuda/channels.cuh"

extern "C" {
#include "engine/ops/dct_pool.h"
#include "engine/ops/global_style.h"
}

/* The larger number; NaN if either is NaN. */
__device__ static float larger(float a, float b)
{
    return b > a || isnan(b) ? b : a;
}

/* --- global_max --------------------------------------------------------------------------------------------------- */

struct channel_max {
    cuda_value x, y;
    int64_t rows, columns;
    __device__ void operator()(int64_t number) const
    {
        int64_t begin = number / columns * rows * columns + number % columns;
        float largest = load(x, begin);
        for (int64_t row = 1; row < rows; row++)
            largest = larger(largest, load(x, begin + row * columns));
        store(y, number, largest);
    }
};

static att_status run_max(const att_call *call)
{
    cuda_channels x = cuda_channels_of(call, 0);
    att_cuda_each(x.samples * x.columns, channel_max{cuda_in(call, 0), cuda_out(call, 0), x.rows, x.columns});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(global_max, run_max);

/* The first of the largest elements has the gradient. */
struct channel_max_grad {
    cuda_value dy, x, y, dx;
    int64_t rows, columns;
    __device__ void operator()(int64_t number) const
    {
        int64_t begin = number / columns * rows * columns + number % columns;
        float largest = load(y, number), gradient = load(dy, number);
        bool given = false;
        for (int64_t row = 0; row < rows; row++) {
            bool first = !given && load(x, begin + row * columns) == largest;
            store(dx, begin + row * columns, first ? gradient : 0);
            given |= first;
        }
    }
};

static att_status run_max_grad(const att_call *call)
{
    cuda_channels x = cuda_channels_of(call, 1);
    att_cuda_each(x.samples * x.columns, channel_max_grad{cuda_in(call, 0), cuda_in(call, 1), cuda_in(call, 2),
                                                          cuda_out(call, 0), x.rows, x.columns});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(global_max_grad, run_max_grad);

/* --- global_style ------------------------------------------------------------------------------------------------- */

struct style_value {
    cuda_value x;
    __device__ void operator()(int64_t, int64_t, int64_t, int64_t e, float numbers[1]) const
    {
        numbers[0] = load(x, e);
    }
};

struct style_mean {
    float *y;
    float rows;
    __device__ void operator()(int64_t number, const float sums[1]) const
    {
        y[2 * number] = sums[0] / rows;
    }
};

struct style_square {
    cuda_value x;
    const float *y;
    int64_t columns;
    __device__ void operator()(int64_t sample, int64_t, int64_t channel, int64_t e, float numbers[1]) const
    {
        float d = load(x, e) - y[2 * (sample * columns + channel)];
        numbers[0] = d * d;
    }
};

struct style_deviation {
    float *y;
    float rows, eps;
    __device__ void operator()(int64_t number, const float sums[1]) const
    {
        y[2 * number + 1] = sqrtf(sums[0] / (rows - 1) + eps);
    }
};

static att_status run_style(const att_call *call)
{
    cuda_channels x = cuda_channels_of(call, 0);
    float *y = (float *)call->out[0];
    cuda_channel_sums<1>(x, style_value{cuda_in(call, 0)}, style_mean{y, (float)x.rows});
    cuda_channel_sums<1>(x, style_square{cuda_in(call, 0), y, x.columns},
                         style_deviation{y, (float)x.rows, (float)ATT_ATTRS(call->problem, style)->eps});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(global_style, run_style);

/* Rows are pixels. */
struct style_grad_row {
    cuda_value x, dx;
    const float *dy, *y;
    cuda_channels shape;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        float rows = (float)shape.rows;
        for (int64_t c = team.first(); c < shape.columns; c += team.step) {
            int64_t k = row / shape.rows * shape.columns + c, e = row * shape.columns + c;
            float across = dy[2 * k + 1] * (load(x, e) - y[2 * k]) / ((rows - 1) * y[2 * k + 1]);
            store(dx, e, dy[2 * k] / rows + across);
        }
    }
};

static att_status run_style_grad(const att_call *call)
{
    cuda_channels x = cuda_channels_of(call, 1);
    cuda_each_row(
        x.samples * x.rows, x.columns,
        style_grad_row{cuda_in(call, 1), cuda_out(call, 0), (const float *)call->in[0], (const float *)call->in[2], x});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(global_style_grad, run_style_grad);

/* --- channel_pool ------------------------------------------------------------------------------------------------- */

struct pool_row {
    cuda_value x, y;
    int columns;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        float sum = 0, largest = -INFINITY, is_nan = 0;
        for (int c = team.first(); c < columns; c += team.step) {
            float value = load(x, row * columns + c);
            sum += value;
            largest = fmaxf(largest, value);
            is_nan = isnan(value) ? 1 : is_nan;
        }
        sum = team.sum(sum), largest = team.max(largest), is_nan = team.max(is_nan);
        if (team.first() > 0)
            return;
        store(y, 2 * row, sum / columns);
        store(y, 2 * row + 1, is_nan > 0 ? NAN : largest);
    }
};

static att_status run_pool(const att_call *call)
{
    int columns = (int)att_cuda_dim(&call->problem->in[0], -1);
    cuda_each_row(att_cuda_rows(call, 0), columns, pool_row{cuda_in(call, 0), cuda_out(call, 0), columns});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(channel_pool, run_pool);

struct pool_grad_row {
    cuda_value dy, x, y, dx;
    int columns;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        float largest = load(y, 2 * row + 1), first = -INFINITY; /* minus the first column of the largest */
        for (int c = team.first(); c < columns; c += team.step)
            if (load(x, row * columns + c) == largest)
                first = fmaxf(first, (float)-c);
        first = team.max(first);
        for (int c = team.first(); c < columns; c += team.step)
            store(dx, row * columns + c,
                  load(dy, 2 * row) / columns + ((float)-c == first ? load(dy, 2 * row + 1) : 0));
    }
};

static att_status run_pool_grad(const att_call *call)
{
    int columns = (int)att_cuda_dim(&call->problem->in[1], -1);
    cuda_each_row(att_cuda_rows(call, 1), columns,
                  pool_grad_row{cuda_in(call, 0), cuda_in(call, 1), cuda_in(call, 2), cuda_out(call, 0), columns});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(channel_pool_grad, run_pool_grad);

/* --- dct_pool ----------------------------------------------------------------------------------------------------- */

/* The weights of rows [count, map_height], then of columns [count, map_width], of each group of channels. */
struct dct_axis {
    att_dct_attrs attrs;
    float *weights;
    __device__ void operator()(int64_t e) const
    {
        int64_t of_rows = (int64_t)attrs.count * attrs.map_height;
        bool rows = e < of_rows;
        int64_t at = rows ? e : e - of_rows, size = rows ? attrs.map_height : attrs.map_width;
        int group = (int)(at / size), length = rows ? attrs.height : attrs.width;
        weights[e] = (float)weight_of(at % size, size, rows ? attrs.rows[group] : attrs.columns[group], length);
    }
    /* Weight of element p of an axis of `size` elements in sum_i B(i, k, length) mean(window i), see
     * att_dct_pool(). */
    __device__ static double weight_of(int64_t p, int64_t size, int k, int length)
    {
        const double pi = 3.14159265358979323846;
        double sum = 0, factor = (k > 0 ? sqrt(2.0) : 1) / sqrt((double)length);
        for (int64_t i = 0; i < length; i++) {
            int64_t first = i * size / length, end = ((i + 1) * size + length - 1) / length;
            if (p >= first && p < end)
                sum += cos(pi * k * ((double)i + 0.5) / length) * factor / (double)(end - first);
        }
        return sum;
    }
};

struct dct_weights {
    const float *weights;
    int64_t count, height, width, channels;
    __device__ float at(int64_t pixel, int64_t channel) const
    {
        int64_t group = channel / (channels / count);
        return weights[group * height + pixel / width] * weights[count * height + group * width + pixel % width];
    }
};

static dct_weights find_weights(const att_call *call, int64_t channels)
{
    const att_dct_attrs *attrs = ATT_ATTRS(call->problem, dct);
    float *weights = (float *)call->scratch;
    att_cuda_each((int64_t)attrs->count * (attrs->map_height + attrs->map_width), dct_axis{*attrs, weights});
    return {weights, attrs->count, attrs->map_height, attrs->map_width, channels};
}

static att_status prepare_dct(const att_problem *problem, att_prepared *prepared)
{
    const att_dct_attrs *attrs = ATT_ATTRS(problem, dct);
    prepared->scratch_bytes = (size_t)attrs->count * (size_t)(attrs->map_height + attrs->map_width) * sizeof(float);
    return ATT_OK;
}

struct dct_product {
    cuda_value x;
    dct_weights weights;
    __device__ void operator()(int64_t, int64_t row, int64_t channel, int64_t e, float numbers[1]) const
    {
        numbers[0] = load(x, e) * weights.at(row, channel);
    }
};

struct dct_put {
    cuda_value y;
    __device__ void operator()(int64_t number, const float sums[1]) const
    {
        store(y, number, sums[0]);
    }
};

static att_status run_dct(const att_call *call)
{
    cuda_channels x = cuda_channels_of(call, 0);
    cuda_channel_sums<1>(x, dct_product{cuda_in(call, 0), find_weights(call, x.columns)}, dct_put{cuda_out(call, 0)});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(dct_pool, prepare_dct, run_dct, nullptr);

/* Rows are pixels. */
struct dct_grad_row {
    cuda_value dy, dx;
    dct_weights weights;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        int64_t pixels = weights.height * weights.width;
        for (int64_t c = team.first(); c < weights.channels; c += team.step)
            store(dx, row * weights.channels + c,
                  load(dy, row / pixels * weights.channels + c) * weights.at(row % pixels, c));
    }
};

static att_status run_dct_grad(const att_call *call)
{
    dct_weights weights = find_weights(call, call->problem->in[0].shape.dims[0]);
    cuda_each_row(call->problem->group * weights.height * weights.width, weights.channels,
                  dct_grad_row{cuda_in(call, 0), cuda_out(call, 0), weights});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(dct_pool_grad, prepare_dct, run_dct_grad, nullptr);
