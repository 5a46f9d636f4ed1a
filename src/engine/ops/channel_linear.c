#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X, WEIGHT };

att_value att_channel_linear(att_graph *graph, att_value x, att_value weight)
{
    att_value in[2] = {x, weight};
    return att_emit(graph, "channel_linear", NULL, in, 2, NULL);
}

static att_status linear_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rank(infer, X, "x", ATT_SAMPLE, 2));
    ATT_TRY(att_rule_require_like(infer, WEIGHT, "weight", ATT_SHARED, X));
    return att_rule_out(infer, infer->in[X].dtype, ATT_SAMPLE, att_shape_of(infer->in[X].shape.dims[0]));
}

static void linear_backward(att_backward *backward)
{
    att_rule_add_product(backward, X, "channel_linear_grad", NULL, WEIGHT);
    att_rule_add_product(backward, WEIGHT, "channel_linear_weight_grad", NULL, X);
}

static void linear_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->macs = (double)att_shape_count(in[1].shape);
}

static const att_op_case linear_cases[] = {
    {.name = "odd", IN(SAMPLE(7, 3), SHARED(7, 3)), .gradient = true},
    {.name = "style", IN(SAMPLE(33, 2), SHARED(33, 2))},
    {.name = "resnet_256", IN(SAMPLE(256, 2), SHARED(256, 2)), .bench = true},
};

const att_op att_op_channel_linear = {
    .name = "channel_linear",
    .help = "y[c] = sum_k x[c, k] weight[c, k]",
    .infer = linear_infer,
    .backward = linear_backward,
    .cost = linear_cost,
    ATT_CASES(linear_cases),
};

static att_status require_gradient(const att_infer *infer, const char *name, att_kind kind)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 1));
    ATT_TRY(att_rule_require_rank(infer, 1, name, kind, 2));
    return att_rule_require_shape(infer, 0, "dy", ATT_SAMPLE, att_shape_of(infer->in[1].shape.dims[0]));
}

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(require_gradient(infer, "weight", ATT_SHARED));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SAMPLE, infer->in[1].shape);
}

static const att_op_case grad_cases[] = {
    {.name = "odd", IN(SAMPLE(7), SHARED(7, 3))},
    {.name = "resnet_256", IN(SAMPLE(256), SHARED(256, 2)), .bench = true},
};

const att_op att_op_channel_linear_grad = {
    .name = "channel_linear_grad",
    .help = "dx[c, k] = dy[c] weight[c, k]",
    .infer = grad_infer,
    ATT_CASES(grad_cases),
};

static att_status weight_infer(att_infer *infer)
{
    ATT_TRY(require_gradient(infer, "x", ATT_SAMPLE));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SUMMED, infer->in[1].shape);
}

static const att_op_case weight_cases[] = {
    {.name = "odd", IN(SAMPLE(7), SAMPLE(7, 3))},
    {.name = "resnet_256", IN(SAMPLE(256), SAMPLE(256, 2)), .bench = true},
};

const att_op att_op_channel_linear_weight_grad = {
    .name = "channel_linear_weight_grad",
    .help = "dweight[c, k] = the sum over samples of dy[c] x[c, k]",
    .infer = weight_infer,
    .cost = linear_cost,
    ATT_CASES(weight_cases),
};
