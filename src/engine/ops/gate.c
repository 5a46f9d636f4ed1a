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

static att_status gate_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, X, "x"));
    att_shape vector = att_shape_of(att_rule_columns(&infer->in[X]));
    ATT_TRY(att_rule_require_shape(infer, GATE, "gate", ATT_SAMPLE, vector));
    if (att_desc_present(&infer->in[RESIDUAL]))
        ATT_TRY(att_rule_require_like(infer, RESIDUAL, "residual", ATT_SAMPLE, X));
    att_rule_out(infer, infer->in[X].dtype, ATT_SAMPLE, infer->in[X].shape);
    return ATT_OK;
}

/* Runs before a residual and an activation are absorbed. */
static void gate_backward(att_backward *backward)
{
    att_graph *graph = att_backward_graph(backward);
    att_value dy = att_backward_gradient(backward, 0);
    if (att_backward_needs_gradient(backward, X))
        att_backward_add_gradient(backward, X, att_gate(graph, dy, att_backward_in(backward, GATE)));
    if (att_backward_needs_gradient(backward, GATE)) {
        att_value in[2] = {dy, att_backward_in(backward, X)};
        att_backward_add_gradient(backward, GATE, att_emit(graph, "channel_dot", NULL, in, 2, NULL));
    }
}

static bool gate_absorb(att_node *producer, const att_node *consumer)
{
    return att_rule_absorb_finish(producer, &((att_gate_attrs *)producer->attrs)->activation, consumer, RESIDUAL);
}

#define RELU ATT_CASE_ATTRS(gate, .activation = ATT_ACT_RELU)
#define ALONE(c, ...) ATT_CASE_IN(ATT_CASE_SAMPLE(__VA_ARGS__), ATT_CASE_SAMPLE(c), ATT_CASE_ABSENT)
#define ADDED(c, ...) ATT_CASE_IN(ATT_CASE_SAMPLE(__VA_ARGS__), ATT_CASE_SAMPLE(c), ATT_CASE_SAMPLE(__VA_ARGS__))
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

static att_status dot_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rows(infer, 0, "dy"));
    ATT_TRY(att_rule_require_like(infer, 1, "x", ATT_SAMPLE, 0));
    att_rule_out(infer, infer->in[1].dtype, ATT_SAMPLE, att_shape_of(att_rule_columns(&infer->in[1])));
    return ATT_OK;
}

#define TWO(...) ATT_CASE_IN(ATT_CASE_SAMPLE(__VA_ARGS__), ATT_CASE_SAMPLE(__VA_ARGS__))
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
