#include "engine/ops/channel_conv.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_conv(const att_call *call)
{
    bool flipped = ATT_ATTRS(call->problem, channel_conv)->flipped;
    int64_t columns = ref_dim(call, 0, 0), width = ref_dim(call, 1, -1);
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double sum = 0;
        for (int64_t j = 0; j < width; j++) {
            int64_t offset = j - (width - 1) / 2, c = e % columns + offset;
            if (c >= 0 && c < columns)
                sum += ref_in(call, 0, e + offset) * ref_in(call, 1, flipped ? width - 1 - j : j);
        }
        ref_out(call, 0, e, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_channel_conv = {.op = "channel_conv", .name = "ref", .run = run_conv};

static att_status run_weight_grad(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, 0), width = ref_dim(call, 2, -1), count = ref_count(call, 0);
    ref_range share = ref_share(call, width);
    for (int64_t j = share.begin; j < share.end; j++) {
        int64_t offset = j - (width - 1) / 2;
        double sum = 0;
        for (int64_t e = 0; e < count; e++)
            if (e % columns + offset >= 0 && e % columns + offset < columns)
                sum += ref_in(call, 0, e) * ref_in(call, 1, e + offset);
        ref_sum(call, 0, j, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_channel_conv_weight_grad = {
    .op = "channel_conv_weight_grad", .name = "ref", .run = run_weight_grad};
