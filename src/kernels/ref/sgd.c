#include "kernels/ref/call.h"
#include "kernels/ref/list.h"
#include "ops/update.h"

static att_status run(const att_call *call)
{
    enum { P, MOMENTUM_BUFFER };
    const att_hyper *h = call->run->hyper;
    double decay = ATT_ATTRS(call->problem, update)->decay ? h->weight_decay : 0;
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double p = ref_old(call, P, e);
        double g = ref_in(call, 0, e) * call->run->gradient_scale + decay * p;
        double buffer = h->momentum * ref_old(call, MOMENTUM_BUFFER, e) + g;
        ref_out(call, P, e, p - h->lr * (h->nesterov ? g + h->momentum * buffer : buffer));
        ref_out(call, MOMENTUM_BUFFER, e, buffer);
    }
    return ATT_OK;
}

const att_kernel att_ref_sgd = {.op = "sgd", .name = "ref", .run = run};
