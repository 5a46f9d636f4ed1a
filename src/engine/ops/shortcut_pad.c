#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/shortcut_pad.h"

att_value att_shortcut_pad(att_graph *graph, att_value x, int stride, int channels)
{
    att_shape shape = att_value_shape(graph, x);
    int64_t from = shape.rank == 3 ? shape.dims[2] : 0, more = channels - from;
    att_shortcut_attrs attrs = {.stride = stride, .channels = channels, .before = more > 0 ? (int32_t)(more / 2) : 0};
    return att_emit(graph, "shortcut_pad", &attrs, &x, 1, NULL);
}

/* The output shape for a map [height, width, from]. */
static att_status padded_of(const att_infer *infer, const int64_t from[3], att_shape *to)
{
    const att_shortcut_attrs *attrs = infer->attrs;
    if (attrs->stride < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "stride is %d, must be at least 1", attrs->stride);
    if (from[0] < 1 || from[1] < 1 || from[2] < 1 || from[0] > INT32_MAX || from[1] > INT32_MAX || attrs->before < 0 ||
        from[2] > (int64_t)attrs->channels - attrs->before)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "a map of %lld x %lld x %lld does not become one of %d channels",
                             (long long)from[0], (long long)from[1], (long long)from[2], attrs->channels);
    *to = att_shape_of((from[0] - 1) / attrs->stride + 1, (from[1] - 1) / attrs->stride + 1, attrs->channels);
    if (att_shape_count(*to) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the result is too large");
    return ATT_OK;
}

static att_status pad_infer(att_infer *infer)
{
    att_shape to;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SAMPLE, 3));
    ATT_TRY(padded_of(infer, infer->in[0].shape.dims, &to));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, to);
}

static void pad_backward(att_backward *backward)
{
    att_shortcut_attrs attrs = *(const att_shortcut_attrs *)att_backward_attrs(backward);
    att_shape x = att_backward_in_desc(backward, 0).shape;
    attrs.height = (int32_t)x.dims[0];
    attrs.width = (int32_t)x.dims[1];
    attrs.from = (int32_t)x.dims[2];
    att_rule_add_of_dy(backward, "shortcut_pad_grad", &attrs);
}

#define PAD(s, c, b) .stride = (s), .channels = (c), .before = (b)
static const att_op_case pad_cases[] = {
    {.name = "odd", ATTRS(shortcut, PAD(2, 8, 2)), IN(SAMPLE(5, 6, 3)), .gradient = true},
    {.name = "same", ATTRS(shortcut, PAD(1, 19, 0)), IN(SAMPLE(3, 4, 19))},
    {.name = "resnet164_32", ATTRS(shortcut, PAD(2, 128, 32)), IN(SAMPLE(32, 32, 64)), .bench = true},
};

const att_op att_op_shortcut_pad = {
    .name = "shortcut_pad",
    .attrs_size = sizeof(att_shortcut_attrs),
    .help = "y [i, j] = x [stride i, stride j] between zero channels",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = pad_infer,
    .backward = pad_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(pad_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_shortcut_attrs *attrs = infer->attrs;
    const int64_t from[3] = {attrs->height, attrs->width, attrs->from};
    att_shape to;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "dy", ATT_SAMPLE));
    ATT_TRY(padded_of(infer, from, &to));
    att_shape x = att_shape_of(from[0], from[1], from[2]);
    if (!att_shape_equal(infer->in[0].shape, to) || att_shape_count(x) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s does not come from a map of %d x %d x %d",
                             ATT_SHOWN(&infer->in[0]), attrs->height, attrs->width, attrs->from);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, x);
}

#define OF(h, w, c) .height = (h), .width = (w), .from = (c)
static const att_op_case grad_cases[] = {
    {.name = "odd", ATTRS(shortcut, PAD(2, 8, 2), OF(5, 6, 3)), IN(SAMPLE(3, 3, 8))},
    {.name = "same", ATTRS(shortcut, PAD(1, 19, 0), OF(3, 4, 19)), IN(SAMPLE(3, 4, 19))},
    {.name = "resnet164_32", ATTRS(shortcut, PAD(2, 128, 32), OF(32, 32, 64)), IN(SAMPLE(16, 16, 128)), .bench = true},
};

const att_op att_op_shortcut_pad_grad = {
    .name = "shortcut_pad_grad",
    .attrs_size = sizeof(att_shortcut_attrs),
    .help = "dx [stride i, stride j] = dy [i, j] without the zero channels; 0 elsewhere",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = grad_infer,
    .cost = att_rule_copy_cost,
    ATT_CASES(grad_cases),
};
