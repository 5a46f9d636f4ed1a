#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_sigmoid(att_graph *graph, att_value x)
{
    return att_emit(graph, "sigmoid", NULL, &x, 1, NULL);
}

static const att_op_case sigmoid_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "scalar", IN(SCALAR)},
    {.name = "tails", IN(DRAWN(ATT_SAMPLE, 60, 0, 9, 33))},
    {.name = "pixels", IN(SAMPLE(56, 56, 1)), .bench = true},
};

const att_op att_op_sigmoid = {
    .name = "sigmoid",
    .help = "y = 1 / (1 + exp(-x))",
    .autocast_in = 1,
    .infer = att_rule_infer_like_x,
    .backward = att_rule_backward_y,
    .flops_per_out = 10, /* An exponential costs about 8 operations. */
    ATT_CASES(sigmoid_cases),
};

static const att_op_case grad_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7), DRAWN(ATT_SAMPLE, 0.2, 0.5, 5, 7))},
    {.name = "pixels", IN(SAMPLE(56, 56, 1), DRAWN(ATT_SAMPLE, 0.2, 0.5, 56, 56, 1)), .bench = true},
};

const att_op att_op_sigmoid_grad = {
    .name = "sigmoid_grad",
    .help = "dx = dy y (1 - y)",
    .autocast_out = 1,
    .infer = att_rule_infer_grad_y,
    .flops_per_out = 3,
    ATT_CASES(grad_cases),
};
