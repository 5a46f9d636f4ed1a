#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/slice_tokens.h"

att_value att_slice_tokens(att_graph *graph, att_value x, int first, int count)
{
    att_slice_attrs attrs = {.first = first, .count = count};
    return att_emit(graph, "slice_tokens", &attrs, &x, 1, NULL);
}

static att_status check_range(const att_infer *infer, int64_t total)
{
    const att_slice_attrs *attrs = infer->attrs;
    if (attrs->first < 0 || attrs->count < 1 || (int64_t)attrs->first + attrs->count > total)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d tokens from token %d on, but only %lld tokens", attrs->count,
                             attrs->first, (long long)total);
    return ATT_OK;
}

static att_status slice_infer(att_infer *infer)
{
    const att_slice_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SAMPLE, 2));
    att_shape x = infer->in[0].shape;
    ATT_TRY(check_range(infer, x.dims[0]));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(attrs->count, x.dims[1]));
}

static void slice_backward(att_backward *backward)
{
    att_slice_attrs attrs = *(const att_slice_attrs *)att_backward_attrs(backward);
    attrs.total = (int32_t)att_backward_in_desc(backward, 0).shape.dims[0];
    att_rule_add_of_dy(backward, "slice_tokens_grad", &attrs);
}

#define SLICE(f, c, t) ATTRS(slice, (f), (c), (t))
static const att_op_case slice_cases[] = {
    {.name = "middle", SLICE(1, 3, 5), IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "first", SLICE(0, 1, 5), IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "everything", SLICE(0, 5, 5), IN(SAMPLE(5, 33))},
    {.name = "tiny_class_token", SLICE(0, 1, 197), IN(SAMPLE(197, 192)), .bench = true},
    {.name = "tiny_patches", SLICE(1, 196, 197), IN(SAMPLE(197, 192)), .bench = true},
};

const att_op att_op_slice_tokens = {
    .name = "slice_tokens",
    .attrs_size = sizeof(att_slice_attrs),
    .help = "y [count, C]: tokens first .. first + count - 1 of x [N, C]",
    .infer = slice_infer,
    .backward = slice_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(slice_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_slice_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 2));
    ATT_TRY(check_range(infer, attrs->total));
    att_shape dy = infer->in[0].shape;
    if (dy.dims[0] != attrs->count)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s must have %d tokens", ATT_SHOWN(&infer->in[0]),
                             attrs->count);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(attrs->total, dy.dims[1]));
}

static const att_op_case grad_cases[] = {
    {.name = "middle", SLICE(1, 3, 5), IN(SAMPLE(3, 7))},
    {.name = "last", SLICE(4, 1, 5), IN(SAMPLE(1, 33))},
    {.name = "tiny_class_token", SLICE(0, 1, 197), IN(SAMPLE(1, 192)), .bench = true},
};

const att_op att_op_slice_tokens_grad = {
    .name = "slice_tokens_grad",
    .attrs_size = sizeof(att_slice_attrs),
    .help = "dx [total, C]: dy at tokens first .. first + count - 1, zero elsewhere",
    .infer = grad_infer,
    .cost = att_rule_copy_cost,
    ATT_CASES(grad_cases),
};
