#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/concat.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { A, B };

att_value att_concat(att_graph *graph, att_value a, att_value b)
{
    att_value in[] = {a, b};
    return att_emit(graph, "concat", NULL, in, 2, NULL);
}

static att_status concat_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require(infer, A, "a", ATT_SAMPLE));
    ATT_TRY(att_rule_require(infer, B, "b", ATT_SAMPLE));
    const att_desc *a = &infer->in[A], *b = &infer->in[B];
    att_shape shape = a->shape;
    bool fits = a->shape.rank > 0 && b->shape.rank == a->shape.rank;
    for (int i = 0; fits && i + 1 < shape.rank; i++)
        fits = shape.dims[i] == b->shape.dims[i];
    if (fits)
        shape.dims[shape.rank - 1] += att_rule_columns(b);
    if (!fits || att_rule_columns(a) > INT32_MAX || att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "a %s and b %s must differ in the last axis only", ATT_SHOWN(a),
                             ATT_SHOWN(b));
    return att_rule_out(infer, a->dtype, ATT_SAMPLE, shape);
}

static void concat_backward(att_backward *backward)
{
    att_desc a = att_backward_in_desc(backward, A);
    att_concat_attrs attrs = {.first = (int32_t)att_rule_columns(&a)};
    att_value dy = att_backward_gradient(backward, 0);
    att_rule_add_outputs(backward, "concat_grad", &attrs, &dy, 1, 2);
}

static const att_op_case concat_cases[] = {
    {.name = "odd", IN(SAMPLE(3, 5, 7), SAMPLE(3, 5, 4)), .gradient = true},
    {.name = "vectors", IN(SAMPLE(7), SAMPLE(33)), .gradient = true},
    {.name = "maps_56", IN(SAMPLE(56, 56, 64), SAMPLE(56, 56, 64)), .bench = true},
};

const att_op att_op_concat = {
    .name = "concat",
    .help = "y [.., A + B]: a [.., A] and b [.., B] side by side",
    .autocast_in = 1u << A | 1u << B,
    .autocast_out = 1,
    .autocast_promote = 1u << A | 1u << B,
    .infer = concat_infer,
    .backward = concat_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(concat_cases),
};

static att_status grad_infer(att_infer *infer)
{
    int64_t width = ((const att_concat_attrs *)infer->attrs)->first;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "dy", ATT_SAMPLE));
    att_shape shape = infer->in[0].shape;
    if (shape.rank < 1 || width < 1 || width >= att_rule_columns(&infer->in[0]))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s does not begin with %lld columns of a",
                             ATT_SHOWN(&infer->in[0]), (long long)width);
    int64_t columns = att_rule_columns(&infer->in[0]);
    shape.dims[shape.rank - 1] = width;
    att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
    shape.dims[shape.rank - 1] = columns - width;
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

static const att_op_case grad_cases[] = {
    {.name = "odd", ATTRS(concat, .first = 7), IN(SAMPLE(3, 5, 11))},
    {.name = "vectors", ATTRS(concat, .first = 7), IN(SAMPLE(40))},
    {.name = "maps_56", ATTRS(concat, .first = 64), IN(SAMPLE(56, 56, 128)), .bench = true},
};

const att_op att_op_concat_grad = {
    .name = "concat_grad",
    .attrs_size = sizeof(att_concat_attrs),
    .help = "da, db: the columns of dy that came from a, and those from b",
    .autocast_in = 1,
    .autocast_out = 3,
    .infer = grad_infer,
    .cost = att_rule_copy_cost,
    ATT_CASES(grad_cases),
};
