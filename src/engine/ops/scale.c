#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_scale(att_graph *graph, att_value x, att_value gamma)
{
    att_value in[2] = {x, gamma};
    return att_emit(graph, "scale", NULL, in, 2, NULL);
}

static att_status scale_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rows(infer, 0, "x"));
    ATT_TRY(att_rule_require_vector(infer, 1, "gamma", 0));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
}

static void scale_backward(att_backward *backward)
{
    att_rule_add_product(backward, 0, "scale", NULL, 1);
    att_rule_add_product(backward, 1, "scale_grad", NULL, 0);
}

static const att_op_case scale_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7), SHARED(7)), .gradient = true},
    {.name = "row", IN(SAMPLE(33), SHARED(33))},
    {.name = "demo", IN(SAMPLE(50, 64), SHARED(64)), .bench = true},
    {.name = "small", IN(SAMPLE(197, 384), SHARED(384)), .bench = true},
};

const att_op att_op_scale = {
    .name = "scale",
    .help = "y = x (.) gamma over the last axis",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = scale_infer,
    .backward = scale_backward,
    ATT_CASES(scale_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require(infer, 0, "dy", ATT_SAMPLE));
    ATT_TRY(att_rule_require_like(infer, 1, "x", ATT_SAMPLE, 0));
    const att_desc *x = &infer->in[1];
    if (x->shape.rank < 1)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "x is a scalar, must have rows");
    return att_rule_out(infer, x->dtype, ATT_SUMMED, att_shape_of(att_rule_columns(x)));
}

static const att_op_case grad_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7), SAMPLE(5, 7))},
    {.name = "row", IN(SAMPLE(33), SAMPLE(33))},
    {.name = "demo", IN(SAMPLE(50, 64), SAMPLE(50, 64)), .bench = true},
    {.name = "small", IN(SAMPLE(197, 384), SAMPLE(197, 384)), .bench = true},
};

const att_op att_op_scale_grad = {
    .name = "scale_grad",
    .help = "dgamma = the sum of dy (.) x over samples and rows",
    .autocast_in = 3,
    .infer = grad_infer,
    .flops_per_in = 2,
    ATT_CASES(grad_cases),
};
