#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_quick_gelu(att_graph *graph, att_value x)
{
    return att_emit(graph, "quick_gelu", NULL, &x, 1, NULL);
}

static const att_op_case quick_gelu_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "scalar", IN(SCALAR)},
    {.name = "tails", IN(DRAWN(ATT_SAMPLE, 60, 0, 9, 33))},
    {.name = "large_values", IN(DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "tiny", IN(SAMPLE(197, 768)), .bench = true},
};

const att_op att_op_quick_gelu = {
    .name = "quick_gelu",
    .help = "y = x s, s = 1 / (1 + exp(-1.702 x))",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = att_rule_infer_like_x,
    .backward = att_rule_backward_x,
    .flops_per_out = 12, /* An exponential costs about 8 operations. */
    ATT_CASES(quick_gelu_cases),
};

static const att_op_case grad_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7), SAMPLE(5, 7))},
    {.name = "tails", IN(SAMPLE(9, 33), DRAWN(ATT_SAMPLE, 60, 0, 9, 33))},
    {.name = "large_values", IN(SAMPLE(5, 33), DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "tiny", IN(SAMPLE(197, 768), SAMPLE(197, 768)), .bench = true},
};

const att_op att_op_quick_gelu_grad = {
    .name = "quick_gelu_grad",
    .help = "dx = dy s (1 + 1.702 x (1 - s)), s = 1 / (1 + exp(-1.702 x))",
    .autocast_in = 3,
    .autocast_out = 1,
    .infer = att_rule_infer_grad_x,
    .flops_per_out = 17,
    ATT_CASES(grad_cases),
};
