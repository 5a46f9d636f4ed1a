#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_linear(const att_call *call)
{
    int64_t channels = ref_dim(call, 0, 0), width = ref_dim(call, 0, 1);
    ref_range share = ref_share(call, channels * call->problem->group);
    for (int64_t k = share.begin; k < share.end; k++) {
        double sum = 0;
        for (int64_t j = 0; j < width; j++)
            sum += ref_in(call, 0, k * width + j) * ref_in(call, 1, k % channels * width + j);
        ref_out(call, 0, k, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_channel_linear = {.op = "channel_linear", .name = "ref", .run = run_linear};

static att_status run_grad(const att_call *call)
{
    int64_t width = ref_dim(call, 1, 1), all = ref_count(call, 1);
    ref_range share = ref_share(call, all * call->problem->group);
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_in(call, 0, e / width) * ref_in(call, 1, e % all));
    return ATT_OK;
}

const att_kernel att_ref_channel_linear_grad = {.op = "channel_linear_grad", .name = "ref", .run = run_grad};

static att_status run_weight_grad(const att_call *call)
{
    int64_t width = ref_dim(call, 1, 1), all = ref_dim(call, 1, 0) * width, count = ref_count(call, 1);
    ref_range share = ref_share(call, all);
    for (int64_t k = share.begin; k < share.end; k++) {
        double sum = 0;
        for (int64_t e = k; e < count; e += all)
            sum += ref_in(call, 0, e / width) * ref_in(call, 1, e);
        ref_sum(call, 0, k, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_channel_linear_weight_grad = {
    .op = "channel_linear_weight_grad", .name = "ref", .run = run_weight_grad};
