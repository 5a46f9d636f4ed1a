#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/update.h"

static att_status infer_update(att_infer *infer)
{
    return att_rule_update(infer, 3);
}

static const att_op_case cases[] = {ATT_CASES_OF_UPDATE};

const att_op att_op_adam = {
    .name = "adam",
    .attrs_size = sizeof(att_update_attrs),
    .help = "p, exp_avg, exp_avg_sq: Adam with bias correction of g + wd p (Kingma, Ba 2015)",
    .infer = infer_update,
    .flops_per_in = 17,
    ATT_CASES(cases),
    .slots = {"exp_avg", "exp_avg_sq"},
};
