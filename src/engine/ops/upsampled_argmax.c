#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/upsample_bilinear.h"

att_value att_upsampled_argmax(att_graph *graph, att_value logits, int height, int width)
{
    att_upsample_attrs attrs = {.height = height, .width = width};
    return att_emit(graph, "upsampled_argmax", &attrs, &logits, 1, NULL);
}

static att_status argmax_infer(att_infer *infer)
{
    const att_upsample_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "logits", ATT_SAMPLE, 3));
    if (attrs->height < 1 || attrs->width < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "the result is %d x %d, must be at least 1 x 1", attrs->height,
                             attrs->width);
    if (infer->in[0].shape.dims[2] > INT32_MAX)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "logits %s have too many classes", ATT_SHOWN(&infer->in[0]));
    return att_rule_out(infer, ATT_I32, ATT_SAMPLE, att_shape_of(attrs->height, attrs->width));
}

/* Interpolation and maximum. */
static void argmax_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)attrs;
    cost->flops = 4 * (double)att_shape_count(out[0].shape) * (double)in[0].shape.dims[2];
}

#define TO(h, w) ATTRS(upsample, .height = (h), .width = (w))
static const att_op_case argmax_cases[] = {
    {.name = "odd", TO(5, 7), IN(SAMPLE(3, 2, 3))},
    {.name = "smaller", TO(2, 3), IN(SAMPLE(5, 7, 19))},
    {.name = "pixel", TO(3, 2), IN(SAMPLE(1, 1, 33))},
    {.name = "one_class", TO(4, 4), IN(SAMPLE(2, 2, 1))},
    {.name = "equal", TO(6, 6), IN(DRAWN(ATT_SAMPLE, 0, 1, 3, 3, 40))},
    {.name = "camvid", TO(352, 480), IN(SAMPLE(22, 30, 11)), .bench = true},
    {.name = "ade20k", TO(128, 128), IN(SAMPLE(32, 32, 150)), .bench = true},
};

const att_op att_op_upsampled_argmax = {
    .name = "upsampled_argmax",
    .attrs_size = sizeof(att_upsample_attrs),
    .help = "y [h, w]: the class with the largest upsample(logits)_ij; of equal ones the lowest",
    .autocast_in = 1,
    .infer = argmax_infer,
    .cost = argmax_cost,
    ATT_CASES(argmax_cases),
};
