#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/update.h"

static att_status infer_update(att_infer *infer)
{
    return att_rule_update(infer, 3);
}

static const att_op_case cases[] = {ATT_CASES_OF_UPDATE};

const att_op att_op_adamw = {
    .name = "adamw",
    .attrs_size = sizeof(att_update_attrs),
    .help = "p, exp_avg, exp_avg_sq: decoupled weight decay, then Adam with bias correction (Loshchilov, Hutter 2019)",
    .infer = infer_update,
    .flops_per_in = 16,
    ATT_CASES(cases),
    .slots = {"exp_avg", "exp_avg_sq"},
};
