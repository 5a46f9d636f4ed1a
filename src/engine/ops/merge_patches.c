#include "engine/ops/merge_patches.h"
#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_merge_patches(att_graph *graph, att_value x)
{
    return att_emit(graph, "merge_patches", NULL, &x, 1, NULL);
}

static att_shape merged_of(int64_t height, int64_t width, int64_t channels)
{
    return att_shape_of(height / 2 + height % 2, width / 2 + width % 2, channels);
}

static att_status merge_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SAMPLE, 3));
    const int64_t *x = infer->in[0].shape.dims;
    if (x[0] > INT32_MAX || x[1] > INT32_MAX || x[2] > INT32_MAX)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "x %s is too large", ATT_SHOWN(&infer->in[0]));
    att_shape merged = merged_of(x[0], x[1], 4 * x[2]);
    if (att_shape_count(merged) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the result of x %s is too large", ATT_SHOWN(&infer->in[0]));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, merged);
}

static void merge_backward(att_backward *backward)
{
    att_shape x = att_backward_in_desc(backward, 0).shape;
    att_merge_attrs attrs = {.height = (int32_t)x.dims[0], .width = (int32_t)x.dims[1]};
    att_rule_add_of_dy(backward, "merge_patches_grad", &attrs);
}

static const att_op_case merge_cases[] = {
    {.name = "even", IN(SAMPLE(4, 6, 3)), .gradient = true},
    {.name = "odd", IN(SAMPLE(3, 5, 2)), .gradient = true},
    {.name = "pixel", IN(SAMPLE(1, 1, 19))},
    {.name = "swin_tiny", IN(SAMPLE(56, 56, 96)), .bench = true},
};

const att_op att_op_merge_patches = {
    .name = "merge_patches",
    .help = "y [H / 2, W / 2, 4 C]: pixels (0, 0), (1, 0), (0, 1), (1, 1) of each 2 x 2 pixels side by side",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = merge_infer,
    .backward = merge_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(merge_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_merge_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 3));
    int64_t channels = infer->in[0].shape.dims[2];
    if (attrs->height < 1 || attrs->width < 1 || channels % 4 ||
        !att_shape_equal(infer->in[0].shape, merged_of(attrs->height, attrs->width, channels)))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s does not come from a map of %d x %d",
                             ATT_SHOWN(&infer->in[0]), attrs->height, attrs->width);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(attrs->height, attrs->width, channels / 4));
}

#define OF(h, w) ATTRS(merge, .height = (h), .width = (w))
static const att_op_case grad_cases[] = {
    {.name = "even", OF(4, 6), IN(SAMPLE(2, 3, 12))},
    {.name = "odd", OF(3, 5), IN(SAMPLE(2, 3, 8))},
    {.name = "pixel", OF(1, 1), IN(SAMPLE(1, 1, 76))},
    {.name = "swin_tiny", OF(56, 56), IN(SAMPLE(28, 28, 384)), .bench = true},
};

const att_op att_op_merge_patches_grad = {
    .name = "merge_patches_grad",
    .attrs_size = sizeof(att_merge_attrs),
    .help = "dx [H, W, C]: the inverse of merge_patches on dy",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = grad_infer,
    .cost = att_rule_copy_cost,
    ATT_CASES(grad_cases),
};
