#include "engine/ops/global_style.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"

static att_status run_style(const att_call *call)
{
    ref_range share = ref_share(call, ref_dim(call, 0, -1) * call->problem->group);
    for (int64_t k = share.begin; k < share.end; k++) {
        ref_channel channel = ref_channel_of(call, 0, k);
        double mean = ref_channel_mean(call, 0, channel), squares = ref_channel_squares(call, 0, channel, mean);
        double variance = squares / (double)(ref_channel_rows(channel) - 1);
        ref_out(call, 0, 2 * k, mean);
        ref_out(call, 0, 2 * k + 1, sqrt(variance + ATT_ATTRS(call->problem, style)->eps));
    }
    return ATT_OK;
}

const att_kernel att_ref_global_style = {.op = "global_style", .name = "ref", .run = run_style};

static att_status run_grad(const att_call *call)
{
    enum { DY, X, Y };
    ref_range share = ref_share(call, ref_dim(call, X, -1) * call->problem->group);
    for (int64_t k = share.begin; k < share.end; k++) {
        ref_channel channel = ref_channel_of(call, X, k);
        double n = (double)ref_channel_rows(channel), mean = ref_in(call, Y, 2 * k), std = ref_in(call, Y, 2 * k + 1);
        double dmean = ref_in(call, DY, 2 * k), dstd = ref_in(call, DY, 2 * k + 1);
        for (int64_t e = channel.begin; e < channel.end; e += channel.step)
            ref_out(call, 0, e, dmean / n + dstd * (ref_in(call, X, e) - mean) / ((n - 1) * std));
    }
    return ATT_OK;
}

const att_kernel att_ref_global_style_grad = {.op = "global_style_grad", .name = "ref", .run = run_grad};
