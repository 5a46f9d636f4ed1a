#include <attscope/ops.h>

#include "engine/ops/activation.h"
#include "engine/ops/cases.h"
#include "engine/ops/gate.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X, GATE, RESIDUAL, IN_COUNT };

att_value att_gate(att_graph *graph, att_value x, att_value gate)
{
    att_value in[IN_COUNT] = {x, gate, ATT_NONE};
    return att_emit(graph, "gate", NULL, in, IN_COUNT, NULL);
}

att_value att_pixel_gate(att_graph *graph, att_value x, att_value gate)
{
    att_value in[IN_COUNT] = {x, gate, ATT_NONE};
    return att_emit(graph, "pixel_gate", NULL, in, IN_COUNT, NULL);
}

/* The shape of the factors of x: one for each channel (gate, channel_dot) or for each row (pixel_gate, pixel_dot). */
static att_shape gate_shape(const att_op *op, const att_desc *x)
{
    bool per_channel = op == &att_op_gate || op == &att_op_channel_dot;
    return per_channel ? att_shape_of(att_rule_columns(x)) : att_rule_reduced_shape(x);
}

static att_status gate_infer(att_infer *infer)
{
    const att_desc *x = &infer->in[X];
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, X, "x"));
    ATT_TRY(att_rule_require_shape(infer, GATE, "gate", ATT_SAMPLE, gate_shape(infer->op, x)));
    if (att_desc_present(&infer->in[RESIDUAL]))
        ATT_TRY(att_rule_require_like(infer, RESIDUAL, "residual", ATT_SAMPLE, X));
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, x->shape);
}

/* Runs before a residual and an activation are absorbed. */
static void gate_backward(att_backward *backward)
{
    const att_op *op = att_backward_op(backward);
    if (att_backward_needs_gradient(backward, X)) {
        att_value in[IN_COUNT] = {att_backward_gradient(backward, 0), att_backward_in(backward, GATE), ATT_NONE};
        att_rule_add_node(backward, X, op->name, NULL, in, IN_COUNT);
    }
    att_rule_add_product(backward, GATE, op == &att_op_gate ? "channel_dot" : "pixel_dot", NULL, X);
}

static bool gate_absorb(att_node *producer, const att_node *consumer)
{
    return att_rule_absorb_finish(producer, &((att_gate_attrs *)producer->attrs)->activation, consumer, RESIDUAL);
}

#define RELU ATTRS(gate, .activation = ATT_ACT_RELU)
#define ALONE(c, ...) IN(SAMPLE(__VA_ARGS__), SAMPLE(c), ABSENT)
#define ADDED(c, ...) IN(SAMPLE(__VA_ARGS__), SAMPLE(c), SAMPLE(__VA_ARGS__))
static const att_op_case gate_cases[] = {
    {.name = "odd", ALONE(7, 3, 5, 7), .gradient = true},
    {.name = "row", ALONE(9, 9), .gradient = true},
    {.name = "relu", RELU, ALONE(33, 3, 5, 33)},
    {.name = "residual", ADDED(1, 19, 3, 1)},
    {.name = "all", RELU, ADDED(24, 33, 31, 24)},
    {.name = "cifar_16", RELU, ADDED(16, 32, 32, 16), .bench = true},
    {.name = "cifar_64", RELU, ADDED(64, 32, 32, 64), .bench = true},
    {.name = "middle_128", RELU, ADDED(128, 16, 16, 128), .bench = true},
    {.name = "resnet_256", RELU, ADDED(256, 56, 56, 256), .bench = true},
    {.name = "resnet_2048", ALONE(2048, 7, 7, 2048), .bench = true},
};

const att_op att_op_gate = {
    .name = "gate",
    .attrs_size = sizeof(att_gate_attrs),
    .help = "y = act(x (.) gate (+ residual)), with one factor per channel and sample",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_in = 1u << X | 1u << RESIDUAL,
    .autocast_out = 1,
    .autocast_promote = 1u << RESIDUAL,
    .infer = gate_infer,
    .backward = gate_backward,
    .absorb = gate_absorb,
    ATT_CASES(gate_cases),
};

#define MAP(h, w, c) SAMPLE(h, w, c)
#define PIXELS(h, w, c) IN(MAP(h, w, c), MAP(h, w, 1), ABSENT)
#define PIXELS_ADDED(h, w, c) IN(MAP(h, w, c), MAP(h, w, 1), MAP(h, w, c))
static const att_op_case pixel_gate_cases[] = {
    {.name = "odd", PIXELS(3, 5, 7), .gradient = true},
    {.name = "row", IN(SAMPLE(33), SAMPLE(1), ABSENT)},
    {.name = "one_channel", PIXELS(3, 5, 1)},
    {.name = "relu", RELU, PIXELS(3, 5, 33)},
    {.name = "residual", PIXELS_ADDED(3, 5, 19)},
    {.name = "all", RELU, PIXELS_ADDED(3, 5, 67)},
    {.name = "cifar_64", RELU, PIXELS_ADDED(32, 32, 64), .bench = true},
    {.name = "resnet_256", RELU, PIXELS_ADDED(56, 56, 256), .bench = true},
};

const att_op att_op_pixel_gate = {
    .name = "pixel_gate",
    .attrs_size = sizeof(att_gate_attrs),
    .help = "y = act(x (.) gate (+ residual)), with one factor per row",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_in = 1u << X | 1u << RESIDUAL,
    .autocast_out = 1,
    .autocast_promote = 1u << RESIDUAL,
    .infer = gate_infer,
    .backward = gate_backward,
    .absorb = gate_absorb,
    ATT_CASES(pixel_gate_cases),
};

static att_status dot_infer(att_infer *infer)
{
    const att_desc *x = &infer->in[1];
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rows(infer, 0, "dy"));
    ATT_TRY(att_rule_require_like(infer, 1, "x", ATT_SAMPLE, 0));
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, gate_shape(infer->op, x));
}

#define TWO(...) IN(SAMPLE(__VA_ARGS__), SAMPLE(__VA_ARGS__))
static const att_op_case dot_cases[] = {
    {.name = "odd", TWO(3, 5, 7)},
    {.name = "row", TWO(9)},
    {.name = "one_channel", TWO(19, 23, 1)},
    {.name = "many_rows", TWO(33, 31, 24)},
    {.name = "cifar_16", TWO(32, 32, 16), .bench = true},
    {.name = "cifar_64", TWO(32, 32, 64), .bench = true},
    {.name = "resnet_256", TWO(56, 56, 256), .bench = true},
    {.name = "resnet_2048", TWO(7, 7, 2048), .bench = true},
};

const att_op att_op_channel_dot = {
    .name = "channel_dot",
    .help = "sum of dy (.) x over rows, for each channel of a sample",
    .autocast_in = 3,
    .infer = dot_infer,
    .flops_per_in = 2,
    ATT_CASES(dot_cases),
};

static const att_op_case pixel_dot_cases[] = {
    {.name = "odd", TWO(3, 5, 7)},
    {.name = "row", TWO(33)},
    {.name = "one_channel", TWO(3, 5, 1)},
    {.name = "cifar_64", TWO(32, 32, 64), .bench = true},
    {.name = "resnet_256", TWO(56, 56, 256), .bench = true},
};

const att_op att_op_pixel_dot = {
    .name = "pixel_dot",
    .help = "sum of dy (.) x over channels, for each row",
    .autocast_in = 3,
    .infer = dot_infer,
    .flops_per_in = 2,
    ATT_CASES(pixel_dot_cases),
};
