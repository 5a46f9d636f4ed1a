#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_exp(att_graph *graph, att_value x)
{
    return att_emit(graph, "exp", NULL, &x, 1, NULL);
}

static att_status exp_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "x", ATT_SAMPLE));
    att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
    return ATT_OK;
}

static void exp_backward(att_backward *backward)
{
    att_value in[2] = {att_backward_gradient(backward, 0), att_backward_out(backward, 0)};
    att_backward_add_gradient(backward, 0, att_emit(att_backward_graph(backward), "exp_grad", NULL, in, 2, NULL));
}

static const att_op_case exp_cases[] = {
    {.name = "odd", ATT_CASE_IN(ATT_CASE_SAMPLE(5, 7)), .gradient = true},
    {.name = "scalar", ATT_CASE_IN(ATT_CASE_SCALAR)},
    {.name = "tails", ATT_CASE_IN(ATT_CASE_DRAWN(ATT_SAMPLE, 10, 0, 9, 33))},
};

const att_op att_op_exp = {
    .name = "exp",
    .help = "y = e^x",
    .infer = exp_infer,
    .backward = exp_backward,
    .flops_per_out = 8, /* An exponential costs about 8 operations. */
    ATT_CASES(exp_cases),
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
};

const att_op att_op_exp_grad = {.name = "exp_grad", .help = "dx = dy y", .infer = grad_infer, ATT_CASES(grad_cases)};
