#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_gelu(att_graph *graph, att_value x)
{
    return att_emit(graph, "gelu", NULL, &x, 1, NULL);
}

static const att_op_case gelu_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "scalar", IN(SCALAR)},
    {.name = "tails", IN(DRAWN(ATT_SAMPLE, 5, 0, 40, 33))},
    {.name = "large_values", IN(DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "demo", IN(SAMPLE(50, 256)), .bench = true},
    {.name = "tiny", IN(SAMPLE(197, 768)), .bench = true},
    {.name = "small", IN(SAMPLE(197, 1536)), .bench = true},
};

const att_op att_op_gelu = {
    .name = "gelu",
    .help = "y = x Phi(x), Phi the normal distribution function",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = att_rule_infer_like_x,
    .backward = att_rule_backward_x,
    .flops_per_out = 18, /* About the same for forward and gradient; an error function costs about 15 operations. */
    ATT_CASES(gelu_cases),
};

static const att_op_case grad_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7), SAMPLE(5, 7))},
    {.name = "tails", IN(SAMPLE(40, 33), DRAWN(ATT_SAMPLE, 5, 0, 40, 33))},
    {.name = "large_values", IN(SAMPLE(5, 33), DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "demo", IN(SAMPLE(50, 256), SAMPLE(50, 256)), .bench = true},
    {.name = "tiny", IN(SAMPLE(197, 768), SAMPLE(197, 768)), .bench = true},
    {.name = "small", IN(SAMPLE(197, 1536), SAMPLE(197, 1536)), .bench = true},
};

const att_op att_op_gelu_grad = {
    .name = "gelu_grad",
    .help = "dx = dy (Phi(x) + x phi(x)), phi the normal density",
    .autocast_in = 3,
    .autocast_out = 1,
    .infer = att_rule_infer_grad_x,
    .flops_per_out = 18,
    ATT_CASES(grad_cases),
};
