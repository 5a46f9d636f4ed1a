#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rollout.h"
#include "engine/ops/rule.h"

att_value att_rollout(att_graph *graph, att_value maps, bool from_mean)
{
    const att_rollout_attrs attrs = {.from_mean = from_mean};
    return att_emit(graph, "rollout", &attrs, &maps, 1, NULL);
}

att_value att_attention_flow(att_graph *graph, att_value maps, bool from_mean)
{
    const att_rollout_attrs attrs = {.from_mean = from_mean};
    return att_emit(graph, "attention_flow", &attrs, &maps, 1, NULL);
}

/* maps [L, N, N] give y [N]. */
static att_status rollout_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "maps", ATT_SAMPLE, 3));
    const int64_t *dims = infer->in[0].shape.dims;
    if (dims[1] != dims[2])
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "maps %s must have as many queries as keys",
                             ATT_SHOWN(&infer->in[0]));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(dims[1]));
}

#define FROM(mean) ATTRS(rollout, .from_mean = (mean))
#define MAPS(scale, shift, ...) IN(DRAWN(ATT_SAMPLE, scale, shift, __VA_ARGS__))
#define CASES                                                                                                     \
    {.name = "odd", FROM(0), MAPS(0.05, 0.2, 3, 5, 5)}, {.name = "from_mean", FROM(1), MAPS(0.05, 0.2, 2, 5, 5)}, \
        {.name = "one_layer", FROM(0), MAPS(0.03, 0.15, 1, 7, 7)},                                                \
        {.name = "one_token", FROM(0), MAPS(0, 1, 2, 1, 1)},                                                      \
    {                                                                                                             \
        .name = "identity", FROM(1), MAPS(0, 0, 3, 4, 4)                                                          \
    }

static const att_op_case rollout_cases[] = {
    CASES,
    {.name = "tiny", FROM(0), MAPS(0.001, 0.005, 12, 197, 197), .bench = true},
};

const att_op att_op_rollout = {
    .name = "rollout",
    .attrs_size = sizeof(att_rollout_attrs),
    .help = "attention from the last layer to the tokens of the first, through products of maps",
    .infer = rollout_infer,
    .flops_per_in = 2,
    ATT_CASES(rollout_cases),
};

static void flow_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = 100.0 * (double)att_shape_count(in->shape) * (double)in->shape.dims[1];
}

static const att_op_case flow_cases[] = {
    CASES,
    {.name = "tiny", FROM(0), MAPS(0.001, 0.005, 12, 50, 50), .bench = true},
};

const att_op att_op_attention_flow = {
    .name = "attention_flow",
    .attrs_size = sizeof(att_rollout_attrs),
    .help = "maximum flow from the last layer to each token of the first, with maps as capacities",
    .infer = rollout_infer,
    .cost = flow_cost,
    ATT_CASES(flow_cases),
};
