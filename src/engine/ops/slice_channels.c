#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/slice_channels.h"

att_value att_slice_channels(att_graph *graph, att_value x, int64_t first, int64_t count)
{
    const att_channels_attrs attrs = {.first = first, .count = count};
    return att_emit(graph, "slice_channels", &attrs, &x, 1, NULL);
}

static att_status slice_infer(att_infer *infer)
{
    const att_channels_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rows(infer, 0, "x"));
    int64_t total = att_rule_columns(&infer->in[0]);
    if (attrs->first < 0 || attrs->count < 1 || attrs->count > total || attrs->first > total - attrs->count)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%lld channels from channel %lld on, but only %lld",
                             (long long)attrs->count, (long long)attrs->first, (long long)total);
    att_shape shape = infer->in[0].shape;
    shape.dims[shape.rank - 1] = attrs->count;
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

static void slice_backward(att_backward *backward)
{
    att_channels_attrs attrs = *(const att_channels_attrs *)att_backward_attrs(backward);
    att_desc x = att_backward_in_desc(backward, 0);
    attrs.total = att_rule_columns(&x);
    att_rule_add_of_dy(backward, "slice_channels_grad", &attrs);
}

#define SLICE(f, c, t) ATTRS(channels, (f), (c), (t))
static const att_op_case slice_cases[] = {
    {.name = "middle", SLICE(1, 3, 7), IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "last", SLICE(6, 1, 7), IN(SAMPLE(2, 3, 7)), .gradient = true},
    {.name = "row", SLICE(2, 4, 9), IN(SAMPLE(9)), .gradient = true},
    {.name = "everything", SLICE(0, 33, 33), IN(SAMPLE(5, 33))},
    {.name = "tiny_values", SLICE(384, 192, 576), IN(SAMPLE(197, 576)), .bench = true},
};

const att_op att_op_slice_channels = {
    .name = "slice_channels",
    .attrs_size = sizeof(att_channels_attrs),
    .help = "y [.., count]: channels first .. first + count - 1 of x [.., C]",
    .infer = slice_infer,
    .backward = slice_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(slice_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_channels_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rows(infer, 0, "dy"));
    att_shape shape = infer->in[0].shape;
    if (att_rule_columns(&infer->in[0]) != attrs->count || attrs->first < 0 ||
        attrs->first > attrs->total - attrs->count)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s must have %lld channels", ATT_SHOWN(&infer->in[0]),
                             (long long)attrs->count);
    shape.dims[shape.rank - 1] = attrs->total;
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

static const att_op_case grad_cases[] = {
    {.name = "middle", SLICE(1, 3, 7), IN(SAMPLE(5, 3))},
    {.name = "last", SLICE(6, 1, 7), IN(SAMPLE(2, 3, 1))},
    {.name = "tiny_values", SLICE(384, 192, 576), IN(SAMPLE(197, 192)), .bench = true},
};

const att_op att_op_slice_channels_grad = {
    .name = "slice_channels_grad",
    .attrs_size = sizeof(att_channels_attrs),
    .help = "dx [.., total]: dy at channels first .. first + count - 1, zero elsewhere",
    .infer = grad_infer,
    .cost = att_rule_copy_cost,
    ATT_CASES(grad_cases),
};
