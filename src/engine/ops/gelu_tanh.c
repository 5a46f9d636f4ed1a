#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_gelu_tanh(att_graph *graph, att_value x)
{
    return att_emit(graph, "gelu_tanh", NULL, &x, 1, NULL);
}

static const att_op_case gelu_tanh_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "scalar", IN(SCALAR)},
    {.name = "tails", IN(DRAWN(ATT_SAMPLE, 60, 0, 9, 33))},
    {.name = "large_values", IN(DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "tiny", IN(SAMPLE(197, 768)), .bench = true},
};

const att_op att_op_gelu_tanh = {
    .name = "gelu_tanh",
    .help = "y = x/2 (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3)",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = att_rule_infer_like_x,
    .backward = att_rule_backward_x,
    .flops_per_out = 16, /* An exponential costs about 8 operations. */
    ATT_CASES(gelu_tanh_cases),
};

static const att_op_case grad_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7), SAMPLE(5, 7))},
    {.name = "tails", IN(SAMPLE(9, 33), DRAWN(ATT_SAMPLE, 60, 0, 9, 33))},
    {.name = "large_values", IN(SAMPLE(5, 33), DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "tiny", IN(SAMPLE(197, 768), SAMPLE(197, 768)), .bench = true},
};

const att_op att_op_gelu_tanh_grad = {
    .name = "gelu_tanh_grad",
    .help = "dx = dy (s + 2 x s (1 - s) u'), s = (1 + tanh(u)) / 2",
    .autocast_in = 3,
    .autocast_out = 1,
    .infer = att_rule_infer_grad_x,
    .flops_per_out = 24,
    ATT_CASES(grad_cases),
};
