#include "engine/ops/cross_entropy.h"
#include <attscope/ops.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Rows of logits of a sample. */
static int64_t rows_of(const att_call *call, int logits)
{
    return ATT_ATTRS(call->problem, cross_entropy)->rows ? ref_dim(call, logits, 0) : 1;
}

/* ln of the sum of e^logit over the classes of a row, with the logits in input `logits`. */
static double log_sum_exp(const att_call *call, int logits, int64_t row, int64_t classes)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < classes; c++)
        largest = fmax(largest, ref_in(call, logits, row * classes + c));
    for (int64_t c = 0; c < classes; c++)
        sum += exp(ref_in(call, logits, row * classes + c) - largest);
    return largest + log(sum);
}

/* Whether the row has no class and is left out. */
static bool is_left_out(const att_call *call, int logits, int64_t row)
{
    return ATT_ATTRS(call->problem, cross_entropy)->rows &&
           ((const int32_t *)call->in[logits + 1])[row] == ATT_NO_CLASS;
}

/* The target t_c of a row, from the input after the logits; NaN if the class index is out of range. */
static double target_at(const att_call *call, int logits, int64_t row, int64_t c, int64_t classes)
{
    const att_desc *target = &call->problem->in[logits + 1];
    if (target->dtype != ATT_I32)
        return ref_in(call, logits + 1, row * classes + c);
    double smoothing = ATT_ATTRS(call->problem, cross_entropy)->smoothing;
    int64_t class = ((const int32_t *)call->in[logits + 1])[row];
    if (class < 0 || class >= classes)
        return NAN;
    return (class == c ? 1 - smoothing : 0) + smoothing / (double)classes;
}

static double row_loss(const att_call *call, int64_t row, int64_t classes)
{
    double lse = log_sum_exp(call, 0, row, classes), loss = 0;
    for (int64_t c = 0; c < classes; c++) {
        double t = target_at(call, 0, row, c, classes);
        if (t != 0) /* avoids 0 times infinity if the logit is -infinity */
            loss += t * (lse - ref_in(call, 0, row * classes + c));
    }
    return loss;
}

static att_status run_loss(const att_call *call)
{
    int64_t classes = ref_dim(call, 0, -1), rows = rows_of(call, 0);
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        double loss = 0;
        for (int64_t row = sample * rows; row < (sample + 1) * rows; row++)
            loss += is_left_out(call, 0, row) ? 0 : row_loss(call, row, classes);
        ref_out(call, 0, sample, loss);
    }
    return ATT_OK;
}

const att_kernel att_ref_cross_entropy = {.op = "cross_entropy", .name = "ref", .run = run_loss};

enum { DLOSS, LOGITS };

/* The class with the largest logit; of equal ones the first. */
static int64_t top_of(const att_call *call, int64_t row, int64_t classes)
{
    int64_t top = 0;
    for (int64_t c = 1; c < classes; c++)
        if (ref_in(call, LOGITS, row * classes + c) > ref_in(call, LOGITS, row * classes + top))
            top = c;
    return top;
}

/* softmax sum_c t_c - t of a row's classes. At the largest logit, where the softmax may be close to 1: the other
 * targets less (1 - softmax) sum_c t_c, with 1 - softmax from the other terms. */
static void row_grad(const att_call *call, int64_t row, int64_t classes)
{
    double lse = log_sum_exp(call, LOGITS, row, classes), mass = 0, others = 0, targets = 0;
    double dloss = ref_in(call, DLOSS, row / rows_of(call, LOGITS));
    int64_t top = top_of(call, row, classes);
    bool left_out = is_left_out(call, LOGITS, row);
    for (int64_t c = 0; c < classes; c++) {
        double t = target_at(call, LOGITS, row, c, classes);
        mass += t;
        targets += c == top ? 0 : t;
        others += c == top ? 0 : exp(ref_in(call, LOGITS, row * classes + c) - lse);
    }
    for (int64_t c = 0; c < classes; c++) {
        double softmax = exp(ref_in(call, LOGITS, row * classes + c) - lse);
        double t = target_at(call, LOGITS, row, c, classes);
        ref_out(call, 0, row * classes + c,
                left_out ? 0 : dloss * (c == top ? targets - mass * others : softmax * mass - t));
    }
}

static att_status run_grad(const att_call *call)
{
    int64_t classes = ref_dim(call, LOGITS, -1);
    ref_range share = ref_share(call, call->problem->group * rows_of(call, LOGITS));
    for (int64_t row = share.begin; row < share.end; row++)
        row_grad(call, row, classes);
    return ATT_OK;
}

const att_kernel att_ref_cross_entropy_grad = {.op = "cross_entropy_grad", .name = "ref", .run = run_grad};
