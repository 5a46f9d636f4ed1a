#include "engine/ops/batch_moments.h"
#include "base/core/error.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"

static att_status run_moments(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, -1);
    ref_range share = ref_share(call, columns * call->problem->group);
    for (int64_t k = share.begin; k < share.end; k++) {
        ref_channel channel = ref_channel_of(call, 0, k);
        double mean = ref_channel_mean(call, 0, channel);
        int64_t at = k / columns * 2 * columns + k % columns;
        ref_out(call, 0, at, mean);
        ref_out(call, 0, at + columns, ref_channel_squares(call, 0, channel, mean));
    }
    return ATT_OK;
}

const att_kernel att_ref_channel_moments = {.op = "channel_moments", .name = "ref", .run = run_moments};

/* All samples have the same number of rows, so the mean is the mean of means, and n var = sum of M2 + n_sample sum
 * (mean_s - mean)^2 (Chan, Golub, LeVeque 1983). */
static att_status run_merge(const att_call *call)
{
    double rows = (double)ATT_ATTRS(call->problem, moments)->rows, samples = (double)call->samples;
    int64_t columns = ref_dim(call, 0, 1), count = call->samples * 2 * columns;
    if (rows * samples == 1)
        return att_fail(call->problem->context, ATT_ERR_ARGUMENT,
                        "batch norm needs more than one row; use a larger batch");
    ref_range share = ref_share(call, columns);
    for (int64_t c = share.begin; c < share.end; c++) {
        double mean = 0, squares = 0;
        for (int64_t e = c; e < count; e += 2 * columns)
            mean += ref_in(call, 0, e) / samples;
        for (int64_t e = c; e < count; e += 2 * columns) {
            double difference = ref_in(call, 0, e) - mean;
            squares += ref_in(call, 0, e + columns) + rows * difference * difference;
        }
        ref_out(call, 0, c, mean);
        ref_out(call, 0, c + columns, squares / (rows * samples));
    }
    return ATT_OK;
}

const att_kernel att_ref_merge_moments = {.op = "merge_moments", .name = "ref", .run = run_merge};

/* Outputs may be the same memory as the old values. */
static att_status run_running(const att_call *call)
{
    const att_moments_attrs *attrs = call->problem->attrs;
    double n = (double)attrs->rows * (double)call->samples, share_new = attrs->momentum;
    int64_t columns = ref_dim(call, 0, 1);
    ref_range share = ref_share(call, columns);
    for (int64_t c = share.begin; c < share.end; c++) {
        double mean = ref_in(call, 0, c), variance = ref_in(call, 0, c + columns) * n / (n - 1);
        ref_out(call, 0, c, (1 - share_new) * ref_in(call, 1, c) + share_new * mean);
        ref_out(call, 1, c, (1 - share_new) * ref_in(call, 2, c) + share_new * variance);
    }
    return ATT_OK;
}

const att_kernel att_ref_running_stats = {.op = "running_stats", .name = "ref", .run = run_running};

static att_status run_batch_mean(const att_call *call)
{
    double n = (double)ATT_ATTRS(call->problem, moments)->rows * (double)call->samples;
    int64_t count = att_shape_count(call->problem->in[0].shape);
    ref_range share = ref_share(call, count);
    for (int64_t k = share.begin; k < share.end; k++) {
        double sum = 0;
        for (int64_t sample = 0; sample < call->samples; sample++)
            sum += ref_in(call, 0, sample * count + k);
        ref_out(call, 0, k, sum / n);
    }
    return ATT_OK;
}

const att_kernel att_ref_batch_mean = {.op = "batch_mean", .name = "ref", .run = run_batch_mean};
