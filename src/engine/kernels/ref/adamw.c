#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/update.h"

static att_status run(const att_call *call)
{
    enum { P, EXP_AVG, EXP_AVG_SQ };
    const att_hyper *h = call->run->hyper;
    double lr = h->lr * ATT_ATTRS(call->problem, update)->lr;
    double decay = 1 - lr * h->weight_decay * ATT_ATTRS(call->problem, update)->weight_decay;
    double correction1 = 1 - pow(h->beta1, (double)h->update), correction2 = 1 - pow(h->beta2, (double)h->update);
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double g = ref_in(call, 0, e) * ref_in(call, 1, 0);
        double m = h->beta1 * ref_old(call, EXP_AVG, e) + (1 - h->beta1) * g;
        double v = h->beta2 * ref_old(call, EXP_AVG_SQ, e) + (1 - h->beta2) * g * g;
        double denominator = sqrt(v / correction2) + h->eps;
        ref_out(call, P, e, ref_old(call, P, e) * decay - lr * (m / correction1) / denominator);
        ref_out(call, EXP_AVG, e, m);
        ref_out(call, EXP_AVG_SQ, e, v);
    }
    return ATT_OK;
}

const att_kernel att_ref_adamw = {.op = "adamw", .name = "ref", .run = run};
