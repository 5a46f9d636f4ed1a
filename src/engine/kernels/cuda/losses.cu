/* Losses and their gradients: one block of threads for each row of logits. */
#include "engine/kernels/cuda/cuda.cuh"

extern "C" {
#include <attscope/ops.h>

#include "engine/ops/binary_cross_entropy.h"
#include "engine/ops/cross_entropy.h"
}

namespace
{

/* Targets of rows of logits: classes, or a number for each class. */
struct targets {
    const void *data;
    bool classes;
    int64_t count; /* of classes */
    double smoothing;

    /* NaN if the class index is out of range. */
    __device__ float at(int64_t row, int64_t c) const
    {
        if (!classes)
            return ((const float *)data)[row * count + c];
        int32_t given = ((const int32_t *)data)[row];
        if (given < 0 || given >= count)
            return NAN;
        return (float)((given == c ? 1 - smoothing : 0) + smoothing / (double)count);
    }
};

static targets targets_of(const att_call *call, int logits, double smoothing)
{
    const att_problem *problem = call->problem;
    return {call->in[logits + 1], problem->in[logits + 1].dtype == ATT_I32, att_cuda_dim(&problem->in[logits], -1),
            smoothing};
}

/* --- cross entropy ------------------------------------------------------------------------------------------------ */

__device__ static bool is_left_out(const targets &t, bool may, int64_t row)
{
    return may && ((const int32_t *)t.data)[row] == ATT_NO_CLASS;
}

/* The largest logit of a row, and ln of the sum of e^(logit - largest): together the logarithm of the sum of
 * exponentials. */
template <class X> __device__ static float log_sum(const X *logits, int64_t row, int64_t count, float *largest)
{
    float most = -INFINITY, sum = 0;
    for (int64_t c = threadIdx.x; c < count; c += blockDim.x)
        most = fmaxf(most, load(logits, row * count + c));
    most = block_max(most);
    for (int64_t c = threadIdx.x; c < count; c += blockDim.x)
        sum += expf(load(logits, row * count + c) - most);
    *largest = most;
    return logf(block_sum(sum));
}

/* A block for each sample. */
template <class X>
__global__ void __launch_bounds__(256)
    cross_entropy_kernel(const X *logits, targets t, int64_t rows, bool may_leave_out, float *loss)
{
    int64_t sample = blockIdx.x;
    float total = 0;
    for (int64_t row = sample * rows; row < (sample + 1) * rows; row++) {
        float largest, rest = log_sum(logits, row, t.count, &largest), sum = 0;
        for (int64_t c = threadIdx.x; c < t.count; c += blockDim.x) {
            float target = t.at(row, c);
            if (target != 0)
                sum += target * (rest + (largest - load(logits, row * t.count + c)));
        }
        sum = block_sum(sum);
        total += is_left_out(t, may_leave_out, row) ? 0 : sum;
    }
    if (threadIdx.x == 0)
        loss[sample] = total;
}

static int64_t rows_of(const att_call *call, int logits)
{
    return ATT_ATTRS(call->problem, cross_entropy)->rows ? att_cuda_dim(&call->problem->in[logits], 0) : 1;
}

static att_status run_cross_entropy(const att_call *call)
{
    const att_cross_entropy_attrs *attrs = ATT_ATTRS(call->problem, cross_entropy);
    targets t = targets_of(call, 0, attrs->smoothing);
    att_cuda_in(call, 0, [&](auto *logits) {
        cross_entropy_kernel<<<(unsigned)call->problem->group, 256, 0, cuda.stream>>>(
            logits, t, rows_of(call, 0), attrs->rows != 0, (float *)call->out[0]);
    });
    return att_cuda_launched(call);
}

/* A block for each row. At a single largest logit the softmax may be close to 1: there the gradient is the other
 * targets less (1 - softmax) sum_c t_c, with 1 - softmax from the other terms. */
template <class DX, class X>
__global__ void __launch_bounds__(256)
    cross_entropy_grad_kernel(const float *dloss, const X *logits, targets t, int64_t rows, bool may_leave_out, DX *dx)
{
    int64_t row = blockIdx.x;
    float largest, rest = log_sum(logits, row, t.count, &largest), g = dloss[row / rows];
    float mass = 0, targets = 0, others = 0, tops = 0;
    bool left_out = is_left_out(t, may_leave_out, row);
    for (int64_t c = threadIdx.x; c < t.count; c += blockDim.x) {
        float x = load(logits, row * t.count + c), target = t.at(row, c);
        bool top = x == largest;
        mass += target;
        targets += top ? 0 : target;
        others += top ? 0 : expf(x - largest - rest);
        tops += top;
    }
    mass = block_sum(mass);
    targets = block_sum(targets);
    others = block_sum(others);
    tops = block_sum(tops);
    for (int64_t c = threadIdx.x; c < t.count; c += blockDim.x) {
        float x = load(logits, row * t.count + c), softmax = expf(x - largest - rest);
        float d = x == largest && tops == 1 ? targets - mass * others : softmax * mass - t.at(row, c);
        store(dx, row * t.count + c, left_out ? 0 : g * d);
    }
}

static att_status run_cross_entropy_grad(const att_call *call)
{
    enum { DLOSS, LOGITS };
    const att_cross_entropy_attrs *attrs = ATT_ATTRS(call->problem, cross_entropy);
    targets t = targets_of(call, LOGITS, attrs->smoothing);
    int64_t rows = rows_of(call, LOGITS);
    att_cuda_out(call, 0, [&](auto *dx) {
        att_cuda_in(call, LOGITS, [&](auto *logits) {
            cross_entropy_grad_kernel<<<(unsigned)(call->problem->group * rows), 256, 0, cuda.stream>>>(
                (const float *)call->in[DLOSS], logits, t, rows, attrs->rows != 0, dx);
        });
    });
    return att_cuda_launched(call);
}

/* --- binary cross entropy ----------------------------------------------------------------------------------------- */

__device__ static float softplus(float x)
{
    return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
}

__device__ static float binary_target(const targets &t, const att_binary_cross_entropy_attrs &attrs, int64_t row,
                                      int64_t c)
{
    float target = t.at(row, c);
    if (!attrs.binary || target != target)
        return target;
    return target > (float)attrs.threshold ? 1 : 0;
}

template <class X>
__global__ void __launch_bounds__(256)
    binary_kernel(const X *logits, targets t, att_binary_cross_entropy_attrs attrs, float *loss)
{
    int64_t sample = blockIdx.x;
    float sum = 0;
    for (int64_t c = threadIdx.x; c < t.count; c += blockDim.x) {
        float target = binary_target(t, attrs, sample, c), x = load(logits, sample * t.count + c);
        float positive = (float)attrs.positive_weight * target;
        if (positive != 0)
            sum += positive * softplus(-x);
        if (1 - target != 0)
            sum += (1 - target) * softplus(x);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        loss[sample] = attrs.sum ? sum : sum / (float)t.count;
}

static att_status run_binary_cross_entropy(const att_call *call)
{
    const att_binary_cross_entropy_attrs *attrs = ATT_ATTRS(call->problem, binary_cross_entropy);
    targets t = targets_of(call, 0, attrs->smoothing);
    att_cuda_in(call, 0, [&](auto *logits) {
        binary_kernel<<<(unsigned)call->problem->group, 256, 0, cuda.stream>>>(logits, t, *attrs,
                                                                               (float *)call->out[0]);
    });
    return att_cuda_launched(call);
}

template <class DX, class X> struct binary_gradient {
    const float *dloss;
    const X *logits;
    targets t;
    att_binary_cross_entropy_attrs attrs;
    DX *dx;
    __device__ void operator()(int64_t e) const
    {
        int64_t sample = e / t.count;
        float scale = dloss[sample] / (attrs.sum ? 1 : (float)t.count);
        float target = binary_target(t, attrs, sample, e % t.count);
        float x = load(logits, e);
        float s = 1 / (1 + expf(-x)), rest = 1 / (1 + expf(x)); /* 1 - s would lose digits */
        store(dx, e, scale * ((1 - target) * s - (float)attrs.positive_weight * target * rest));
    }
};

static att_status run_binary_cross_entropy_grad(const att_call *call)
{
    enum { DLOSS, LOGITS };
    const att_binary_cross_entropy_attrs *attrs = ATT_ATTRS(call->problem, binary_cross_entropy);
    targets t = targets_of(call, LOGITS, attrs->smoothing);
    att_cuda_out(call, 0, [&](auto *dx) {
        att_cuda_in(call, LOGITS, [&](auto *logits) {
            typedef std::remove_pointer_t<decltype(dx)> DX;
            typedef std::remove_const_t<std::remove_pointer_t<decltype(logits)>> X;
            binary_gradient<DX, X> f = {(const float *)call->in[DLOSS], logits, t, *attrs, dx};
            att_cuda_each(att_cuda_in_count(call, LOGITS), f);
        });
    });
    return att_cuda_launched(call);
}

} // namespace

ATT_CUDA_KERNEL(cross_entropy, run_cross_entropy);
ATT_CUDA_KERNEL(cross_entropy_grad, run_cross_entropy_grad);
ATT_CUDA_KERNEL(binary_cross_entropy, run_binary_cross_entropy);
ATT_CUDA_KERNEL(binary_cross_entropy_grad, run_binary_cross_entropy_grad);
