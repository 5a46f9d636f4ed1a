#include "ops/cross_entropy.h"
#include "kernels/ref/call.h"
#include "kernels/ref/list.h"

/* ln of the sum of e^logit over the classes of a sample, with the logits in input `logits`. */
static double log_sum_exp(const att_call *call, int logits, int64_t sample, int64_t classes)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < classes; c++)
        largest = fmax(largest, ref_in(call, logits, sample * classes + c));
    for (int64_t c = 0; c < classes; c++)
        sum += exp(ref_in(call, logits, sample * classes + c) - largest);
    return largest + log(sum);
}

/* The target t_c of a sample, from the input after the logits; NaN if the class index is out of range. */
static double target_at(const att_call *call, int logits, int64_t sample, int64_t c, int64_t classes)
{
    const att_desc *target = &call->problem->in[logits + 1];
    if (target->dtype != ATT_I32)
        return ref_in(call, logits + 1, sample * classes + c);
    double smoothing = ATT_ATTRS(call->problem, cross_entropy)->smoothing;
    int64_t class = ((const int32_t *)call->in[logits + 1])[sample];
    if (class < 0 || class >= classes)
        return NAN;
    return (class == c ? 1 - smoothing : 0) + smoothing / (double)classes;
}

static att_status run_loss(const att_call *call)
{
    int64_t classes = ref_dim(call, 0, 0);
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        double lse = log_sum_exp(call, 0, sample, classes), loss = 0;
        for (int64_t c = 0; c < classes; c++) {
            double t = target_at(call, 0, sample, c, classes);
            if (t != 0) /* avoids 0 times infinity if the logit is -infinity */
                loss += t * (lse - ref_in(call, 0, sample * classes + c));
        }
        ref_out(call, 0, sample, loss);
    }
    return ATT_OK;
}

const att_kernel att_ref_cross_entropy = {.op = "cross_entropy", .name = "ref", .run = run_loss};

static att_status run_grad(const att_call *call)
{
    enum { DLOSS, LOGITS };
    int64_t classes = ref_dim(call, LOGITS, 0);
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        double lse = log_sum_exp(call, LOGITS, sample, classes), mass = 0;
        for (int64_t c = 0; c < classes; c++)
            mass += target_at(call, LOGITS, sample, c, classes);
        for (int64_t c = 0; c < classes; c++) {
            double softmax = exp(ref_in(call, LOGITS, sample * classes + c) - lse);
            double t = target_at(call, LOGITS, sample, c, classes);
            ref_out(call, 0, sample * classes + c, ref_in(call, DLOSS, sample) * (softmax * mass - t));
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_cross_entropy_grad = {.op = "cross_entropy_grad", .name = "ref", .run = run_grad};
