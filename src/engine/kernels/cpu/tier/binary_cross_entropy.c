#include "engine/ops/binary_cross_entropy.h"

#include <math.h>
#include <string.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/kernels/cpu/tiered.h"

/* One sample's targets: one for each class; or `low`, and `high` for its own class. */
typedef struct target {
    const float *soft;    /* NULL: the other members hold */
    const int32_t *whole; /* not NULL: 1, 0 or ATT_NO_CLASS for each class, and nothing else holds */
    int32_t class;        /* -1: the class index is out of range */
    float low, high;
    bool binary;
    float threshold;
} target;

static float above(const target *t, float value)
{
    return !t->binary || isnan(value) ? value : value > t->threshold ? 1.0f : 0.0f;
}

static float target_at(const target *t, int64_t c)
{
    return t->soft ? above(t, t->soft[c]) : c == t->class ? t->high : t->low;
}

static target target_of(const att_call *call, int input, int64_t sample, int64_t classes)
{
    const att_binary_cross_entropy_attrs *attrs = ATT_ATTRS(call->problem, binary_cross_entropy);
    target t = {.binary = attrs->binary, .threshold = (float)attrs->threshold};
    if (call->problem->in[input].dtype != ATT_I32) {
        t.soft = (const float *)call->in[input] + sample * classes;
        return t;
    }
    if (call->problem->in[input].shape.rank == 1) {
        t.whole = (const int32_t *)call->in[input] + sample * classes;
        return t;
    }
    int32_t class = ((const int32_t *)call->in[input])[sample];
    double low = attrs->smoothing / (double)classes;
    t.class = class >= 0 && class < classes ? class : -1;
    t.low = above(&t, (float)low);
    t.high = above(&t, (float)(1 - attrs->smoothing + low));
    return t;
}

/* ln(1 + e^x) */
static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double whole_loss(const float *x, const int32_t *t, double positive_weight, int64_t count)
{
    double loss = 0;
    for (int64_t c = 0; c < count; c++) {
        if (t[c] == ATT_NO_CLASS)
            continue;
        if (t[c] != 0 && t[c] != 1)
            return NAN;
        loss += t[c] ? positive_weight * softplus(-(double)x[c]) : softplus((double)x[c]);
    }
    return loss;
}

static double loss_of(const float *x, const target *t, double positive_weight, int64_t count)
{
    double loss = 0;
    if (t->whole)
        return whole_loss(x, t->whole, positive_weight, count);
    if (!t->soft && t->class < 0)
        return NAN;
    for (int64_t c = 0; c < count; c++) {
        double of_class = (double)target_at(t, c), positive = positive_weight * of_class, negative = 1 - of_class;
        if (positive != 0) /* avoids 0 times infinity */
            loss += positive * softplus(-(double)x[c]);
        if (negative != 0)
            loss += negative * softplus((double)x[c]);
    }
    return loss;
}

static att_status loss_run(const att_call *call)
{
    const att_binary_cross_entropy_attrs *attrs = ATT_ATTRS(call->problem, binary_cross_entropy);
    int64_t classes = att_columns(&call->problem->in[0]);
    att_range part = att_part_of(call, call->problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        target t = target_of(call, 1, sample, classes);
        double loss = loss_of((const float *)call->in[0] + sample * classes, &t, attrs->positive_weight, classes);
        ((float *)call->out[0])[sample] = (float)(attrs->sum ? loss : loss / (double)classes);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(binary_cross_entropy, .run = loss_run);

/* out = e^-|x| */
ATT_INLINE void exp_of_minus_abs(const float *x, int64_t count, float *out)
{
    int64_t i = 0;
    for (; i + VW <= count; i += VW) {
        vf v = v_load(x + i);
        v_store(out + i, v_exp(v_min(v, -v)));
    }
    for (; i < count; i++)
        out[i] = expf(-fabsf(x[i]));
}

/* The gradient of a class: scale ((1 - t) s - w t (1 - s)), with e = e^-|x|; s is 1 / (1 + e) or e / (1 + e). */
ATT_INLINE float slope(float scale, float x, float e, float t, float weight)
{
    float s = x >= 0 ? 1 : e, rest = x >= 0 ? e : 1;
    return scale * ((1 - t) * s - weight * t * rest) / (1 + e);
}

/* Most classes are left out. */
static void whole_gradient(float scale, const float *x, const int32_t *t, float weight, int64_t count, float *dx)
{
    memset(dx, 0, (size_t)count * sizeof *dx);
    for (int64_t c = 0; c < count; c++)
        if (t[c] != ATT_NO_CLASS)
            dx[c] = slope(scale, x[c], expf(-fabsf(x[c])), t[c] == 0 || t[c] == 1 ? (float)t[c] : NAN, weight);
}

static void gradient_of(float scale, const float *x, const target *t, float weight, int64_t count, float *dx)
{
    if (t->whole) {
        whole_gradient(scale, x, t->whole, weight, count, dx);
        return;
    }
    exp_of_minus_abs(x, count, dx);
    if (t->soft) {
        for (int64_t c = 0; c < count; c++)
            dx[c] = slope(scale, x[c], dx[c], target_at(t, c), weight);
        return;
    }
    float of_class = t->class < 0 ? NAN : slope(scale, x[t->class], dx[t->class], t->high, weight);
    float low = t->class < 0 ? NAN : t->low;
#pragma omp simd
    for (int64_t c = 0; c < count; c++)
        dx[c] = slope(scale, x[c], dx[c], low, weight);
    if (t->class >= 0)
        dx[t->class] = of_class;
}

static att_status grad_run(const att_call *call)
{
    const att_binary_cross_entropy_attrs *attrs = ATT_ATTRS(call->problem, binary_cross_entropy);
    int64_t classes = att_columns(&call->problem->in[1]);
    att_range part = att_part_of(call, call->problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        target t = target_of(call, 2, sample, classes);
        float dloss = ((const float *)call->in[0])[sample];
        gradient_of(attrs->sum ? dloss : dloss / (float)classes, (const float *)call->in[1] + sample * classes, &t,
                    (float)attrs->positive_weight, classes, (float *)call->out[0] + sample * classes);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(binary_cross_entropy_grad, .run = grad_run);
