#include <attscope/ops.h>

#include "engine/ops/activation.h"
#include "engine/ops/add.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

/* The shape without leading axes of size 1, but with at least one axis. */
static att_shape without_leading_ones(att_shape shape)
{
    int ones = 0;
    while (ones + 1 < shape.rank && shape.dims[ones] == 1)
        ones++;
    for (int i = ones; i < shape.rank; i++)
        shape.dims[i - ones] = shape.dims[i];
    shape.rank -= ones;
    return shape;
}

/* attrs.axes: the axes that a shared b spans, to which its gradient is reduced; 0 if both are sample values. */
att_value att_add(att_graph *graph, att_value a, att_value b)
{
    att_add_attrs attrs = {0};
    if (b != ATT_NONE && att_value_kind(graph, b) == ATT_SHARED)
        attrs.axes = without_leading_ones(att_value_shape(graph, b)).rank;
    att_value in[2] = {a, b};
    return att_emit(graph, "add", &attrs, in, 2, NULL);
}

static bool ends_with(att_shape shape, att_shape end)
{
    if (end.rank > shape.rank)
        return false;
    for (int i = 1; i <= end.rank; i++)
        if (shape.dims[shape.rank - i] != end.dims[end.rank - i])
            return false;
    return true;
}

static att_status add_infer(att_infer *infer)
{
    const att_add_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require(infer, 0, "a", ATT_SAMPLE));
    const att_desc *a = &infer->in[0], *b = &infer->in[1];
    if (attrs->axes == 0) {
        ATT_TRY(att_rule_require_like(infer, 1, "b", ATT_SAMPLE, 0));
    } else {
        ATT_TRY(att_rule_require(infer, 1, "b", ATT_SHARED));
        if (!ends_with(a->shape, without_leading_ones(b->shape)))
            return att_rule_fail(infer, ATT_ERR_MISMATCH, "shared b %s must have the shape of the last axes of a %s",
                                 ATT_SHOWN(b), ATT_SHOWN(a));
    }
    return att_rule_out(infer, a->dtype, ATT_SAMPLE, a->shape);
}

/* Runs before an activation is absorbed. */
static void add_backward(att_backward *backward)
{
    int axes = ((const att_add_attrs *)att_backward_attrs(backward))->axes;
    att_value dy = att_backward_gradient(backward, 0);
    if (att_backward_needs_gradient(backward, 0))
        att_backward_add_gradient(backward, 0, dy);
    if (!att_backward_needs_gradient(backward, 1))
        return;
    if (axes == 0)
        att_backward_add_gradient(backward, 1, dy);
    else
        att_rule_add_sum(backward, 1, dy, axes);
}

static bool add_absorb(att_node *producer, const att_node *consumer)
{
    return att_rule_absorb_relu(&((att_add_attrs *)producer->attrs)->activation, consumer);
}

static const att_op_case cases[] = {
    {.name = "relu", ATTRS(add, .activation = ATT_ACT_RELU), IN(SAMPLE(5, 33), SAMPLE(5, 33))},
    {.name = "odd", IN(SAMPLE(5, 7), SAMPLE(5, 7)), .gradient = true},
    {.name = "scalars", IN(SCALAR, SCALAR)},
    {.name = "position", ATTRS(add, .axes = 2), IN(SAMPLE(5, 7), SHARED(1, 5, 7)), .gradient = true},
    {.name = "bias", ATTRS(add, .axes = 1), IN(SAMPLE(3, 5, 7), SHARED(7)), .gradient = true},
    {.name = "one_number", ATTRS(add, .axes = 1), IN(SAMPLE(5, 1), SHARED(1)), .gradient = true},
    {.name = "demo", IN(SAMPLE(50, 64), SAMPLE(50, 64)), .bench = true},
    {.name = "resnet_256",
     ATTRS(add, .activation = ATT_ACT_RELU),
     IN(SAMPLE(56, 56, 256), SAMPLE(56, 56, 256)),
     .bench = true},
    {.name = "tiny", IN(SAMPLE(197, 192), SAMPLE(197, 192)), .bench = true},
    {.name = "tiny_position", ATTRS(add, .axes = 2), IN(SAMPLE(197, 192), SHARED(1, 197, 192)), .bench = true},
};

const att_op att_op_add = {
    .name = "add",
    .attrs_size = sizeof(att_add_attrs),
    .help = "y = act(a + b); a shared b is repeated over the leading axes of a",
    .autocast_in = 3,
    .autocast_out = 1,
    .autocast_promote = 3,
    .infer = add_infer,
    .backward = add_backward,
    .absorb = add_absorb,
    ATT_CASES(cases),
};
