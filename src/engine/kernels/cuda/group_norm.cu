#include "engine/kernels/cuda/channels.cuh"

extern "C" {
#include "engine/ops/group_norm.h"
}

/* Of each group of each sample: mean and rstd; for the gradient also the means of dy gamma, and of dy gamma times the
 * normalised x. */
struct group_numbers {
    float mean, rstd, mean_g, mean_gn;
};

struct group_shape {
    cuda_channels x;
    int64_t groups, width; /* width: channels of a group */
    float eps;
    __device__ int64_t group_of(int64_t sample, int64_t channel) const
    {
        return sample * groups + channel / width;
    }
};

static group_shape shape_of(const att_call *call, int input)
{
    const att_group_norm_attrs *attrs = ATT_ATTRS(call->problem, group_norm);
    cuda_channels x = cuda_channels_of(call, input);
    return {x, attrs->groups, x.columns / attrs->groups, (float)attrs->eps};
}

/* The group's mean is the mean of the channel means; its sum of squares is the sum of those of the channels, plus the
 * rows times the squared distances of the channel means from its mean. */
struct group_moments {
    group_shape shape;
    const float *moments; /* [samples, 2, C] */
    group_numbers *numbers;
    __device__ void operator()(int64_t number) const
    {
        int64_t sample = number / shape.groups, c = number % shape.groups * shape.width;
        const float *means = moments + sample * 2 * shape.x.columns + c, *squares = means + shape.x.columns;
        double mean = 0, sum = 0, rows = (double)shape.x.rows;
        for (int64_t i = 0; i < shape.width; i++)
            mean += means[i];
        mean /= (double)shape.width;
        for (int64_t i = 0; i < shape.width; i++)
            sum += squares[i] + rows * (means[i] - mean) * (means[i] - mean);
        numbers[number] = {(float)mean, (float)(1 / sqrt(sum / (rows * (double)shape.width) + shape.eps)), 0, 0};
    }
};

static group_numbers *find_groups(const att_call *call, const group_shape &shape, int moments)
{
    group_numbers *numbers = (group_numbers *)call->scratch;
    att_cuda_each(shape.x.samples * shape.groups, group_moments{shape, (const float *)call->in[moments], numbers});
    return numbers;
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)(problem->group * ATT_ATTRS(problem, group_norm)->groups) * sizeof(group_numbers);
    return ATT_OK;
}

/* Rows are pixels. */
struct group_row {
    group_shape shape;
    cuda_value x, gamma, beta, y;
    const group_numbers *numbers;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        int64_t sample = row / shape.x.rows;
        for (int64_t c = team.first(); c < shape.x.columns; c += team.step) {
            group_numbers g = numbers[shape.group_of(sample, c)];
            float normal = (load(x, row * shape.x.columns + c) - g.mean) * g.rstd;
            float scaled = normal * (gamma.data ? load(gamma, c) : 1);
            store(y, row * shape.x.columns + c, scaled + (beta.data ? load(beta, c) : 0));
        }
    }
};

static att_status run_norm(const att_call *call)
{
    enum { X, MOMENTS, GAMMA, BETA };
    group_shape shape = shape_of(call, X);
    const group_numbers *numbers = find_groups(call, shape, MOMENTS);
    cuda_each_row(
        shape.x.samples * shape.x.rows, shape.x.columns,
        group_row{shape, cuda_in(call, X), cuda_in(call, GAMMA), cuda_in(call, BETA), cuda_out(call, 0), numbers});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(group_norm, prepare, run_norm, nullptr);

enum { DY, GRAD_X, GRAD_MOMENTS, GRAD_GAMMA, SUM_DY, SUM_DY_NORMAL };

struct group_products {
    group_shape shape;
    cuda_value dy, x;
    const group_numbers *numbers;
    __device__ void operator()(int64_t sample, int64_t, int64_t channel, int64_t e, float products[2]) const
    {
        group_numbers g = numbers[shape.group_of(sample, channel)];
        products[0] = load(dy, e);
        products[1] = products[0] * ((load(x, e) - g.mean) * g.rstd);
    }
};

struct group_put_sums {
    cuda_value sum, products;
    __device__ void operator()(int64_t number, const float sums[2]) const
    {
        put(sum, number, sums[0]);
        put(products, number, sums[1]);
    }
};

static att_status run_sums(const att_call *call)
{
    group_shape shape = shape_of(call, GRAD_X);
    const group_numbers *numbers = find_groups(call, shape, GRAD_MOMENTS);
    cuda_channel_sums<2>(shape.x, group_products{shape, cuda_in(call, DY), cuda_in(call, GRAD_X), numbers},
                         group_put_sums{cuda_out(call, 0), cuda_out(call, 1)});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(group_norm_sums, prepare, run_sums, nullptr);

struct group_means {
    group_shape shape;
    cuda_value gamma, sum, products;
    group_numbers *numbers;
    __device__ void operator()(int64_t number) const
    {
        double mean = 0, product = 0, count = (double)shape.x.rows * (double)shape.width;
        int64_t first = number % shape.groups * shape.width, sample = number / shape.groups;
        for (int64_t c = first; c < first + shape.width; c++) {
            double factor = gamma.data ? load(gamma, c) : 1;
            mean += factor * load(sum, sample * shape.x.columns + c);
            product += factor * load(products, sample * shape.x.columns + c);
        }
        numbers[number].mean_g = (float)(mean / count);
        numbers[number].mean_gn = (float)(product / count);
    }
};

/* Rows are pixels. */
struct group_grad_row {
    group_shape shape;
    cuda_value dy, x, gamma, dx;
    const group_numbers *numbers;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        int64_t sample = row / shape.x.rows;
        for (int64_t c = team.first(); c < shape.x.columns; c += team.step) {
            int64_t e = row * shape.x.columns + c;
            group_numbers g = numbers[shape.group_of(sample, c)];
            float factor = gamma.data ? load(gamma, c) : 1, normal = (load(x, e) - g.mean) * g.rstd;
            store(dx, e, g.rstd * (load(dy, e) * factor - g.mean_g - normal * g.mean_gn));
        }
    }
};

static att_status run_grad(const att_call *call)
{
    group_shape shape = shape_of(call, GRAD_X);
    group_numbers *numbers = find_groups(call, shape, GRAD_MOMENTS);
    att_cuda_each(shape.x.samples * shape.groups, group_means{shape, cuda_in(call, GRAD_GAMMA), cuda_in(call, SUM_DY),
                                                              cuda_in(call, SUM_DY_NORMAL), numbers});
    cuda_each_row(shape.x.samples * shape.x.rows, shape.x.columns,
                  group_grad_row{shape, cuda_in(call, DY), cuda_in(call, GRAD_X), cuda_in(call, GRAD_GAMMA),
                                 cuda_out(call, 0), numbers});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(group_norm_grad, prepare, run_grad, nullptr);
