#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/activation.h"
#include "engine/ops/batch_norm.h"

/* n = (x - mean) / sqrt(variance + eps) of element e of input `x`, with the statistics of input `stats`. */
static double normal_at(const att_call *call, int x, int stats, int64_t e)
{
    int64_t columns = ref_dim(call, x, -1), c = e % columns;
    double variance = ref_in(call, stats, columns + c);
    return (ref_in(call, x, e) - ref_in(call, stats, c)) / sqrt(variance + ATT_ATTRS(call->problem, batch_norm)->eps);
}

/* gamma n + beta; gamma and beta are the inputs after the statistics. */
static double norm_at(const att_call *call, int x, int stats, int64_t e)
{
    int64_t c = e % ref_dim(call, x, -1);
    return normal_at(call, x, stats, e) * ref_in(call, stats + 1, c) + ref_in(call, stats + 2, c);
}

static att_status run_normalize(const att_call *call)
{
    enum { X, STATS };
    att_activation activation = ATT_ATTRS(call->problem, batch_norm)->activation;
    ref_range share = ref_share(call, ref_count(call, X));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_act(activation, norm_at(call, X, STATS, e)));
    return ATT_OK;
}

const att_kernel att_ref_normalize = {.op = "normalize", .name = "ref", .run = run_normalize};

enum { DY, GRAD_X, GRAD_STATS, GRAD_GAMMA, GRAD_BETA, MEAN_DY, MEAN_DY_NORMAL, FACTOR, POOLED };

/* dy after the gradient of the activation. */
static double masked_dy_at(const att_call *call, int64_t e)
{
    bool relu = ATT_ATTRS(call->problem, batch_norm)->activation == ATT_ACT_RELU;
    return !relu || norm_at(call, GRAD_X, GRAD_STATS, e) > 0 ? ref_in(call, DY, e) : 0;
}

static att_status run_sums(const att_call *call)
{
    ref_range share = ref_share(call, ref_dim(call, GRAD_X, -1) * call->problem->group);
    for (int64_t k = share.begin; k < share.end; k++) {
        ref_channel channel = ref_channel_of(call, GRAD_X, k);
        double sum = 0, products = 0;
        for (int64_t e = channel.begin; e < channel.end; e += channel.step) {
            sum += masked_dy_at(call, e);
            products += masked_dy_at(call, e) * normal_at(call, GRAD_X, GRAD_STATS, e);
        }
        ref_out(call, 0, k, sum);
        ref_out(call, 1, k, products);
    }
    return ATT_OK;
}

const att_kernel att_ref_normalize_sums = {.op = "normalize_sums", .name = "ref", .run = run_sums};

/* The gradient that reaches the norm: dy after the activation, times the factor, plus pooled / rows. */
static double norm_dy_at(const att_call *call, int64_t e)
{
    int64_t columns = ref_dim(call, GRAD_X, -1), all = att_shape_count(call->problem->in[GRAD_X].shape);
    int64_t channel = e / all * columns + e % columns;
    double dy = masked_dy_at(call, e) * (ref_has(call, FACTOR) ? ref_in(call, FACTOR, channel) : 1);
    return dy + (ref_has(call, POOLED) ? ref_in(call, POOLED, channel) / (double)(all / columns) : 0);
}

static att_status run_grad(const att_call *call)
{
    int64_t columns = ref_dim(call, GRAD_X, -1);
    ref_range share = ref_share(call, ref_count(call, GRAD_X));
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t c = e % columns;
        double rstd = 1 / sqrt(ref_in(call, GRAD_STATS, columns + c) + ATT_ATTRS(call->problem, batch_norm)->eps);
        double difference = norm_dy_at(call, e) - ref_in(call, MEAN_DY, c) -
                            normal_at(call, GRAD_X, GRAD_STATS, e) * ref_in(call, MEAN_DY_NORMAL, c);
        ref_out(call, 0, e, ref_in(call, GRAD_GAMMA, c) * rstd * difference);
    }
    return ATT_OK;
}

const att_kernel att_ref_normalize_grad = {.op = "normalize_grad", .name = "ref", .run = run_grad};
