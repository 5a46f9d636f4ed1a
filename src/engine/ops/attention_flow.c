#include <attscope/ops.h>

#include "engine/ops/list.h"
#include "engine/ops/rollout_rule.h"

att_value att_attention_flow(att_graph *graph, att_value maps, bool from_mean)
{
    const att_rollout_attrs attrs = {.from_mean = from_mean};
    return att_emit(graph, "attention_flow", &attrs, &maps, 1, NULL);
}

static att_status attention_flow_infer(att_infer *infer)
{
    return att_rollout_infer(infer);
}

static void attention_flow_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = 100.0 * (double)att_shape_count(in->shape) * (double)in->shape.dims[1];
}

static const att_op_case attention_flow_cases[] = {
    ATT_ROLLOUT_CASES,
    {.name = "tiny", ATT_ROLLOUT_FROM(0), ATT_ROLLOUT_MAPS(0.001, 0.005, 12, 50, 50), .bench = true},
};

const att_op att_op_attention_flow = {
    .name = "attention_flow",
    .attrs_size = sizeof(att_rollout_attrs),
    .help = "maximum flow from the last layer to each token of the first, with maps as capacities",
    .infer = attention_flow_infer,
    .cost = attention_flow_cost,
    ATT_CASES(attention_flow_cases),
};
