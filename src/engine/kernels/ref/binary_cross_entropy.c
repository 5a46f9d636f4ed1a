#include "engine/ops/binary_cross_entropy.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Whether the target holds a number for each class. */
static bool is_whole(const att_call *call, int logits)
{
    const att_desc *target = &call->problem->in[logits + 1];
    return target->dtype == ATT_I32 && target->shape.rank == 1;
}

static bool is_left_out(const att_call *call, int logits, int64_t element)
{
    return is_whole(call, logits) && ((const int32_t *)call->in[logits + 1])[element] == ATT_NO_CLASS;
}

static double whole_target(const att_call *call, int logits, int64_t element)
{
    const int32_t t = ((const int32_t *)call->in[logits + 1])[element];
    return t == 0 || t == 1 ? t : NAN;
}

/* The target t_c of a sample, from the input after the logits, before it is made binary; NaN if the class index is out
 * of range. */
static double given_target(const att_call *call, int logits, int64_t sample, int64_t c, int64_t classes)
{
    if (is_whole(call, logits))
        return whole_target(call, logits, sample * classes + c);
    if (call->problem->in[logits + 1].dtype != ATT_I32)
        return ref_in(call, logits + 1, sample * classes + c);
    double smoothing = ATT_ATTRS(call->problem, binary_cross_entropy)->smoothing;
    int64_t class = ((const int32_t *)call->in[logits + 1])[sample];
    if (class < 0 || class >= classes)
        return NAN;
    return (class == c ? 1 - smoothing : 0) + smoothing / (double)classes;
}

/* The threshold is compared in the type of the logits. */
static double target_at(const att_call *call, int logits, int64_t sample, int64_t c, int64_t classes)
{
    const att_binary_cross_entropy_attrs *attrs = ATT_ATTRS(call->problem, binary_cross_entropy);
    double t = given_target(call, logits, sample, c, classes);
    if (!attrs->binary || isnan(t))
        return t;
    bool above = call->problem->in[logits].dtype == ATT_F64 ? t > attrs->threshold : (float)t > (float)attrs->threshold;
    return above ? 1 : 0;
}

/* ln(1 + e^x) */
static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static att_status run_loss(const att_call *call)
{
    const att_binary_cross_entropy_attrs *attrs = ATT_ATTRS(call->problem, binary_cross_entropy);
    int64_t classes = ref_dim(call, 0, 0);
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        double loss = 0;
        for (int64_t c = 0; c < classes; c++) {
            double t = target_at(call, 0, sample, c, classes), x = ref_in(call, 0, sample * classes + c);
            double positive = attrs->positive_weight * t;
            if (is_left_out(call, 0, sample * classes + c))
                continue;
            if (positive != 0) /* avoids 0 times infinity */
                loss += positive * softplus(-x);
            if (1 - t != 0)
                loss += (1 - t) * softplus(x);
        }
        ref_out(call, 0, sample, attrs->sum ? loss : loss / (double)classes);
    }
    return ATT_OK;
}

const att_kernel att_ref_binary_cross_entropy = {.op = "binary_cross_entropy", .name = "ref", .run = run_loss};

static att_status run_grad(const att_call *call)
{
    enum { DLOSS, LOGITS };
    const att_binary_cross_entropy_attrs *attrs = ATT_ATTRS(call->problem, binary_cross_entropy);
    int64_t classes = ref_dim(call, LOGITS, 0);
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        double scale = ref_in(call, DLOSS, sample) / (attrs->sum ? 1 : (double)classes);
        for (int64_t c = 0; c < classes; c++) {
            double t = target_at(call, LOGITS, sample, c, classes), positive = attrs->positive_weight * t;
            double x = ref_in(call, LOGITS, sample * classes + c);
            double s = 1 / (1 + exp(-x)), rest = 1 / (1 + exp(x)); /* 1 - s would lose digits */
            bool left_out = is_left_out(call, LOGITS, sample * classes + c);
            ref_out(call, 0, sample * classes + c, left_out ? 0 : scale * ((1 - t) * s - positive * rest));
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_binary_cross_entropy_grad = {
    .op = "binary_cross_entropy_grad", .name = "ref", .run = run_grad};
