#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/reshape.h"
#include "engine/ops/rule.h"

att_value att_reshape(att_graph *graph, att_value x, att_shape shape)
{
    att_reshape_attrs attrs = {.rank = shape.rank};
    for (int i = 0; i < shape.rank && i < ATT_MAX_RANK; i++)
        attrs.dims[i] = shape.dims[i];
    return att_emit(graph, "reshape", &attrs, &x, 1, NULL);
}

static att_status reshape_infer(att_infer *infer)
{
    const att_reshape_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "x", ATT_SAMPLE));
    if (attrs->rank < 0 || attrs->rank > ATT_MAX_RANK)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "the shape has %lld axes, must have 0 to %d",
                             (long long)attrs->rank, ATT_MAX_RANK);
    att_desc out = {infer->in[0].dtype, ATT_SAMPLE, {.rank = (int)attrs->rank}};
    for (int i = 0; i < out.shape.rank; i++)
        out.shape.dims[i] = attrs->dims[i];
    if (att_shape_count(out.shape) != att_shape_count(infer->in[0].shape))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "x %s does not have as many elements as %s",
                             ATT_SHOWN(&infer->in[0]), ATT_SHOWN(&out));
    return att_rule_out(infer, out.dtype, out.kind, out.shape);
}

static void reshape_backward(att_backward *backward)
{
    att_shape shape = att_backward_in_desc(backward, 0).shape;
    att_backward_add_gradient(backward, 0,
                              att_reshape(att_backward_graph(backward), att_backward_gradient(backward, 0), shape));
}

#define TO(n, ...) ATTRS(reshape, .rank = (n), .dims = {__VA_ARGS__})
static const att_op_case reshape_cases[] = {
    {.name = "odd", TO(2, 5, 6), IN(SAMPLE(2, 3, 5)), .gradient = true},
    {.name = "flat", TO(1, 33), IN(SAMPLE(3, 11))},
    {.name = "scalar", TO(0, 0), IN(SAMPLE(1, 1))},
    {.name = "five_axes", TO(5, 3, 1, 2, 1, 7), IN(SAMPLE(6, 7))},
    {.name = "tiny_qkv", TO(4, 197, 3, 3, 64), IN(SAMPLE(197, 576)), .bench = true},
};

const att_op att_op_reshape = {
    .name = "reshape",
    .attrs_size = sizeof(att_reshape_attrs),
    .help = "y: the elements of x in their order, under another shape",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = reshape_infer,
    .backward = reshape_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(reshape_cases),
};
