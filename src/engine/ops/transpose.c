#include <attscope/ops.h>

#include "engine/graph/graph.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/transpose.h"

att_value att_transpose(att_graph *graph, att_value x, const int *axes, int count)
{
    att_transpose_attrs attrs = {.rank = count};
    for (int i = 0; i < count && i < ATT_MAX_RANK; i++)
        attrs.axes[i] = axes[i];
    return att_emit(graph, "transpose", &attrs, &x, 1, NULL);
}

/* Checks that the axes are a permutation of x's axes. */
static att_status check_axes(const att_infer *infer)
{
    const att_transpose_attrs *attrs = infer->attrs;
    const att_desc *x = &infer->in[0];
    if (attrs->rank != x->shape.rank)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d axes are given, x %s has %d", attrs->rank, ATT_SHOWN(x),
                             x->shape.rank);
    bool named[ATT_MAX_RANK] = {false};
    for (int i = 0; i < attrs->rank; i++) {
        int32_t axis = attrs->axes[i];
        if (axis < 0 || axis >= attrs->rank || named[axis])
            return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                                 "axis %d of the result is axis %d of x %s, must be one of 0 .. %d and no axis "
                                 "twice",
                                 i, axis, ATT_SHOWN(x), attrs->rank - 1);
        named[axis] = true;
    }
    return ATT_OK;
}

static att_status transpose_infer(att_infer *infer)
{
    const att_transpose_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "x", ATT_SAMPLE));
    ATT_TRY(check_axes(infer));
    att_shape shape = {.rank = attrs->rank};
    for (int i = 0; i < attrs->rank; i++)
        shape.dims[i] = infer->in[0].shape.dims[attrs->axes[i]];
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

/* The inverse permutation. */
static void transpose_backward(att_backward *backward)
{
    const att_transpose_attrs *forward = att_backward_attrs(backward);
    att_transpose_attrs attrs = {.rank = forward->rank};
    for (int i = 0; i < attrs.rank; i++)
        attrs.axes[forward->axes[i]] = i;
    att_rule_add_of_dy(backward, "transpose", &attrs);
}

#define AXES(n, ...) ATTRS(transpose, .rank = (n), .axes = {__VA_ARGS__})
static const att_op_case transpose_cases[] = {
    {.name = "cycle", AXES(3, 1, 2, 0), IN(SAMPLE(2, 3, 5)), .gradient = true},
    {.name = "matrix", AXES(2, 1, 0), IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "five_axes", AXES(5, 3, 0, 4, 2, 1), IN(SAMPLE(2, 3, 5, 2, 7))},
    {.name = "rows_stay_whole", AXES(4, 0, 2, 1, 3), IN(SAMPLE(2, 3, 5, 19))},
    {.name = "unit_axes", AXES(4, 2, 1, 0, 3), IN(SAMPLE(5, 1, 7, 1))},
    {.name = "nothing", AXES(2, 0, 1), IN(SAMPLE(3, 5))},
    {.name = "scalar", AXES(0, 0), IN(SCALAR)},
    {.name = "long_matrix", AXES(2, 1, 0), IN(SAMPLE(37, 41))},
    {.name = "tiny_heads", AXES(3, 1, 0, 2), IN(SAMPLE(197, 3, 64)), .bench = true},
    {.name = "tiny_tokens", AXES(2, 1, 0), IN(SAMPLE(197, 192)), .bench = true},
    {.name = "map_64", AXES(3, 2, 0, 1), IN(SAMPLE(56, 56, 64)), .bench = true},
    {.name = "swin_tiny_qkv", AXES(4, 2, 0, 1, 3), IN(SAMPLE(64 * 49, 3, 3, 32)), .bench = true},
};

const att_op att_op_transpose = {
    .name = "transpose",
    .attrs_size = sizeof(att_transpose_attrs),
    .help = "y: the elements of x with its axes in another order",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = transpose_infer,
    .backward = transpose_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(transpose_cases),
};
