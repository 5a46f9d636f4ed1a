#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_silu(att_graph *graph, att_value x)
{
    return att_emit(graph, "silu", NULL, &x, 1, NULL);
}

static const att_op_case silu_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "scalar", IN(SCALAR)},
    {.name = "tails", IN(DRAWN(ATT_SAMPLE, 60, 0, 9, 33))},
    {.name = "large_values", IN(DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "tiny", IN(SAMPLE(197, 768)), .bench = true},
    {.name = "efficientnet_b0", IN(SAMPLE(112, 112, 32)), .bench = true},
};

const att_op att_op_silu = {
    .name = "silu",
    .help = "y = x s, s = 1 / (1 + exp(-x))",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = att_rule_infer_like_x,
    .backward = att_rule_backward_x,
    .flops_per_out = 11, /* An exponential costs about 8 operations. */
    ATT_CASES(silu_cases),
};

static const att_op_case grad_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7), SAMPLE(5, 7))},
    {.name = "tails", IN(SAMPLE(9, 33), DRAWN(ATT_SAMPLE, 60, 0, 9, 33))},
    {.name = "large_values", IN(SAMPLE(5, 33), DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "tiny", IN(SAMPLE(197, 768), SAMPLE(197, 768)), .bench = true},
    {.name = "efficientnet_b0", IN(SAMPLE(112, 112, 32), SAMPLE(112, 112, 32)), .bench = true},
};

const att_op att_op_silu_grad = {
    .name = "silu_grad",
    .help = "dx = dy s (1 + x (1 - s)), s = 1 / (1 + exp(-x))",
    .autocast_in = 3,
    .autocast_out = 1,
    .infer = att_rule_infer_grad_x,
    .flops_per_out = 15,
    ATT_CASES(grad_cases),
};
