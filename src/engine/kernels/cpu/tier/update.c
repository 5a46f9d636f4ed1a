#include <math.h>

#include "base/core/simd.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/update.h"

enum { GRAIN = 4096 }; /* elements per sum of squares; parts share elements in multiples of this number */

static att_status sum_lanes_run(const att_call *call)
{
    const float *lanes = call->in[0];
    float *total = call->out[0];
    int64_t count = call->problem->in[0].shape.dims[0], n = call->problem->in[0].shape.dims[1];
    att_range part = att_part_of(call, n, GRAIN);
    for (int64_t lane = 0; lane < count; lane++) {
        const float *from = lanes + lane * n;
#pragma omp simd
        for (int64_t i = part.begin; i < part.end; i++)
            total[i] += from[i];
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(sum_lanes, .run = sum_lanes_run);

static double sum_of_squares(const float *x, int64_t count)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static att_status sum_squares_run(const att_call *call)
{
    const float *x = call->in[0];
    double *squares = call->out[0];
    att_range part = att_part_of(call, call->problem->in[0].shape.dims[0], GRAIN);
    for (int64_t begin = part.begin; begin < part.end; begin += GRAIN) {
        int64_t end = begin + GRAIN < part.end ? begin + GRAIN : part.end;
        squares[begin / GRAIN] = sum_of_squares(x + begin, end - begin);
    }
    return ATT_OK;
}

static bool squares_f32(const att_problem *problem)
{
    return problem->in[0].dtype == ATT_F32;
}

ATT_TIER_KERNEL(sum_squares, "sum_squares", "simd", .accepts = squares_f32, .run = sum_squares_run);

static double lr_of(const att_call *call)
{
    return call->run->hyper->lr * ATT_ATTRS(call->problem, update)->lr;
}

static float decay_of(const att_call *call)
{
    return (float)(call->run->hyper->weight_decay * ATT_ATTRS(call->problem, update)->weight_decay);
}

/* torch.optim.AdamW and, without `decoupled`, torch.optim.Adam: p -= lr wd p, or g += wd p; m += (1 - b1)(g - m);
 * v = b2 v + (1 - b2) g^2; p -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps). */
ATT_INLINE att_status run_adam(const att_call *call, bool decoupled)
{
    const att_hyper *hyper = call->run->hyper;
    const float *restrict g = call->in[0];
    float *restrict p = call->out[0], *restrict m = call->out[1], *restrict v = call->out[2];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), GRAIN);
    double correction1 = 1 - pow(hyper->beta1, (double)hyper->update);
    double correction2 = 1 - pow(hyper->beta2, (double)hyper->update);
    float decay = decay_of(call), keep = decoupled ? (float)(1 - lr_of(call) * (double)decay) : 1;
    float step = (float)(lr_of(call) / correction1);
    float share1 = (float)(1 - hyper->beta1), beta2 = (float)hyper->beta2, share2 = (float)(1 - hyper->beta2);
    float root = (float)(1 / sqrt(correction2)), eps = (float)hyper->eps, scale = *(const float *)call->in[1];
#pragma omp simd
    for (int64_t i = part.begin; i < part.end; i++) {
        float gradient = decoupled ? g[i] * scale : g[i] * scale + decay * p[i];
        m[i] += share1 * (gradient - m[i]);
        v[i] = beta2 * v[i] + share2 * gradient * gradient;
        p[i] = p[i] * keep - step * m[i] / (sqrtf(v[i]) * root + eps);
    }
    return ATT_OK;
}

static att_status adamw_run(const att_call *call)
{
    return run_adam(call, true);
}

static att_status adam_run(const att_call *call)
{
    return run_adam(call, false);
}

ATT_SIMD_KERNEL(adam, .run = adam_run);
ATT_SIMD_KERNEL(adamw, .run = adamw_run);

/* torch.optim.SGD: g += wd p; buf = momentum buf + g; p -= lr (nesterov ? g + momentum buf : buf). */
static att_status sgd_run(const att_call *call)
{
    const att_hyper *hyper = call->run->hyper;
    const float *restrict g = call->in[0];
    float *restrict p = call->out[0], *restrict buffer = call->out[1];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), GRAIN);
    float decay = decay_of(call), momentum = (float)hyper->momentum, rate = (float)lr_of(call);
    float scale = *(const float *)call->in[1];
    float buffer_factor = hyper->nesterov ? momentum : 1, gradient_factor = hyper->nesterov ? 1 : 0;
#pragma omp simd
    for (int64_t i = part.begin; i < part.end; i++) {
        float gradient = g[i] * scale + decay * p[i];
        buffer[i] = momentum * buffer[i] + gradient;
        p[i] -= rate * (gradient_factor * gradient + buffer_factor * buffer[i]);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(sgd, .run = sgd_run);

static att_status ema_run(const att_call *call)
{
    const float *restrict p = call->in[0];
    float *restrict ema = call->out[0];
    float share = (float)(1 - call->run->hyper->ema_decay);
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), GRAIN);
#pragma omp simd
    for (int64_t i = part.begin; i < part.end; i++)
        ema[i] += share * (p[i] - ema[i]);
    return ATT_OK;
}

ATT_SIMD_KERNEL(ema, .run = ema_run);
