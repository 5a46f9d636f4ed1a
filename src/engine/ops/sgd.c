#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/update.h"

static att_status infer_update(att_infer *infer)
{
    return att_rule_update(infer, 2);
}

static const att_op_case cases[] = {ATT_CASES_OF_UPDATE};

const att_op att_op_sgd = {
    .name = "sgd",
    .attrs_size = sizeof(att_update_attrs),
    .help = "p, momentum_buffer: b = momentum b + g + wd p; p -= lr b, or lr (g + wd p + momentum b) with Nesterov",
    .infer = infer_update,
    .flops_per_in = 9,
    ATT_CASES(cases),
    .slots = {"momentum_buffer"},
};
