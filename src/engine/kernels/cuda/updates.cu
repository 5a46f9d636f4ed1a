/* Sums of lanes, the norm of the gradient, optimisers, and the moving average of weights. */
#include "engine/kernels/cuda/cuda.cuh"

extern "C" {
#include "engine/ops/update.h"
}

namespace
{

struct lanes {
    const float *from; /* [count, n] */
    float *sum;
    int64_t count, n;
    __device__ void operator()(int64_t i) const
    {
        float total = sum[i];
        for (int64_t lane = 0; lane < count; lane++)
            total += from[lane * n + i];
        sum[i] = total;
    }
};

static att_status run_sum_lanes(const att_call *call)
{
    int64_t count = att_cuda_dim(&call->problem->in[0], 0), n = att_cuda_dim(&call->problem->in[0], 1);
    att_cuda_each(n, lanes{(const float *)call->in[0], (float *)call->out[0], count, n});
    return att_cuda_launched(call);
}

/* --- the norm ----------------------------------------------------------------------------------------------------- */

/* elements of each sum of squares */
enum { SQUARES_BLOCK = 4096 };

__global__ void __launch_bounds__(256) squares_kernel(const float *x, int64_t n, double *squares)
{
    int64_t first = (int64_t)blockIdx.x * SQUARES_BLOCK;
    int64_t end = first + SQUARES_BLOCK < n ? first + SQUARES_BLOCK : n;
    double sum = 0;
    for (int64_t i = first + threadIdx.x; i < end; i += blockDim.x)
        sum += (double)x[i] * x[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        squares[blockIdx.x] = sum;
}

static att_status run_sum_squares(const att_call *call)
{
    int64_t n = att_cuda_dim(&call->problem->in[0], 0);
    squares_kernel<<<(unsigned)((n + SQUARES_BLOCK - 1) / SQUARES_BLOCK), 256, 0, cuda.stream>>>(
        (const float *)call->in[0], n, (double *)call->out[0]);
    return att_cuda_launched(call);
}

__global__ void __launch_bounds__(1024) norm_kernel(const double *squares, int64_t n, double *norm)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += squares[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *norm = sqrt(sum);
}

static att_status run_gradient_norm(const att_call *call)
{
    norm_kernel<<<1, 1024, 0, cuda.stream>>>((const double *)call->in[0], att_cuda_in_count(call, 0),
                                             (double *)call->out[0]);
    return att_cuda_launched(call);
}

struct clip {
    const double *norm;
    float *factor;
    double most;
    __device__ void operator()(int64_t i) const
    {
        double f = most > 0 ? most / (*norm + 1e-6) : 1;
        factor[i] = (float)(f < 1 ? f : 1);
    }
};

static att_status run_clip_factor(const att_call *call)
{
    att_cuda_each(1, clip{(const double *)call->in[0], (float *)call->out[0], call->run->hyper->clip_norm});
    return att_cuda_launched(call);
}

/* Weights are f32; the norm is f64 in weights of any type. */
static bool is_f32_update(const att_problem *problem)
{
    return problem->in[0].dtype == ATT_F32 || problem->out[0].dtype == ATT_F32 ||
           (problem->in[0].dtype == ATT_F64 && problem->out[0].dtype == ATT_F64);
}

/* --- optimisers --------------------------------------------------------------------------------------------------- */

/* The hyperparameters of a range of weights, with its factors. */
struct rates {
    double lr, decay, momentum, beta1, beta2, eps, correction1, correction2;
    bool nesterov;
};

static rates rates_of(const att_call *call)
{
    const att_hyper *h = call->run->hyper;
    const att_update_attrs *attrs = ATT_ATTRS(call->problem, update);
    return {h->lr * attrs->lr,
            h->weight_decay * attrs->weight_decay,
            h->momentum,
            h->beta1,
            h->beta2,
            h->eps,
            1 - pow(h->beta1, (double)h->update),
            1 - pow(h->beta2, (double)h->update),
            h->nesterov};
}

struct sgd {
    rates r;
    const float *gradient, *clip;
    float *p, *buffer;
    __device__ void operator()(int64_t i) const
    {
        float momentum = (float)r.momentum, g = gradient[i] * *clip + (float)r.decay * p[i];
        float b = momentum * buffer[i] + g;
        p[i] -= (float)r.lr * (r.nesterov ? g + momentum * b : b);
        buffer[i] = b;
    }
};

static att_status run_sgd(const att_call *call)
{
    att_cuda_each(att_cuda_in_count(call, 0),
                  sgd{rates_of(call), (const float *)call->in[0], (const float *)call->in[1], (float *)call->out[0],
                      (float *)call->out[1]});
    return att_cuda_launched(call);
}

/* decoupled: the decay multiplies the weight (AdamW); else it is part of the gradient. */
struct adam {
    float beta1, beta2, rest1, rest2, decay, shrink, step, root, eps;
    bool decoupled;
    const float *gradient, *clip;
    float *p, *exp_avg, *exp_avg_sq;
    __device__ void operator()(int64_t i) const
    {
        float old = p[i], g = gradient[i] * *clip + (decoupled ? 0 : decay * old);
        float m = beta1 * exp_avg[i] + rest1 * g, v = beta2 * exp_avg_sq[i] + rest2 * g * g;
        p[i] = (decoupled ? old * shrink : old) - step * m / (sqrtf(v) * root + eps);
        exp_avg[i] = m;
        exp_avg_sq[i] = v;
    }
};

static att_status run_adam_like(const att_call *call, bool decoupled)
{
    rates r = rates_of(call);
    adam update = {(float)r.beta1,
                   (float)r.beta2,
                   (float)(1 - r.beta1),
                   (float)(1 - r.beta2),
                   (float)r.decay,
                   (float)(1 - r.lr * r.decay),
                   (float)(r.lr / r.correction1),
                   (float)(1 / sqrt(r.correction2)),
                   (float)r.eps,
                   decoupled,
                   (const float *)call->in[0],
                   (const float *)call->in[1],
                   (float *)call->out[0],
                   (float *)call->out[1],
                   (float *)call->out[2]};
    att_cuda_each(att_cuda_in_count(call, 0), update);
    return att_cuda_launched(call);
}

static att_status run_adam(const att_call *call)
{
    return run_adam_like(call, false);
}

static att_status run_adamw(const att_call *call)
{
    return run_adam_like(call, true);
}

struct average {
    const float *weight;
    float *mean;
    float decay, rest;
    __device__ void operator()(int64_t i) const
    {
        mean[i] = decay * mean[i] + rest * weight[i];
    }
};

static att_status run_ema(const att_call *call)
{
    double decay = call->run->hyper->ema_decay;
    att_cuda_each(att_cuda_in_count(call, 0),
                  average{(const float *)call->in[0], (float *)call->out[0], (float)decay, (float)(1 - decay)});
    return att_cuda_launched(call);
}

} // namespace

/* The norm is in f64. */
#define WIDE_KERNEL(op, run) ATT_CUDA_DESCRIPTOR(op, "cuda", is_f32_update, nullptr, nullptr, run, nullptr)

ATT_CUDA_KERNEL(sum_lanes, run_sum_lanes);
WIDE_KERNEL(sum_squares, run_sum_squares);
WIDE_KERNEL(gradient_norm, run_gradient_norm);
WIDE_KERNEL(clip_factor, run_clip_factor);
ATT_CUDA_KERNEL(sgd, run_sgd);
ATT_CUDA_KERNEL(adam, run_adam);
ATT_CUDA_KERNEL(adamw, run_adamw);
ATT_CUDA_KERNEL(ema, run_ema);
