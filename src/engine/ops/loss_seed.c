#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

static att_status infer_seed(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "loss", ATT_SAMPLE, 0));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
}

static const att_op_case cases[] = {
    {.name = "scalar", IN(SCALAR)},
};

const att_op att_op_loss_seed = {
    .name = "loss_seed",
    .help = "dloss = the factor of each sample's loss in this run",
    .infer = infer_seed,
    .cost = att_rule_copy_cost,
    ATT_CASES(cases),
};
