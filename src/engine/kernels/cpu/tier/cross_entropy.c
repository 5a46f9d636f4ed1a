#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/cross_entropy.h"

/* The target of one row of logits: a distribution, or a class with smoothing. class is -1 if the class index is out of
 * range. */
typedef struct target {
    const float *soft;
    int32_t class;
    float low, high;
    bool left_out;
} target;

static target target_of(const att_call *call, int input, int64_t row, int64_t classes)
{
    const att_cross_entropy_attrs *attrs = ATT_ATTRS(call->problem, cross_entropy);
    double low = attrs->smoothing / (double)classes;
    if (call->problem->in[input].dtype != ATT_I32)
        return (target){.soft = (const float *)call->in[input] + row * classes};
    int32_t class = ((const int32_t *)call->in[input])[row];
    bool left_out = attrs->rows && class == ATT_NO_CLASS;
    class = class >= 0 && class < classes ? class : -1;
    return (target){
        .class = class, .low = (float)low, .high = (float)(1 - attrs->smoothing + low), .left_out = left_out};
}

/* Rows of logits of a sample. */
static int64_t rows_of(const att_call *call, const att_desc *logits)
{
    return ATT_ATTRS(call->problem, cross_entropy)->rows ? logits->shape.dims[0] : 1;
}

static float largest_of(const float *x, int64_t count)
{
    float largest = x[0];
    for (int64_t i = 1; i < count; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/* Sum of e^(x - largest). If out is not NULL, the terms are stored there. */
ATT_INLINE float sum_exp(const float *x, float largest, int64_t count, float *out)
{
    vf sum = {0};
    int64_t i = 0;
    for (; i + VW <= count; i += VW) {
        vf e = v_exp(v_load(x + i) - largest);
        sum += e;
        if (out)
            v_store(out + i, e);
    }
    if (i < count) {
        float lane[VW];
        v_store(lane, v_exp(v_load_part(x + i, count - i) - largest));
        vf e = v_load_part(lane, count - i);
        sum += e;
        if (out)
            v_store_part(out + i, e, count - i);
    }
    return v_sum(sum);
}

/* sum_c t_c (lse - x_c). The maximum is subtracted from x, which avoids cancellation. */
static double loss_of(const float *x, const target *t, int64_t count)
{
    if (t->left_out)
        return 0;
    if (!t->soft && t->class < 0)
        return NAN;
    float largest = largest_of(x, count);
    double log_sum = log((double)sum_exp(x, largest, count, NULL)), loss = 0;
    if (t->soft || t->low != 0) {
        for (int64_t c = 0; c < count; c++)
            loss += (double)(t->soft ? t->soft[c] : t->low) * (log_sum - ((double)x[c] - largest));
    }
    if (!t->soft)
        loss += (double)(t->high - t->low) * (log_sum - ((double)x[t->class] - largest));
    return loss;
}

static att_status cross_entropy_run(const att_call *call)
{
    int64_t classes = att_columns(&call->problem->in[0]), rows = rows_of(call, &call->problem->in[0]);
    att_range part = att_part_of(call, call->problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        double loss = 0;
        for (int64_t row = sample * rows; row < (sample + 1) * rows; row++) {
            target t = target_of(call, 1, row, classes);
            loss += loss_of((const float *)call->in[0] + row * classes, &t, classes);
        }
        ((float *)call->out[0])[sample] = (float)loss;
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(cross_entropy, .run = cross_entropy_run);

ATT_INLINE float sum_of(const float *x, int64_t count)
{
    vf sum = {0};
    int64_t i = 0;
    for (; i + VW <= count; i += VW)
        sum += v_load(x + i);
    if (i < count)
        sum += v_load_part(x + i, count - i);
    return v_sum(sum);
}

static float sum_without(const float *x, int64_t place, int64_t count)
{
    return sum_of(x, place) + sum_of(x + place + 1, count - place - 1);
}

/* Place of the largest number; of equal ones the first. */
static int64_t place_of(float largest, const float *x, int64_t count)
{
    int64_t i = 0;
    while (i < count - 1 && x[i] != largest)
        i++;
    return i;
}

/* The targets of all classes but one, summed. */
static float targets_without(const target *t, int64_t place, int64_t count)
{
    if (t->soft)
        return sum_without(t->soft, place, count);
    return t->class == place ? t->low * (float)(count - 1) : t->high + t->low * (float)(count - 2);
}

static void plain_gradient(float dloss, float share, const target *t, int64_t count, float *dx)
{
    float at_class = t->class >= 0 ? dx[t->class] : 0;
#pragma omp simd
    for (int64_t c = 0; c < count; c++)
        dx[c] = dloss * (dx[c] * share - t->low);
    if (t->class >= 0)
        dx[t->class] = dloss * (at_class * share - t->high);
}

static void soft_gradient(float dloss, float share, const target *t, int64_t count, float *dx)
{
#pragma omp simd
    for (int64_t c = 0; c < count; c++)
        dx[c] = dloss * (dx[c] * share - t->soft[c]);
}

/* dlogits = dloss (softmax sum_c t_c - t). A softmax above 1/2, of the largest logit, may be close to 1 and to a
 * target: there the gradient is dloss (the other targets - (1 - softmax) sum_c t_c), with 1 - softmax from the other
 * terms. */
static void gradient_of(float dloss, const float *x, const target *t, int64_t count, float *dx)
{
    if (t->left_out) {
        memset(dx, 0, (size_t)count * sizeof *dx);
        return;
    }
    if (!t->soft && t->class < 0)
        dloss = NAN;
    float total = t->soft ? 0 : 1;
    for (int64_t c = 0; t->soft && c < count; c++)
        total += t->soft[c];
    float largest = largest_of(x, count), sum = sum_exp(x, largest, count, dx), share = total / sum;
    bool is_sure = sum < 2; /* the largest term is 1 */
    int64_t top = is_sure ? place_of(largest, x, count) : 0;
    float at_top = is_sure ? dloss * (targets_without(t, top, count) - share * sum_without(dx, top, count)) : 0;
    (t->soft ? soft_gradient : plain_gradient)(dloss, share, t, count, dx);
    if (is_sure)
        dx[top] = at_top;
}

static att_status cross_entropy_grad_run(const att_call *call)
{
    int64_t classes = att_columns(&call->problem->in[1]), rows = rows_of(call, &call->problem->in[1]);
    att_range part = att_part_of(call, call->problem->group * rows, 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        target t = target_of(call, 2, row, classes);
        gradient_of(((const float *)call->in[0])[row / rows], (const float *)call->in[1] + row * classes, &t, classes,
                    (float *)call->out[0] + row * classes);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(cross_entropy_grad, .run = cross_entropy_grad_run);
