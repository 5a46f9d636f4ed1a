#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

static att_status infer_average(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "p", ATT_SHARED, 1));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SHARED, infer->in[0].shape);
}

static const att_op_case cases[] = {
    {.name = "odd", IN(SHARED(4112))},
    {.name = "demo", IN(SHARED(204800)), .bench = true},
};

const att_op att_op_ema = {
    .name = "ema",
    .help = "ema = decay ema + (1 - decay) p",
    .infer = infer_average,
    .flops_per_in = 3,
    ATT_CASES(cases),
};
