#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_gelu_tanh(att_graph *graph, att_value x)
{
    return att_emit(graph, "gelu_tanh", NULL, &x, 1, NULL);
}

static att_status gelu_tanh_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "x", ATT_SAMPLE));
    att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
    return ATT_OK;
}

static void gelu_tanh_backward(att_backward *backward)
{
    att_value in[2] = {att_backward_gradient(backward, 0), att_backward_in(backward, 0)};
    att_backward_add_gradient(backward, 0, att_emit(att_backward_graph(backward), "gelu_tanh_grad", NULL, in, 2, NULL));
}

static const att_op_case gelu_tanh_cases[] = {
    {.name = "odd", ATT_CASE_IN(ATT_CASE_SAMPLE(5, 7)), .gradient = true},
    {.name = "scalar", ATT_CASE_IN(ATT_CASE_SCALAR)},
    {.name = "tails", ATT_CASE_IN(ATT_CASE_DRAWN(ATT_SAMPLE, 60, 0, 9, 33))},
    {.name = "large_values", ATT_CASE_IN(ATT_CASE_DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "tiny", ATT_CASE_IN(ATT_CASE_SAMPLE(197, 768)), .bench = true},
};

const att_op att_op_gelu_tanh = {
    .name = "gelu_tanh",
    .help = "y = x/2 (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3)",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = gelu_tanh_infer,
    .backward = gelu_tanh_backward,
    .flops_per_out = 16, /* An exponential costs about 8 operations. */
    ATT_CASES(gelu_tanh_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require(infer, 0, "dy", ATT_SAMPLE));
    ATT_TRY(att_rule_require_like(infer, 1, "x", ATT_SAMPLE, 0));
    att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
    return ATT_OK;
}

static const att_op_case grad_cases[] = {
    {.name = "odd", ATT_CASE_IN(ATT_CASE_SAMPLE(5, 7), ATT_CASE_SAMPLE(5, 7))},
    {.name = "tails", ATT_CASE_IN(ATT_CASE_SAMPLE(9, 33), ATT_CASE_DRAWN(ATT_SAMPLE, 60, 0, 9, 33))},
    {.name = "large_values", ATT_CASE_IN(ATT_CASE_SAMPLE(5, 33), ATT_CASE_DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "tiny", ATT_CASE_IN(ATT_CASE_SAMPLE(197, 768), ATT_CASE_SAMPLE(197, 768)), .bench = true},
};

const att_op att_op_gelu_tanh_grad = {
    .name = "gelu_tanh_grad",
    .help = "dx = dy (s + 2 x s (1 - s) u'), s = (1 + tanh(u)) / 2",
    .autocast_in = 3,
    .autocast_out = 1,
    .infer = grad_infer,
    .flops_per_out = 24,
    ATT_CASES(grad_cases),
};
