#include <attscope/ops.h>

#include "engine/ops/activation.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/cases.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/window.h"

enum { X, WEIGHT, BIAS, RESIDUAL, GAMMA, BETA, MEAN, VARIANCE, IN_COUNT };

static int32_t or_one(int option)
{
    return option == 0 ? 1 : option;
}

att_value att_conv2d(att_graph *graph, att_value x, att_value weight, att_value bias, const att_conv_options *options)
{
    att_conv_options o = options ? *options : (att_conv_options){0};
    att_conv_attrs attrs = {
        .stride = or_one(o.stride), .padding = o.padding, .dilation = or_one(o.dilation), .groups = or_one(o.groups)};
    att_value in[IN_COUNT] = {x, weight, bias, ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE};
    return att_emit(graph, "conv2d", &attrs, in, IN_COUNT, NULL);
}

att_value att_conv_transpose2d(att_graph *graph, att_value x, att_value weight, att_value bias,
                               const att_conv_transpose_options *options)
{
    att_conv_transpose_options o = options ? *options : (att_conv_transpose_options){0};
    att_conv_attrs attrs = {.stride = or_one(o.stride),
                            .padding = o.padding,
                            .dilation = or_one(o.dilation),
                            .groups = or_one(o.groups),
                            .output_padding = o.output_padding};
    att_value in[IN_COUNT] = {x, weight, bias, ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE};
    return att_emit(graph, "conv_transpose2d", &attrs, in, IN_COUNT, NULL);
}

static att_status misfit(const att_infer *infer)
{
    return att_rule_fail(infer, ATT_ERR_MISMATCH, "weight %s does not fit x %s in %d groups",
                         ATT_SHOWN(&infer->in[WEIGHT]), ATT_SHOWN(&infer->in[X]), ATT_ATTRS(infer, conv)->groups);
}

static att_status check_channels(const att_infer *infer)
{
    int64_t groups = ATT_ATTRS(infer, conv)->groups, inputs = att_map_dims(&infer->in[X].shape)[2];
    const int64_t *weight = infer->in[WEIGHT].shape.dims;
    return inputs % groups || inputs / groups != weight[1] || weight[0] % groups ? misfit(infer) : ATT_OK;
}

/* Checks the bias, and the vectors of an absorbed norm (all or none): one element per output channel. */
static att_status require_vectors(const att_infer *infer, int64_t channels)
{
    static const char *const names[IN_COUNT] = {
        [BIAS] = "bias", [GAMMA] = "gamma", [BETA] = "beta", [MEAN] = "mean", [VARIANCE] = "variance"};
    bool normed = att_desc_present(&infer->in[GAMMA]);
    for (int i = BIAS; i < IN_COUNT; i++) {
        bool expected = i == BIAS ? att_desc_present(&infer->in[BIAS]) : normed;
        if (i == RESIDUAL || !expected)
            continue;
        ATT_TRY(att_rule_require(infer, i, names[i], ATT_SHARED));
        if (att_shape_count(infer->in[i].shape) != channels)
            return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s %s must have %lld elements for weight %s", names[i],
                                 ATT_SHOWN(&infer->in[i]), (long long)channels, ATT_SHOWN(&infer->in[WEIGHT]));
    }
    return ATT_OK;
}

static att_status require_residual(const att_infer *infer)
{
    if (!att_desc_present(&infer->in[RESIDUAL]))
        return ATT_OK;
    ATT_TRY(att_rule_require(infer, RESIDUAL, "residual", ATT_SAMPLE));
    if (!att_shape_equal(infer->in[RESIDUAL].shape, infer->out[0].shape))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "residual %s must have the result's shape %s",
                             ATT_SHOWN(&infer->in[RESIDUAL]), ATT_SHOWN(&infer->out[0]));
    return ATT_OK;
}

static att_status require_operands(const att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_maps(infer, X, "x"));
    return att_rule_require_rank(infer, WEIGHT, "weight", ATT_SHARED, 4);
}

/* Adds the output, and checks the inputs that belong to its channels and elements. */
static att_status yield(att_infer *infer, att_shape shape)
{
    if (att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the result of x %s and weight %s is too large",
                             ATT_SHOWN(&infer->in[X]), ATT_SHOWN(&infer->in[WEIGHT]));
    att_rule_out(infer, infer->in[X].dtype, ATT_SAMPLE, shape);
    ATT_TRY(require_vectors(infer, att_map_dims(&shape)[2]));
    return require_residual(infer);
}

static att_status conv2d_infer(att_infer *infer)
{
    ATT_TRY(require_operands(infer));
    const int64_t *weight = infer->in[WEIGHT].shape.dims;
    const att_shape x = infer->in[X].shape;
    int64_t to[2];
    ATT_TRY(att_conv_size(infer, att_map_dims(&x), weight + 2, to));
    ATT_TRY(check_channels(infer));
    return yield(infer, att_map_shape(x, to[0], to[1], weight[0]));
}

/* The attributes of the gradient of x, or of the gradient of the weight. */
static att_conv_attrs attrs_of_gradient(att_backward *backward)
{
    att_conv_attrs attrs = *(const att_conv_attrs *)att_backward_attrs(backward);
    att_shape x = att_backward_in_desc(backward, X).shape, weight = att_backward_in_desc(backward, WEIGHT).shape;
    attrs.height = (int32_t)att_map_dims(&x)[0];
    attrs.width = (int32_t)att_map_dims(&x)[1];
    attrs.kernel_h = (int32_t)weight.dims[2];
    attrs.kernel_w = (int32_t)weight.dims[3];
    return attrs;
}

/* For the plain form that att_conv2d() emits; runs before anything is absorbed. */
static void conv2d_backward(att_backward *backward)
{
    att_conv_attrs attrs = attrs_of_gradient(backward);
    att_value dy = att_backward_gradient(backward, 0);
    if (att_backward_needs_gradient(backward, X)) {
        att_value in[] = {dy, att_backward_in(backward, WEIGHT), ATT_NONE, ATT_NONE, ATT_NONE};
        att_rule_add_node(backward, X, "conv2d_data_grad", &attrs, in, 5);
    }
    if (att_backward_needs_gradient(backward, WEIGHT)) {
        att_value in[] = {dy, att_backward_in(backward, X)};
        att_rule_add_node(backward, WEIGHT, "conv2d_weight_grad", &attrs, in, 2);
    }
    if (att_backward_needs_gradient(backward, BIAS))
        att_rule_add_sum(backward, BIAS, dy, 1);
}

static void conv2d_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)attrs;
    const att_shape *weight = &in[WEIGHT].shape;
    cost->macs = (double)att_shape_count(out->shape) * (double)att_shape_count(*weight) / (double)weight->dims[0];
}

static bool absorb_norm(att_node *producer, const att_node *norm)
{
    if (producer->in[GAMMA] != ATT_NONE || producer->in[RESIDUAL] != ATT_NONE || norm->in[0] != producer->out[0])
        return false;
    att_conv_attrs *attrs = producer->attrs;
    attrs->eps = ATT_ATTRS(norm, batch_norm)->eps;
    attrs->activation = ATT_ATTRS(norm, batch_norm)->activation;
    for (int i = 0; i < 4; i++)
        producer->in[GAMMA + i] = norm->in[1 + i];
    return true;
}

/* y = act(norm(conv(x)) + residual): absorbs a norm, a sum and a ReLU, in this order. */
static bool conv2d_absorb(att_node *producer, const att_node *consumer)
{
    att_conv_attrs *attrs = producer->attrs;
    if (attrs->activation != ATT_ACT_NONE)
        return false;
    if (consumer->op == &att_op_batch_norm)
        return absorb_norm(producer, consumer);
    return att_rule_absorb_finish(producer, &attrs->activation, consumer, RESIDUAL);
}

#define CONV(s, p, d, g) .stride = (s), .padding = (p), .dilation = (d), .groups = (g)
#define PLAIN(s, p, d, g) ATTRS(conv, CONV(s, p, d, g))
#define RELU(s, p, d, g) ATTRS(conv, CONV(s, p, d, g), .activation = ATT_ACT_RELU)
#define NORM(s, p, d, g) ATTRS(conv, CONV(s, p, d, g), .eps = 1e-2)
#define NORM_RELU(s, p, d, g) ATTRS(conv, CONV(s, p, d, g), .eps = 1e-5, .activation = ATT_ACT_RELU)
#define NO_NORM ABSENT, ABSENT, ABSENT, ABSENT
#define NO_MORE ABSENT, ABSENT, NO_NORM
/* gamma, beta, mean and variance of `c` channels; variances well above 0. */
#define NORM_OF(c) SHARED(c), SHARED(c), SHARED(c), DRAWN(ATT_SHARED, 0.2, 2, c)
static const att_op_case conv2d_cases[] = {
    {.name = "odd",
     PLAIN(1, 1, 1, 1),
     IN(SAMPLE(5, 6, 3), SHARED(4, 3, 3, 3), SHARED(4), ABSENT, NO_NORM),
     .gradient = true},
    {.name = "stride_2_odd", PLAIN(2, 1, 1, 1), IN(SAMPLE(7, 5, 3), SHARED(5, 3, 3, 3), NO_MORE), .gradient = true},
    {.name = "stride_2_even", PLAIN(2, 1, 1, 1), IN(SAMPLE(6, 8, 17), WEIGHTS(19, 17, 3, 3), NO_MORE)},
    {.name = "dilation", PLAIN(1, 2, 2, 1), IN(SAMPLE(7, 6, 2), SHARED(3, 2, 3, 3), NO_MORE), .gradient = true},
    {.name = "dilation_bias",
     PLAIN(1, 2, 2, 1),
     IN(SAMPLE(7, 6, 8), WEIGHTS(16, 8, 3, 3), SHARED(16), ABSENT, NO_NORM)},
    {.name = "groups",
     PLAIN(1, 1, 1, 2),
     IN(SAMPLE(4, 5, 6), SHARED(4, 3, 3, 3), SHARED(4), ABSENT, NO_NORM),
     .gradient = true},
    {.name = "depthwise", PLAIN(2, 1, 1, 5), IN(SAMPLE(5, 5, 5), SHARED(5, 1, 3, 3), NO_MORE), .gradient = true},
    {.name = "depthwise_wide", PLAIN(1, 1, 1, 32), IN(SAMPLE(6, 5, 32), SHARED(32, 1, 3, 3), NO_MORE)},
    {.name = "pointwise",
     PLAIN(1, 0, 1, 1),
     IN(SAMPLE(3, 5, 7), SHARED(6, 7, 1, 1), SHARED(6), ABSENT, NO_NORM),
     .gradient = true},
    {.name = "pointwise_stride_2",
     PLAIN(2, 0, 1, 1),
     IN(SAMPLE(5, 4, 3), SHARED(4, 3, 1, 1), NO_MORE),
     .gradient = true},
    {.name = "maps",
     PLAIN(2, 1, 1, 1),
     IN(SAMPLE(3, 4, 5, 2), SHARED(3, 2, 3, 3), SHARED(3), ABSENT, NO_NORM),
     .gradient = true},
    {.name = "maps_everything",
     NORM_RELU(1, 1, 1, 1),
     IN(SAMPLE(5, 7, 7, 16), WEIGHTS(16, 16, 3, 3), SHARED(16), SAMPLE(5, 7, 7, 16), NORM_OF(16))},
    {.name = "pointwise_padded", PLAIN(1, 1, 1, 1), IN(SAMPLE(3, 4, 5), SHARED(6, 5, 1, 1), NO_MORE)},
    {.name = "one_pixel", PLAIN(1, 1, 1, 1), IN(SAMPLE(1, 1, 18), WEIGHTS(16, 18, 3, 3), NO_MORE)},
    {.name = "whole_map", PLAIN(1, 0, 1, 1), IN(SAMPLE(4, 3, 5), SHARED(6, 5, 4, 3), NO_MORE)},
    {.name = "one_axis", PLAIN(1, 1, 1, 1), IN(SAMPLE(4, 5, 16), WEIGHTS(16, 16, 1, 3), NO_MORE)},
    {.name = "stem", PLAIN(2, 3, 1, 1), IN(SAMPLE(13, 12, 3), SHARED(20, 3, 7, 7), NO_MORE)},
    {.name = "relu", RELU(1, 1, 1, 1), IN(SAMPLE(5, 6, 16), WEIGHTS(16, 16, 3, 3), SHARED(16), ABSENT, NO_NORM)},
    {.name = "residual",
     PLAIN(1, 0, 1, 1),
     IN(SAMPLE(5, 6, 7), SHARED(17, 7, 1, 1), ABSENT, SAMPLE(5, 6, 17), NO_NORM)},
    {.name = "norm", NORM(2, 1, 1, 2), IN(SAMPLE(5, 6, 4), SHARED(6, 2, 3, 3), SHARED(6), ABSENT, NORM_OF(6))},
    {.name = "pointwise_norm", NORM(1, 0, 1, 1), IN(SAMPLE(5, 6, 4), SHARED(6, 4, 1, 1), ABSENT, ABSENT, NORM_OF(6))},
    {.name = "everything",
     NORM_RELU(1, 1, 1, 1),
     IN(SAMPLE(5, 6, 16), WEIGHTS(16, 16, 3, 3), SHARED(16), SAMPLE(5, 6, 16), NORM_OF(16))},
    {.name = "planes", NORM_RELU(1, 3, 1, 1), IN(SAMPLE(6, 19, 2), SHARED(1, 2, 7, 7), ABSENT, ABSENT, NORM_OF(1))},
    {.name = "planes_unpadded", PLAIN(1, 0, 1, 1), IN(SAMPLE(6, 5, 3), SHARED(4, 3, 2, 3), NO_MORE)},
    {.name = "two_panels",
     NORM_RELU(1, 1, 1, 1),
     IN(SAMPLE(5, 15, 6), WEIGHTS(64, 6, 3, 3), ABSENT, SAMPLE(5, 15, 64), NORM_OF(64))},
    {.name = "narrow_panels_stride_2",
     NORM_RELU(2, 1, 1, 1),
     IN(SAMPLE(7, 61, 4), WEIGHTS(48, 4, 3, 3), ABSENT, ABSENT, NORM_OF(48))},
    {.name = "pointwise_panels",
     NORM(1, 0, 1, 1),
     IN(SAMPLE(5, 7, 130), WEIGHTS(32, 130, 1, 1), SHARED(32), ABSENT, NORM_OF(32))},
    {.name = "large_values",
     PLAIN(1, 1, 1, 1),
     IN(DRAWN(ATT_SAMPLE, 1e4, 0, 5, 6, 19), SHARED(18, 19, 3, 3), SHARED(18), ABSENT, NO_NORM)},
    {.name = "resnet164_32", PLAIN(1, 1, 1, 1), IN(SAMPLE(32, 32, 16), WEIGHTS(16, 16, 3, 3), NO_MORE), .bench = true},
    {.name = "resnet164_32_out",
     PLAIN(1, 0, 1, 1),
     IN(SAMPLE(32, 32, 16), WEIGHTS(64, 16, 1, 1), NO_MORE),
     .bench = true},
    {.name = "resnet164_16_in",
     PLAIN(1, 0, 1, 1),
     IN(SAMPLE(16, 16, 128), WEIGHTS(32, 128, 1, 1), NO_MORE),
     .bench = true},
    {.name = "resnet164_8", PLAIN(1, 1, 1, 1), IN(SAMPLE(8, 8, 64), WEIGHTS(64, 64, 3, 3), NO_MORE), .bench = true},
    {.name = "cbam_32", PLAIN(1, 3, 1, 1), IN(SAMPLE(32, 32, 2), SHARED(1, 2, 7, 7), NO_MORE), .bench = true},
    {.name = "resnet164_32_norm",
     NORM_RELU(1, 1, 1, 1),
     IN(SAMPLE(32, 32, 16), WEIGHTS(16, 16, 3, 3), ABSENT, ABSENT, NORM_OF(16)),
     .bench = true},
    {.name = "resnet164_32_out_norm",
     NORM(1, 0, 1, 1),
     IN(SAMPLE(32, 32, 16), WEIGHTS(64, 16, 1, 1), ABSENT, ABSENT, NORM_OF(64)),
     .bench = true},
    {.name = "resnet164_8_norm",
     NORM_RELU(1, 1, 1, 1),
     IN(SAMPLE(8, 8, 64), WEIGHTS(64, 64, 3, 3), ABSENT, ABSENT, NORM_OF(64)),
     .bench = true},
    {.name = "resnet50_stem",
     NORM_RELU(2, 3, 1, 1),
     IN(SAMPLE(224, 224, 3), WEIGHTS(64, 3, 7, 7), ABSENT, ABSENT, NORM_OF(64)),
     .bench = true},
    {.name = "resnet50_56_out",
     NORM_RELU(1, 0, 1, 1),
     IN(SAMPLE(56, 56, 64), WEIGHTS(256, 64, 1, 1), ABSENT, SAMPLE(56, 56, 256), NORM_OF(256)),
     .bench = true},
    {.name = "resnet50_28",
     NORM_RELU(1, 1, 1, 1),
     IN(SAMPLE(28, 28, 128), WEIGHTS(128, 128, 3, 3), ABSENT, ABSENT, NORM_OF(128)),
     .bench = true},
    {.name = "rois",
     NORM_RELU(1, 1, 1, 1),
     IN(SAMPLE(16, 7, 7, 128), WEIGHTS(128, 128, 3, 3), ABSENT, ABSENT, NORM_OF(128)),
     .bench = true},
    {.name = "resnext50_14",
     NORM_RELU(1, 1, 1, 32),
     IN(SAMPLE(14, 14, 512), WEIGHTS(512, 16, 3, 3), ABSENT, ABSENT, NORM_OF(512)),
     .bench = true},
};

const att_op att_op_conv2d = {
    .name = "conv2d",
    .attrs_size = sizeof(att_conv_attrs),
    .flags = ATT_OP_MAPS,
    .help = "y = act(norm(x * W + b) + r): a convolution; norm the identity or (. - m) / sqrt(v + eps) gamma + beta",
    .autocast_in = 1 << X | 1 << RESIDUAL,
    .autocast_cast = 1 << X,
    .autocast_out = 1,
    .autocast_promote = 1 << RESIDUAL,
    .infer = conv2d_infer,
    .backward = conv2d_backward,
    .cost = conv2d_cost,
    .absorb = conv2d_absorb,
    ATT_CASES(conv2d_cases),
};

/* --- transposed --------------------------------------------------------------------------------------------------- */

static att_status transpose_infer(att_infer *infer)
{
    ATT_TRY(require_operands(infer));
    ATT_TRY(att_rule_require_rank(infer, X, "x", ATT_SAMPLE, 3));
    const int64_t *x = infer->in[X].shape.dims, *weight = infer->in[WEIGHT].shape.dims;
    int64_t groups = ATT_ATTRS(infer, conv)->groups, to[2];
    ATT_TRY(att_conv_transpose_size(infer, x, weight + 2, to));
    if (x[2] != weight[0] || x[2] % groups)
        return misfit(infer);
    return yield(infer, att_shape_of(to[0], to[1], weight[1] <= INT32_MAX ? weight[1] * groups : -1));
}

/* Of the convolution that reads dy, x is the gradient of the output: a convolution and its transpose exchange roles. */
static void transpose_backward(att_backward *backward)
{
    att_conv_attrs attrs = attrs_of_gradient(backward);
    att_value dy = att_backward_gradient(backward, 0);
    if (att_backward_needs_gradient(backward, X)) {
        att_value in[IN_COUNT] = {
            dy, att_backward_in(backward, WEIGHT), ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE};
        att_rule_add_node(backward, X, "conv2d", &attrs, in, IN_COUNT);
    }
    if (att_backward_needs_gradient(backward, WEIGHT)) {
        att_value in[] = {att_backward_in(backward, X), dy};
        att_rule_add_node(backward, WEIGHT, "conv2d_weight_grad", &attrs, in, 2);
    }
    if (att_backward_needs_gradient(backward, BIAS))
        att_rule_add_sum(backward, BIAS, dy, 1);
}

static void transpose_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    const att_shape *weight = &in[WEIGHT].shape;
    cost->macs = (double)att_shape_count(in[X].shape) * (double)att_shape_count(*weight) / (double)weight->dims[0];
}

#define WIDER(s, p, o) ATTRS(conv, .stride = (s), .padding = (p), .output_padding = (o), .dilation = 1, .groups = 1)
static const att_op_case transpose_cases[] = {
    {.name = "doubled",
     PLAIN(2, 0, 1, 1),
     IN(SAMPLE(3, 4, 5), SHARED(5, 3, 2, 2), SHARED(3), ABSENT, NO_NORM),
     .gradient = true},
    {.name = "overlapping",
     PLAIN(2, 1, 1, 1),
     IN(SAMPLE(3, 2, 4), SHARED(4, 3, 4, 4), SHARED(3), ABSENT, NO_NORM),
     .gradient = true},
    {.name = "stride_1", PLAIN(1, 1, 1, 1), IN(SAMPLE(5, 6, 4), SHARED(4, 3, 3, 3), NO_MORE), .gradient = true},
    {.name = "output_padding", WIDER(2, 1, 1), IN(SAMPLE(3, 2, 3), SHARED(3, 2, 3, 3), NO_MORE), .gradient = true},
    {.name = "output_padding_bias",
     WIDER(3, 0, 2),
     IN(SAMPLE(2, 3, 16), WEIGHTS(16, 17, 2, 2), SHARED(17), ABSENT, NO_NORM)},
    {.name = "gaps",
     PLAIN(3, 0, 1, 1),
     IN(SAMPLE(3, 2, 4), SHARED(4, 3, 2, 2), SHARED(3), ABSENT, NO_NORM),
     .gradient = true},
    {.name = "dilation", PLAIN(2, 1, 2, 1), IN(SAMPLE(3, 4, 2), SHARED(2, 3, 3, 3), NO_MORE), .gradient = true},
    {.name = "groups",
     PLAIN(2, 0, 1, 2),
     IN(SAMPLE(4, 3, 4), SHARED(4, 3, 2, 2), SHARED(6), ABSENT, NO_NORM),
     .gradient = true},
    {.name = "depthwise", PLAIN(2, 1, 1, 5), IN(SAMPLE(3, 3, 5), SHARED(5, 1, 4, 4), NO_MORE), .gradient = true},
    {.name = "pointwise",
     PLAIN(1, 0, 1, 1),
     IN(SAMPLE(3, 5, 7), SHARED(7, 6, 1, 1), SHARED(6), ABSENT, NO_NORM),
     .gradient = true},
    {.name = "one_axis",
     PLAIN(2, 0, 1, 1),
     IN(SAMPLE(3, 4, 5), SHARED(5, 6, 1, 2), SHARED(6), ABSENT, NO_NORM),
     .gradient = true},
    {.name = "one_pixel", PLAIN(4, 0, 1, 1), IN(SAMPLE(1, 1, 18), WEIGHTS(18, 16, 4, 4), NO_MORE)},
    {.name = "relu", RELU(2, 0, 1, 1), IN(SAMPLE(4, 5, 16), WEIGHTS(16, 33, 2, 2), SHARED(33), ABSENT, NO_NORM)},
    {.name = "residual",
     PLAIN(2, 0, 1, 1),
     IN(SAMPLE(4, 5, 7), SHARED(7, 17, 2, 2), ABSENT, SAMPLE(8, 10, 17), NO_NORM)},
    {.name = "norm", NORM(2, 1, 1, 2), IN(SAMPLE(3, 4, 4), SHARED(4, 3, 4, 4), SHARED(6), ABSENT, NORM_OF(6))},
    {.name = "pointwise_norm", NORM(1, 0, 1, 1), IN(SAMPLE(5, 6, 4), SHARED(4, 6, 1, 1), ABSENT, ABSENT, NORM_OF(6))},
    {.name = "everything",
     NORM_RELU(2, 0, 1, 1),
     IN(SAMPLE(3, 4, 16), WEIGHTS(16, 18, 2, 2), SHARED(18), SAMPLE(6, 8, 18), NORM_OF(18))},
    {.name = "by_rows", PLAIN(3, 0, 1, 1), IN(SAMPLE(4, 9, 16), WEIGHTS(16, 19, 3, 3), NO_MORE)},
    {.name = "by_rows_everything",
     NORM_RELU(2, 0, 1, 1),
     IN(SAMPLE(5, 10, 19), WEIGHTS(19, 34, 2, 2), SHARED(34), SAMPLE(10, 20, 34), NORM_OF(34))},
    {.name = "large_values",
     PLAIN(2, 0, 1, 1),
     IN(DRAWN(ATT_SAMPLE, 1e4, 0, 3, 4, 18), SHARED(18, 19, 2, 2), SHARED(19), ABSENT, NO_NORM)},
    {.name = "neck_small",
     PLAIN(2, 0, 1, 1),
     IN(SAMPLE(16, 16, 384), WEIGHTS(384, 384, 2, 2), SHARED(384), ABSENT, NO_NORM),
     .bench = true},
    {.name = "decoder",
     NORM_RELU(2, 1, 1, 1),
     IN(SAMPLE(16, 16, 256), WEIGHTS(256, 128, 4, 4), ABSENT, ABSENT, NORM_OF(128)),
     .bench = true},
};

const att_op att_op_conv_transpose2d = {
    .name = "conv_transpose2d",
    .attrs_size = sizeof(att_conv_attrs),
    .help = "y = act(norm(x, spread by W to where a convolution reads it, + b) + r); norm as of conv2d",
    .autocast_in = 1 << X | 1 << RESIDUAL,
    .autocast_cast = 1 << X,
    .autocast_out = 1,
    .autocast_promote = 1 << RESIDUAL,
    .infer = transpose_infer,
    .backward = transpose_backward,
    .cost = transpose_cost,
    .absorb = conv2d_absorb,
    ATT_CASES(transpose_cases),
};
