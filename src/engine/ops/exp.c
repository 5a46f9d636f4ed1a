#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_exp(att_graph *graph, att_value x)
{
    return att_emit(graph, "exp", NULL, &x, 1, NULL);
}

static const att_op_case exp_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "scalar", IN(SCALAR)},
    {.name = "tails", IN(DRAWN(ATT_SAMPLE, 10, 0, 9, 33))},
};

const att_op att_op_exp = {
    .name = "exp",
    .help = "y = e^x",
    .infer = att_rule_infer_like_x,
    .backward = att_rule_backward_y,
    .flops_per_out = 8, /* An exponential costs about 8 operations. */
    ATT_CASES(exp_cases),
};

static const att_op_case grad_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7), SAMPLE(5, 7))},
};

const att_op att_op_exp_grad = {
    .name = "exp_grad", .help = "dx = dy y", .infer = att_rule_infer_grad_y, ATT_CASES(grad_cases)};
