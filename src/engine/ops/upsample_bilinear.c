#include "engine/ops/upsample_bilinear.h"
#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_upsample_bilinear(att_graph *graph, att_value x, int height, int width)
{
    att_upsample_attrs attrs = {.height = height, .width = width};
    return att_emit(graph, "upsample_bilinear", &attrs, &x, 1, NULL);
}

/* Shape rule of the op and of its gradient: a map [.., C] becomes height x width. */
static att_status infer_as(att_infer *infer, const char *name)
{
    const att_upsample_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, name, ATT_SAMPLE, 3));
    const int64_t *from = infer->in[0].shape.dims;
    if (attrs->height < 1 || attrs->width < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "the result is %d x %d, must be at least 1 x 1", attrs->height,
                             attrs->width);
    att_shape to = att_shape_of(attrs->height, attrs->width, from[2]);
    if (from[0] > INT32_MAX || from[1] > INT32_MAX || att_shape_count(to) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s %s or the result of %d x %d is too large", name,
                             ATT_SHOWN(&infer->in[0]), attrs->height, attrs->width);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, to);
}

static att_status upsample_infer(att_infer *infer)
{
    return infer_as(infer, "x");
}

static void upsample_backward(att_backward *backward)
{
    att_shape x = att_backward_in_desc(backward, 0).shape;
    att_upsample_attrs attrs = {.height = (int32_t)x.dims[0], .width = (int32_t)x.dims[1]};
    att_rule_add_of_dy(backward, "upsample_bilinear_grad", &attrs);
}

/* Two products and a sum along each axis. */
static void upsample_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)attrs;
    double y = (double)att_shape_count(in->shape), x = (double)att_shape_count(out->shape);
    cost->flops = 8 * (x > y ? x : y);
}

#define TO(h, w) ATTRS(upsample, .height = (h), .width = (w))
static const att_op_case upsample_cases[] = {
    {.name = "odd", TO(5, 7), IN(SAMPLE(3, 2, 3)), .gradient = true},
    {.name = "smaller", TO(2, 3), IN(SAMPLE(5, 7, 2)), .gradient = true},
    {.name = "same", TO(3, 4), IN(SAMPLE(3, 4, 19))},
    {.name = "pixel", TO(3, 2), IN(SAMPLE(1, 1, 33))},
    {.name = "double", TO(6, 10), IN(SAMPLE(3, 5, 17))},
    {.name = "larger_and_smaller", TO(2, 9), IN(SAMPLE(7, 4, 70))},
    {.name = "pyramid", TO(16, 16), IN(SAMPLE(6, 6, 384)), .bench = true},
    {.name = "segmentation", TO(56, 56), IN(SAMPLE(28, 28, 192)), .bench = true},
};

const att_op att_op_upsample_bilinear = {
    .name = "upsample_bilinear",
    .attrs_size = sizeof(att_upsample_attrs),
    .help = "y [h, w, C]: x [H, W, C] interpolated at ((i + 1/2) H / h - 1/2, (j + 1/2) W / w - 1/2)",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = upsample_infer,
    .backward = upsample_backward,
    .cost = upsample_cost,
    ATT_CASES(upsample_cases),
};

static att_status grad_infer(att_infer *infer)
{
    return infer_as(infer, "dy");
}

static const att_op_case grad_cases[] = {
    {.name = "odd", TO(3, 2), IN(SAMPLE(5, 7, 3))},
    {.name = "smaller", TO(5, 7), IN(SAMPLE(2, 3, 2))},
    {.name = "pixel", TO(1, 1), IN(SAMPLE(3, 2, 33))},
    {.name = "double", TO(3, 5), IN(SAMPLE(6, 10, 17))},
    {.name = "larger_and_smaller", TO(7, 4), IN(SAMPLE(2, 9, 70))},
    {.name = "pyramid", TO(6, 6), IN(SAMPLE(16, 16, 384)), .bench = true},
    {.name = "segmentation", TO(28, 28), IN(SAMPLE(56, 56, 192)), .bench = true},
};

const att_op att_op_upsample_bilinear_grad = {
    .name = "upsample_bilinear_grad",
    .attrs_size = sizeof(att_upsample_attrs),
    .help = "dx [H, W, C]: the transpose of upsample_bilinear on dy",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = grad_infer,
    .cost = upsample_cost,
    ATT_CASES(grad_cases),
};
