#include <attscope/ops.h>

#include "engine/ops/list.h"
#include "engine/ops/rollout_rule.h"
#include "engine/ops/rule.h"

att_value att_rollout(att_graph *graph, att_value maps, bool from_mean)
{
    const att_rollout_attrs attrs = {.from_mean = from_mean};
    return att_emit(graph, "rollout", &attrs, &maps, 1, NULL);
}

att_status att_rollout_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "maps", ATT_SAMPLE, 3));
    const int64_t *dims = infer->in[0].shape.dims;
    if (dims[1] != dims[2])
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "maps %s must have as many queries as keys",
                             ATT_SHOWN(&infer->in[0]));
    att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(dims[1]));
    return ATT_OK;
}

static att_status rollout_infer(att_infer *infer)
{
    return att_rollout_infer(infer);
}

static const att_op_case rollout_cases[] = {
    ATT_ROLLOUT_CASES,
    {.name = "tiny", ATT_ROLLOUT_FROM(0), ATT_ROLLOUT_MAPS(0.001, 0.005, 12, 197, 197), .bench = true},
};

const att_op att_op_rollout = {
    .name = "rollout",
    .attrs_size = sizeof(att_rollout_attrs),
    .help = "attention from the last layer to the tokens of the first, through products of maps",
    .infer = rollout_infer,
    .flops_per_in = 2.0,
    ATT_CASES(rollout_cases),
};
