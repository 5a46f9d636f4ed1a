#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_relu(att_graph *graph, att_value x)
{
    return att_emit(graph, "relu", NULL, &x, 1, NULL);
}

static const att_op_case relu_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "scalar", IN(SCALAR)},
    {.name = "zeros", IN(DRAWN(ATT_SAMPLE, 0, 0, 5, 33))},
    {.name = "cifar_64", IN(SAMPLE(32, 32, 64)), .bench = true},
    {.name = "resnet_256", IN(SAMPLE(56, 56, 256)), .bench = true},
};

const att_op att_op_relu = {
    .name = "relu",
    .help = "y = max(x, 0)",
    .flags = ATT_OP_RECOMPUTE_WITH_INPUT,
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = att_rule_infer_like_x,
    .backward = att_rule_backward_y,
    ATT_CASES(relu_cases),
};

static const att_op_case grad_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7), SAMPLE(5, 7))},
    {.name = "zeros", IN(SAMPLE(5, 33), DRAWN(ATT_SAMPLE, 0, 0, 5, 33))},
    {.name = "cifar_64", IN(SAMPLE(32, 32, 64), SAMPLE(32, 32, 64)), .bench = true},
    {.name = "resnet_256", IN(SAMPLE(56, 56, 256), SAMPLE(56, 56, 256)), .bench = true},
};

const att_op att_op_relu_grad = {
    .name = "relu_grad",
    .help = "dx = dy where y > 0, else 0",
    .autocast_in = 3,
    .autocast_out = 1,
    .infer = att_rule_infer_grad_y,
    ATT_CASES(grad_cases),
};
