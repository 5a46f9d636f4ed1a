#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/update.h"

static att_status run(const att_call *call)
{
    enum { P, MOMENTUM_BUFFER };
    const att_hyper *h = call->run->hyper;
    double lr = h->lr * ATT_ATTRS(call->problem, update)->lr;
    double decay = h->weight_decay * ATT_ATTRS(call->problem, update)->weight_decay;
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double p = ref_old(call, P, e);
        double g = ref_in(call, 0, e) * ref_in(call, 1, 0) + decay * p;
        double buffer = h->momentum * ref_old(call, MOMENTUM_BUFFER, e) + g;
        ref_out(call, P, e, p - lr * (h->nesterov ? g + h->momentum * buffer : buffer));
        ref_out(call, MOMENTUM_BUFFER, e, buffer);
    }
    return ATT_OK;
}

const att_kernel att_ref_sgd = {.op = "sgd", .name = "ref", .run = run};
