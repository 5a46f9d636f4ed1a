#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/channel_conv.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X, WEIGHT };

att_value att_channel_conv(att_graph *graph, att_value x, att_value weight)
{
    att_value in[2] = {x, weight};
    return att_emit(graph, "channel_conv", NULL, in, 2, NULL);
}

static att_status check_weight(const att_infer *infer, att_shape weight)
{
    int64_t width = weight.rank > 0 ? weight.dims[weight.rank - 1] : 0;
    if (width % 2 == 0 || att_shape_count(weight) != width)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "weight %s must be [1, 1, k], k odd",
                             att_shape_format(weight, (char[96]){0}, 96));
    return ATT_OK;
}

static att_status conv_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rank(infer, X, "x", ATT_SAMPLE, 1));
    ATT_TRY(att_rule_require(infer, WEIGHT, "weight", ATT_SHARED));
    ATT_TRY(check_weight(infer, infer->in[WEIGHT].shape));
    return att_rule_out(infer, infer->in[X].dtype, ATT_SAMPLE, infer->in[X].shape);
}

/* Only for unflipped nodes, which att_channel_conv() emits. */
static void conv_backward(att_backward *backward)
{
    const att_channel_conv_attrs flipped = {.flipped = true};
    att_rule_add_product(backward, X, "channel_conv", &flipped, WEIGHT);
    if (att_backward_needs_gradient(backward, WEIGHT)) {
        att_value in[3] = {att_backward_gradient(backward, 0), att_backward_in(backward, X),
                           att_backward_in(backward, WEIGHT)};
        att_rule_add_node(backward, WEIGHT, "channel_conv_weight_grad", NULL, in, 3);
    }
}

static void conv_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)attrs;
    const att_desc *weight = out->kind == ATT_SUMMED ? out : &in[WEIGHT];
    cost->macs = (double)att_shape_count(in->shape) * (double)att_shape_count(weight->shape);
}

static const att_op_case conv_cases[] = {
    {.name = "odd", IN(SAMPLE(7), SHARED(1, 1, 3)), .gradient = true},
    {.name = "wide", IN(SAMPLE(2), SHARED(1, 1, 7)), .gradient = true},
    {.name = "one", IN(SAMPLE(33), SHARED(1, 1, 1))},
    {.name = "flipped", ATTRS(channel_conv, .flipped = true), IN(SAMPLE(33), SHARED(1, 1, 5))},
    {.name = "resnet_256", IN(SAMPLE(256), SHARED(1, 1, 5)), .bench = true},
};

const att_op att_op_channel_conv = {
    .name = "channel_conv",
    .attrs_size = sizeof(att_channel_conv_attrs),
    .help = "y[c] = sum_j x[c + j - (k - 1) / 2] weight[j], zero outside x; flipped: weight[k - 1 - j]",
    .infer = conv_infer,
    .backward = conv_backward,
    .cost = conv_cost,
    ATT_CASES(conv_cases),
};

/* Of the weight, only the shape is used. */
static att_status weight_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 3));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 1));
    ATT_TRY(att_rule_require_like(infer, 1, "x", ATT_SAMPLE, 0));
    ATT_TRY(att_rule_require(infer, 2, "weight", ATT_SHARED));
    ATT_TRY(check_weight(infer, infer->in[2].shape));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SUMMED, infer->in[2].shape);
}

#define GRAD(c, k) IN(SAMPLE(c), SAMPLE(c), SHARED(1, 1, k))
static const att_op_case weight_cases[] = {
    {.name = "odd", GRAD(7, 3)},
    {.name = "wide", GRAD(2, 7)},
    {.name = "resnet_256", GRAD(256, 5), .bench = true},
};

const att_op att_op_channel_conv_weight_grad = {
    .name = "channel_conv_weight_grad",
    .help = "dweight[j] = the sum over samples and c of dy[c] x[c + j - (k - 1) / 2]",
    .infer = weight_infer,
    .cost = conv_cost,
    ATT_CASES(weight_cases),
};
