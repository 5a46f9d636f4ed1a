#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_relu(att_graph *graph, att_value x)
{
    return att_emit(graph, "relu", NULL, &x, 1, NULL);
}

static att_status relu_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "x", ATT_SAMPLE));
    att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
    return ATT_OK;
}

static void relu_backward(att_backward *backward)
{
    att_value in[2] = {att_backward_gradient(backward, 0), att_backward_out(backward, 0)};
    att_backward_add_gradient(backward, 0, att_emit(att_backward_graph(backward), "relu_grad", NULL, in, 2, NULL));
}

static const att_op_case relu_cases[] = {
    {.name = "odd", ATT_CASE_IN(ATT_CASE_SAMPLE(5, 7)), .gradient = true},
    {.name = "scalar", ATT_CASE_IN(ATT_CASE_SCALAR)},
    {.name = "zeros", ATT_CASE_IN(ATT_CASE_DRAWN(ATT_SAMPLE, 0, 0, 5, 33))},
    {.name = "cifar_64", ATT_CASE_IN(ATT_CASE_SAMPLE(32, 32, 64)), .bench = true},
    {.name = "resnet_256", ATT_CASE_IN(ATT_CASE_SAMPLE(56, 56, 256)), .bench = true},
};

const att_op att_op_relu = {
    .name = "relu",
    .help = "y = max(x, 0)",
    .flags = ATT_OP_RECOMPUTE_WITH_INPUT,
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = relu_infer,
    .backward = relu_backward,
    ATT_CASES(relu_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require(infer, 0, "dy", ATT_SAMPLE));
    ATT_TRY(att_rule_require_like(infer, 1, "y", ATT_SAMPLE, 0));
    att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
    return ATT_OK;
}

static const att_op_case grad_cases[] = {
    {.name = "odd", ATT_CASE_IN(ATT_CASE_SAMPLE(5, 7), ATT_CASE_SAMPLE(5, 7))},
    {.name = "zeros", ATT_CASE_IN(ATT_CASE_SAMPLE(5, 33), ATT_CASE_DRAWN(ATT_SAMPLE, 0, 0, 5, 33))},
    {.name = "cifar_64", ATT_CASE_IN(ATT_CASE_SAMPLE(32, 32, 64), ATT_CASE_SAMPLE(32, 32, 64)), .bench = true},
    {.name = "resnet_256", ATT_CASE_IN(ATT_CASE_SAMPLE(56, 56, 256), ATT_CASE_SAMPLE(56, 56, 256)), .bench = true},
};

const att_op att_op_relu_grad = {
    .name = "relu_grad",
    .help = "dx = dy where y > 0, else 0",
    .autocast_in = 3,
    .autocast_out = 1,
    .infer = grad_infer,
    ATT_CASES(grad_cases),
};
