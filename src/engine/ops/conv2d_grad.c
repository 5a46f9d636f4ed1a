#include "engine/ops/cases.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/window.h"

enum { DY, WEIGHT, RESIDUAL, RELU_OUTPUT, POOLED, DATA_IN_COUNT };
enum { X = 1, WEIGHT_IN_COUNT };

/* Checks that dy has the shape of the output of a convolution over a map, or maps, of `size` with `kernel` and
 * `outputs` channels. */
static att_status check_dy(const att_infer *infer, const int64_t size[2], const int64_t kernel[2], int64_t outputs)
{
    const int64_t *dy = att_map_dims(&infer->in[DY].shape);
    int64_t to[2];
    ATT_TRY(att_conv_size(infer, size, kernel, to));
    if (dy[0] != to[0] || dy[1] != to[1] || dy[2] != outputs)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s must be [%lld, %lld, %lld]", ATT_SHOWN(&infer->in[DY]),
                             (long long)to[0], (long long)to[1], (long long)outputs);
    return ATT_OK;
}

static att_status data_grad_infer(att_infer *infer)
{
    const att_conv_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, DATA_IN_COUNT));
    ATT_TRY(att_rule_require_maps(infer, DY, "dy"));
    ATT_TRY(att_rule_require_rank(infer, WEIGHT, "weight", ATT_SHARED, 4));
    const int64_t *weight = infer->in[WEIGHT].shape.dims, size[2] = {attrs->height, attrs->width};
    ATT_TRY(check_dy(infer, size, weight + 2, weight[0]));
    int64_t channels = weight[1] <= INT32_MAX ? weight[1] * attrs->groups : -1;
    att_shape shape = att_map_shape(infer->in[DY].shape, size[0], size[1], channels);
    if (weight[0] % attrs->groups || att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "weight %s does not fit %d groups", ATT_SHOWN(&infer->in[WEIGHT]),
                             attrs->groups);
    att_rule_out(infer, infer->in[DY].dtype, ATT_SAMPLE, shape);
    if (att_desc_present(&infer->in[RESIDUAL]))
        ATT_TRY(att_rule_require_shape(infer, RESIDUAL, "residual", ATT_SAMPLE, shape));
    if (att_desc_present(&infer->in[RELU_OUTPUT]))
        ATT_TRY(att_rule_require_shape(infer, RELU_OUTPUT, "relu_output", ATT_SAMPLE, shape));
    return att_desc_present(&infer->in[POOLED])
               ? att_rule_require_shape(infer, POOLED, "pooled", ATT_SAMPLE, att_shape_of(channels))
               : ATT_OK;
}

/* Absorbs the addition of another gradient of x, then the gradient of the ReLU whose output is x. */
static bool data_grad_absorb(att_node *producer, const att_node *consumer)
{
    if (producer->in[RELU_OUTPUT] != ATT_NONE)
        return false;
    if (consumer->op == &att_op_relu_grad && consumer->in[0] == producer->out[0]) {
        producer->in[RELU_OUTPUT] = consumer->in[1];
        return true;
    }
    return att_rule_absorb_added(producer, consumer, RESIDUAL);
}

static void data_grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    const att_shape *weight = &in[WEIGHT].shape;
    cost->macs = (double)att_shape_count(in[DY].shape) * (double)att_shape_count(*weight) / (double)weight->dims[0];
}

#define CONV(s, p, d, g) .stride = (s), .padding = (p), .dilation = (d), .groups = (g)
#define DATA(s, p, d, g, h, w) ATTRS(conv, CONV(s, p, d, g), .height = (h), .width = (w))
#define NO_MORE ABSENT, ABSENT, ABSENT
static const att_op_case data_grad_cases[] = {
    {.name = "odd", DATA(1, 1, 1, 1, 5, 6), IN(SAMPLE(5, 6, 4), SHARED(4, 3, 3, 3), NO_MORE)},
    {.name = "stride_2_odd", DATA(2, 1, 1, 1, 7, 5), IN(SAMPLE(4, 3, 5), SHARED(5, 3, 3, 3), NO_MORE)},
    {.name = "stride_2_even", DATA(2, 1, 1, 1, 6, 8), IN(SAMPLE(3, 4, 19), WEIGHTS(19, 17, 3, 3), NO_MORE)},
    {.name = "unseen_edge", DATA(3, 0, 1, 1, 8, 7), IN(SAMPLE(3, 2, 16), WEIGHTS(16, 16, 2, 2), NO_MORE)},
    {.name = "dilation", DATA(1, 2, 2, 1, 7, 6), IN(SAMPLE(7, 6, 3), SHARED(3, 2, 3, 3), NO_MORE)},
    {.name = "groups", DATA(1, 1, 1, 2, 4, 5), IN(SAMPLE(4, 5, 4), SHARED(4, 3, 3, 3), NO_MORE)},
    {.name = "depthwise", DATA(2, 1, 1, 5, 5, 5), IN(SAMPLE(3, 3, 5), SHARED(5, 1, 3, 3), NO_MORE)},
    {.name = "pointwise", DATA(1, 0, 1, 1, 3, 5), IN(SAMPLE(3, 5, 6), SHARED(6, 7, 1, 1), NO_MORE)},
    {.name = "pointwise_stride_2", DATA(2, 0, 1, 1, 5, 4), IN(SAMPLE(3, 2, 4), SHARED(4, 3, 1, 1), NO_MORE)},
    {.name = "one_pixel", DATA(1, 1, 1, 1, 1, 1), IN(SAMPLE(1, 1, 16), WEIGHTS(16, 18, 3, 3), NO_MORE)},
    {.name = "residual",
     DATA(1, 0, 1, 1, 5, 6),
     IN(SAMPLE(5, 6, 18), SHARED(18, 7, 1, 1), SAMPLE(5, 6, 7), ABSENT, ABSENT)},
    {.name = "passed",
     DATA(2, 1, 1, 1, 7, 5),
     IN(SAMPLE(4, 3, 5), SHARED(5, 3, 3, 3), ABSENT, SAMPLE(7, 5, 3), ABSENT)},
    {.name = "pooled", DATA(1, 0, 1, 1, 5, 6), IN(SAMPLE(5, 6, 18), SHARED(18, 33, 1, 1), ABSENT, ABSENT, SAMPLE(33))},
    {.name = "everything",
     DATA(1, 1, 1, 1, 5, 6),
     IN(SAMPLE(5, 6, 16), WEIGHTS(16, 17, 3, 3), SAMPLE(5, 6, 17), SAMPLE(5, 6, 17), SAMPLE(17))},
    {.name = "apart",
     DATA(2, 0, 1, 1, 6, 18),
     IN(SAMPLE(3, 9, 16), WEIGHTS(16, 17, 2, 2), SAMPLE(6, 18, 17), SAMPLE(6, 18, 17), SAMPLE(17))},
    {.name = "maps",
     DATA(1, 1, 1, 1, 5, 6),
     IN(SAMPLE(3, 5, 6, 16), WEIGHTS(16, 17, 3, 3), SAMPLE(3, 5, 6, 17), SAMPLE(3, 5, 6, 17), ABSENT)},
    {.name = "planes", DATA(1, 3, 1, 1, 6, 19), IN(SAMPLE(6, 19, 1), SHARED(1, 2, 7, 7), NO_MORE)},
    {.name = "planes_everything",
     DATA(1, 1, 1, 1, 5, 6),
     IN(SAMPLE(5, 6, 1), SHARED(1, 2, 3, 3), SAMPLE(5, 6, 2), SAMPLE(5, 6, 2), SAMPLE(2))},
    {.name = "planes_unpadded", DATA(1, 0, 1, 1, 6, 5), IN(SAMPLE(5, 3, 4), SHARED(4, 3, 2, 3), NO_MORE)},
    {.name = "large_map", DATA(1, 1, 1, 1, 33, 31), IN(SAMPLE(33, 32, 256), WEIGHTS(256, 3, 3, 2), NO_MORE)},
    {.name = "large_map_dilated",
     DATA(1, 2, 2, 1, 32, 36),
     IN(SAMPLE(32, 36, 257), WEIGHTS(257, 2, 3, 3), SAMPLE(32, 36, 2), ABSENT, ABSENT)},
    {.name = "large_values",
     DATA(1, 1, 1, 1, 5, 6),
     IN(DRAWN(ATT_SAMPLE, 1e4, 0, 5, 6, 18), SHARED(18, 19, 3, 3), NO_MORE)},
    {.name = "resnet164_32",
     DATA(1, 1, 1, 1, 32, 32),
     IN(SAMPLE(32, 32, 16), WEIGHTS(16, 16, 3, 3), NO_MORE),
     .bench = true},
    {.name = "resnet164_32_out",
     DATA(1, 0, 1, 1, 32, 32),
     IN(SAMPLE(32, 32, 64), WEIGHTS(64, 16, 1, 1), NO_MORE),
     .bench = true},
    {.name = "resnet164_32_in",
     DATA(1, 0, 1, 1, 32, 32),
     IN(SAMPLE(32, 32, 16), WEIGHTS(16, 64, 1, 1), SAMPLE(32, 32, 64), SAMPLE(32, 32, 64), ABSENT),
     .bench = true},
    {.name = "resnet164_32_in_pooled",
     DATA(1, 0, 1, 1, 32, 32),
     IN(SAMPLE(32, 32, 16), WEIGHTS(16, 64, 1, 1), SAMPLE(32, 32, 64), SAMPLE(32, 32, 64), SAMPLE(64)),
     .bench = true},
    {.name = "resnet164_8",
     DATA(1, 1, 1, 1, 8, 8),
     IN(SAMPLE(8, 8, 64), WEIGHTS(64, 64, 3, 3), NO_MORE),
     .bench = true},
    {.name = "resnet50_28",
     DATA(1, 1, 1, 1, 28, 28),
     IN(SAMPLE(28, 28, 128), WEIGHTS(128, 128, 3, 3), NO_MORE),
     .bench = true},
};

const att_op att_op_conv2d_data_grad = {
    .name = "conv2d_data_grad",
    .attrs_size = sizeof(att_conv_attrs),
    .flags = ATT_OP_MAPS,
    .help =
        "dx [h, w, C]: dy, spread by the weight to where the convolution read x (+ residual + pooled / (h w)); 0 where "
        "relu_output is not > 0",
    .autocast_in = 1u << DY | 1u << RESIDUAL | 1u << RELU_OUTPUT,
    .autocast_cast = 1u << DY,
    .autocast_out = 1,
    .autocast_promote = 1u << RESIDUAL,
    .infer = data_grad_infer,
    .cost = data_grad_cost,
    .absorb = data_grad_absorb,
    ATT_CASES(data_grad_cases),
};

static att_status weight_grad_infer(att_infer *infer)
{
    const att_conv_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, WEIGHT_IN_COUNT));
    ATT_TRY(att_rule_require_maps(infer, DY, "dy"));
    ATT_TRY(att_rule_require_maps(infer, X, "x"));
    const att_shape *maps = &infer->in[X].shape, *gradients = &infer->in[DY].shape;
    if (maps->rank != gradients->rank || (maps->rank > 3 && maps->dims[0] != gradients->dims[0]))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s and x %s must be as many maps", ATT_SHOWN(&infer->in[DY]),
                             ATT_SHOWN(&infer->in[X]));
    const int64_t *x = att_map_dims(maps), kernel[2] = {attrs->kernel_h, attrs->kernel_w};
    int64_t outputs = att_map_dims(&infer->in[DY].shape)[2];
    ATT_TRY(check_dy(infer, x, kernel, outputs));
    att_shape shape = att_shape_of(outputs, x[2] / attrs->groups, kernel[0], kernel[1]);
    if (outputs % attrs->groups || x[2] % attrs->groups || att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s and x %s do not fit %d groups", ATT_SHOWN(&infer->in[DY]),
                             ATT_SHOWN(&infer->in[X]), attrs->groups);
    return att_rule_out(infer, infer->in[DY].dtype, ATT_SUMMED, shape);
}

static void weight_grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)attrs;
    cost->macs =
        (double)att_shape_count(in[DY].shape) * (double)att_shape_count(out->shape) / (double)out->shape.dims[0];
}

#define KERNEL(s, p, d, g, h, w) ATTRS(conv, CONV(s, p, d, g), .kernel_h = (h), .kernel_w = (w))
static const att_op_case weight_grad_cases[] = {
    {.name = "odd", KERNEL(1, 1, 1, 1, 3, 3), IN(SAMPLE(5, 6, 4), SAMPLE(5, 6, 3))},
    {.name = "stride_2_odd", KERNEL(2, 1, 1, 1, 3, 3), IN(SAMPLE(4, 3, 5), SAMPLE(7, 5, 3))},
    {.name = "stride_2_even", KERNEL(2, 1, 1, 1, 3, 3), IN(SAMPLE(3, 4, 19), SAMPLE(6, 8, 17))},
    {.name = "dilation", KERNEL(1, 2, 2, 1, 3, 3), IN(SAMPLE(7, 6, 3), SAMPLE(7, 6, 2))},
    {.name = "dilation_many_outputs", KERNEL(1, 2, 2, 1, 3, 3), IN(SAMPLE(7, 6, 192), SAMPLE(7, 6, 5))},
    {.name = "groups", KERNEL(1, 1, 1, 2, 3, 3), IN(SAMPLE(4, 5, 4), SAMPLE(4, 5, 6))},
    {.name = "depthwise", KERNEL(2, 1, 1, 5, 3, 3), IN(SAMPLE(3, 3, 5), SAMPLE(5, 5, 5))},
    {.name = "pointwise", KERNEL(1, 0, 1, 1, 1, 1), IN(SAMPLE(3, 5, 6), SAMPLE(3, 5, 7))},
    {.name = "pointwise_stride_2", KERNEL(2, 0, 1, 1, 1, 1), IN(SAMPLE(3, 2, 4), SAMPLE(5, 4, 3))},
    {.name = "one_pixel", KERNEL(1, 1, 1, 1, 3, 3), IN(SAMPLE(1, 1, 16), SAMPLE(1, 1, 18))},
    {.name = "planes", KERNEL(1, 3, 1, 1, 7, 7), IN(SAMPLE(6, 19, 1), SAMPLE(6, 19, 2))},
    {.name = "planes_unpadded", KERNEL(1, 0, 1, 1, 3, 5), IN(SAMPLE(4, 15, 2), SAMPLE(6, 19, 3))},
    {.name = "maps", KERNEL(2, 1, 1, 1, 3, 3), IN(SAMPLE(4, 3, 3, 16), SAMPLE(4, 5, 6, 17))},
    {.name = "stem", KERNEL(2, 3, 1, 1, 7, 7), IN(SAMPLE(7, 6, 20), SAMPLE(13, 12, 3))},
    {.name = "many_outputs", KERNEL(1, 1, 1, 1, 3, 3), IN(SAMPLE(12, 10, 193), SAMPLE(12, 10, 3))},
    {.name = "many_outputs_stride_2", KERNEL(2, 1, 1, 1, 3, 3), IN(SAMPLE(3, 3, 208), SAMPLE(6, 5, 5))},
    {.name = "large_values", KERNEL(1, 1, 1, 1, 3, 3), IN(DRAWN(ATT_SAMPLE, 1e4, 0, 5, 6, 18), SAMPLE(5, 6, 19))},
    {.name = "resnet164_32", KERNEL(1, 1, 1, 1, 3, 3), IN(SAMPLE(32, 32, 16), SAMPLE(32, 32, 16)), .bench = true},
    {.name = "resnet164_32_out", KERNEL(1, 0, 1, 1, 1, 1), IN(SAMPLE(32, 32, 64), SAMPLE(32, 32, 16)), .bench = true},
    {.name = "resnet164_8", KERNEL(1, 1, 1, 1, 3, 3), IN(SAMPLE(8, 8, 64), SAMPLE(8, 8, 64)), .bench = true},
    {.name = "resnet50_28", KERNEL(1, 1, 1, 1, 3, 3), IN(SAMPLE(28, 28, 128), SAMPLE(28, 28, 128)), .bench = true},
    {.name = "cbam_32", KERNEL(1, 3, 1, 1, 7, 7), IN(SAMPLE(32, 32, 1), SAMPLE(32, 32, 2)), .bench = true},
    {.name = "neck_small", KERNEL(2, 0, 1, 1, 2, 2), IN(SAMPLE(16, 16, 384), SAMPLE(32, 32, 384)), .bench = true},
    {.name = "resnet50_7", KERNEL(1, 1, 1, 1, 3, 3), IN(SAMPLE(7, 7, 512), SAMPLE(7, 7, 512)), .bench = true},
};

const att_op att_op_conv2d_weight_grad = {
    .name = "conv2d_weight_grad",
    .attrs_size = sizeof(att_conv_attrs),
    .flags = ATT_OP_MAPS,
    .help =
        "dW [O, C / groups, kernel_h, kernel_w]: products of dy and what of x it came from, over samples and places",
    .autocast_in = 3,
    .autocast_cast = 3,
    .infer = weight_grad_infer,
    .cost = weight_grad_cost,
    ATT_CASES(weight_grad_cases),
};
