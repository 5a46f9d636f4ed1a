#include <attscope/ops.h>

#include "engine/ops/activation.h"
#include "engine/ops/cases.h"
#include "engine/ops/linear.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X, WEIGHT, BIAS, RESIDUAL, IN_COUNT };

att_value att_linear(att_graph *graph, att_value x, att_value weight, att_value bias)
{
    att_value in[IN_COUNT] = {x, weight, bias, ATT_NONE};
    return att_emit(graph, "linear", NULL, in, IN_COUNT, NULL);
}

static att_status require_weight(const att_infer *infer, int64_t *outputs)
{
    const att_linear_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require(infer, WEIGHT, "weight", ATT_SHARED));
    const att_desc *x = &infer->in[X], *weight = &infer->in[WEIGHT];
    if (weight->shape.rank < 2)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "weight %s must have at least 2 axes", ATT_SHOWN(weight));
    int64_t first = weight->shape.dims[0], others = att_shape_count(weight->shape) / first;
    int64_t inputs = attrs->transposed ? first : others;
    *outputs = attrs->transposed ? others : first;
    if (att_rule_columns(x) != inputs)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "weight %s takes rows of %lld, x %s has rows of %lld",
                             ATT_SHOWN(weight), (long long)inputs, ATT_SHOWN(x), (long long)att_rule_columns(x));
    return ATT_OK;
}

static att_status linear_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require(infer, X, "x", ATT_SAMPLE));
    const att_desc *in = infer->in;
    if (in[X].shape.rank < 1)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "x is a scalar, must have rows");
    int64_t outputs = 0;
    ATT_TRY(require_weight(infer, &outputs));
    att_shape shape = in[X].shape;
    shape.dims[shape.rank - 1] = outputs;
    if (att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the result of x %s and weight %s is too large",
                             ATT_SHOWN(&in[X]), ATT_SHOWN(&in[WEIGHT]));
    att_rule_out(infer, in[X].dtype, ATT_SAMPLE, shape);
    if (att_desc_present(&in[BIAS])) {
        ATT_TRY(att_rule_require(infer, BIAS, "bias", ATT_SHARED));
        if (att_shape_count(in[BIAS].shape) != outputs)
            return att_rule_fail(infer, ATT_ERR_MISMATCH, "bias %s must have %lld elements for weight %s",
                                 ATT_SHOWN(&in[BIAS]), (long long)outputs, ATT_SHOWN(&in[WEIGHT]));
    }
    if (att_desc_present(&in[RESIDUAL])) {
        ATT_TRY(att_rule_require(infer, RESIDUAL, "residual", ATT_SAMPLE));
        if (!att_shape_equal(in[RESIDUAL].shape, shape))
            return att_rule_fail(infer, ATT_ERR_MISMATCH, "residual %s must have the result's shape %s",
                                 ATT_SHOWN(&in[RESIDUAL]), ATT_SHOWN(&infer->out[0]));
    }
    return ATT_OK;
}

static void add_weight_gradients(att_backward *backward, att_value dy)
{
    if (!att_backward_needs_gradient(backward, WEIGHT)) {
        if (att_backward_needs_gradient(backward, BIAS))
            att_rule_add_sum(backward, BIAS, dy, 1);
        return;
    }
    att_value in[2] = {dy, att_backward_in(backward, X)}, out[2];
    att_emit(att_backward_graph(backward), "linear_weight_grad", NULL, in, 2, out);
    att_backward_add_gradient(backward, WEIGHT, out[0]);
    if (att_backward_needs_gradient(backward, BIAS))
        att_backward_add_gradient(backward, BIAS, out[1]);
}

/* For the plain form that att_linear() emits; runs before anything is absorbed. */
static void linear_backward(att_backward *backward)
{
    att_value dy = att_backward_gradient(backward, 0);
    if (att_backward_needs_gradient(backward, X)) {
        att_linear_attrs attrs = {.transposed = true};
        att_value in[IN_COUNT] = {dy, att_backward_in(backward, WEIGHT), ATT_NONE, ATT_NONE};
        att_rule_add_node(backward, X, "linear", &attrs, in, IN_COUNT);
    }
    add_weight_gradients(backward, dy);
}

static void linear_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)attrs;
    cost->macs = (double)att_rule_columns(&in[X]) * (double)att_shape_count(out->shape);
}

static bool linear_absorb(att_node *producer, const att_node *consumer)
{
    if (producer->in[RESIDUAL] != ATT_NONE)
        return false;
    att_linear_attrs *attrs = producer->attrs;
    if (consumer->op == &att_op_gelu && attrs->activation == ATT_ACT_NONE) {
        attrs->activation = ATT_ACT_GELU;
        return true;
    }
    return att_rule_absorb_added(producer, consumer, RESIDUAL);
}

#define WITH_GELU ATTRS(linear, .activation = ATT_ACT_GELU)
#define TRANSPOSED ATTRS(linear, .transposed = true)
#define NO_MORE ABSENT, ABSENT
static const att_op_case linear_cases[] = {
    {.name = "plain", IN(SAMPLE(5, 7), SHARED(6, 7), SHARED(6), ABSENT), .gradient = true},
    {.name = "row", IN(SAMPLE(7), SHARED(3, 7), NO_MORE), .gradient = true},
    {.name = "convolution_weight", IN(SAMPLE(4, 12), SHARED(5, 3, 2, 2), SHARED(5), ABSENT), .gradient = true},
    {.name = "one_by_one", IN(SAMPLE(1, 1), SHARED(1, 1), NO_MORE)},
    {.name = "transposed", TRANSPOSED, IN(SAMPLE(5, 6), SHARED(6, 7), NO_MORE)},
    {.name = "transposed_page", TRANSPOSED, IN(SAMPLE(3, 2), SHARED(2, 1024), NO_MORE)},
    {.name = "transposed_convolution_weight", TRANSPOSED, IN(SAMPLE(4, 5), SHARED(5, 3, 2, 2), NO_MORE)},
    {.name = "everything", WITH_GELU, IN(SAMPLE(2, 3, 7), SHARED(33, 7), SHARED(33), SAMPLE(2, 3, 33))},
    {.name = "transposed_residual", TRANSPOSED, IN(SAMPLE(5, 17), SHARED(17, 7), ABSENT, SAMPLE(5, 7))},
    {.name = "squeeze", IN(SAMPLE(67), WEIGHTS(5, 67, 1, 1), SHARED(5), ABSENT)},
    {.name = "squeeze_residual", IN(SAMPLE(2, 9), WEIGHTS(35, 9, 1, 1), SHARED(35), SAMPLE(2, 35))},
    {.name = "excite", IN(SAMPLE(3), WEIGHTS(67, 3, 1, 1), NO_MORE)},
    {.name = "excite_transposed", TRANSPOSED, IN(SAMPLE(67), WEIGHTS(67, 6, 1, 1), NO_MORE)},
    {.name = "large_values", WITH_GELU, IN(DRAWN(ATT_SAMPLE, 1e3, 0, 5, 19), SHARED(18, 19), SHARED(18), ABSENT)},
    {.name = "demo_qkv", IN(SAMPLE(50, 64), WEIGHTS(192, 64), WEIGHTS(192), ABSENT), .bench = true},
    {.name = "tiny_embedding", IN(SAMPLE(196, 768), WEIGHTS(192, 3, 16, 16), WEIGHTS(192), ABSENT), .bench = true},
    {.name = "tiny_qkv", IN(SAMPLE(197, 192), WEIGHTS(576, 192), WEIGHTS(576), ABSENT), .bench = true},
    {.name = "tiny_projection", IN(SAMPLE(197, 192), WEIGHTS(192, 192), WEIGHTS(192), SAMPLE(197, 192)), .bench = true},
    {.name = "tiny_fc1", WITH_GELU, IN(SAMPLE(197, 192), WEIGHTS(768, 192), WEIGHTS(768), ABSENT), .bench = true},
    {.name = "tiny_fc2", IN(SAMPLE(197, 768), WEIGHTS(192, 768), WEIGHTS(192), SAMPLE(197, 192)), .bench = true},
    {.name = "tiny_fc2_input_gradient", TRANSPOSED, IN(SAMPLE(197, 192), WEIGHTS(192, 768), NO_MORE), .bench = true},
    {.name = "tiny_head", IN(SAMPLE(192), WEIGHTS(1000, 192), WEIGHTS(1000), ABSENT), .bench = true},
    {.name = "small_qkv", IN(SAMPLE(197, 384), WEIGHTS(1152, 384), WEIGHTS(1152), ABSENT), .bench = true},
    {.name = "small_fc1", WITH_GELU, IN(SAMPLE(197, 384), WEIGHTS(1536, 384), WEIGHTS(1536), ABSENT), .bench = true},
};

const att_op att_op_linear = {
    .name = "linear",
    .attrs_size = sizeof(att_linear_attrs),
    .help = "y = act(x W' + b) + r; act the identity or GELU",
    .autocast_in = 1,
    .autocast_cast = 1,
    .autocast_out = 1,
    .infer = linear_infer,
    .backward = linear_backward,
    .cost = linear_cost,
    .absorb = linear_absorb,
    ATT_CASES(linear_cases),
};

static att_status weight_grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require(infer, 0, "dy", ATT_SAMPLE));
    ATT_TRY(att_rule_require(infer, 1, "x", ATT_SAMPLE));
    const att_desc *dy = &infer->in[0], *x = &infer->in[1];
    if (dy->shape.rank < 1 || x->shape.rank < 1 || att_rule_rows(dy) != att_rule_rows(x))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s and x %s must have equally many rows", ATT_SHOWN(dy),
                             ATT_SHOWN(x));
    int64_t outputs = att_rule_columns(dy), inputs = att_rule_columns(x);
    if (att_shape_count(att_shape_of(outputs, inputs)) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the result of dy %s and x %s is too large", ATT_SHOWN(dy),
                             ATT_SHOWN(x));
    att_rule_out(infer, x->dtype, ATT_SUMMED, att_shape_of(outputs, inputs));
    return att_rule_out(infer, x->dtype, ATT_SUMMED, att_shape_of(outputs));
}

static void weight_grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->macs = (double)att_rule_columns(&in[1]) * (double)att_shape_count(in[0].shape);
    cost->flops = 2 * cost->macs + (double)att_shape_count(in[0].shape);
}

static const att_op_case weight_grad_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 6), SAMPLE(5, 7))},
    {.name = "row", IN(SAMPLE(3), SAMPLE(7))},
    {.name = "three_axes", IN(SAMPLE(3, 5, 33), SAMPLE(3, 5, 17))},
    {.name = "large_values", IN(DRAWN(ATT_SAMPLE, 1e4, 0, 5, 16), SAMPLE(5, 16))},
    {.name = "demo_qkv", IN(SAMPLE(50, 192), SAMPLE(50, 64)), .bench = true},
    {.name = "tiny_qkv", IN(SAMPLE(197, 576), SAMPLE(197, 192)), .bench = true},
    {.name = "tiny_fc1", IN(SAMPLE(197, 768), SAMPLE(197, 192)), .bench = true},
    {.name = "tiny_fc2", IN(SAMPLE(197, 192), SAMPLE(197, 768)), .bench = true},
    {.name = "small_fc1", IN(SAMPLE(197, 1536), SAMPLE(197, 384)), .bench = true},
    {.name = "nine_heads", IN(SAMPLE(256, 400), SAMPLE(256, 3600)), .bench = true},
};

const att_op att_op_linear_weight_grad = {
    .name = "linear_weight_grad",
    .help = "dW = dy' x, db = column sums of dy, over samples and rows",
    .autocast_in = 3,
    .autocast_cast = 3,
    .infer = weight_grad_infer,
    .cost = weight_grad_cost,
    ATT_CASES(weight_grad_cases),
};
