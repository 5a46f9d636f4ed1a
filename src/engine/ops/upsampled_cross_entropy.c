#include "engine/ops/upsampled_cross_entropy.h"
#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_upsampled_cross_entropy(att_graph *graph, att_value logits, att_value mask, int ignored,
                                      att_pixel_mean mean)
{
    att_upsampled_cross_entropy_attrs attrs = {.ignored = ignored, .mean = (int32_t)mean};
    att_value in[2] = {logits, mask};
    att_value rows = att_emit(graph, "upsampled_cross_entropy", &attrs, in, 2, NULL);
    return att_reshape(graph, att_token_mean(graph, rows, 0), (att_shape){.rank = 0});
}

/* The logits are input `logits`; the mask is the next input. */
static att_status require_operands(const att_infer *infer, int logits)
{
    const att_upsampled_cross_entropy_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_rank(infer, logits, "logits", ATT_SAMPLE, 3));
    const att_desc *mask = &infer->in[logits + 1];
    if (!att_desc_present(mask) || mask->dtype != ATT_I32 || !att_rule_is(infer, logits + 1, ATT_SAMPLE) ||
        mask->shape.rank != 2 || att_shape_count(mask->shape) < 1)
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "mask %s of type %s must be a class of type %s for each pixel [H, W] of each sample",
                             ATT_SHOWN(mask), att_dtype_name(mask->dtype), att_dtype_name(ATT_I32));
    if (attrs->mean != ATT_MEAN_OF_LABELED && attrs->mean != ATT_MEAN_OF_ALL)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "there is no mean %d over pixels", (int)attrs->mean);
    return ATT_OK;
}

/* One number for each row of the mask, so that threads can share a sample. */
static att_shape rows_of(const att_desc *mask)
{
    return att_shape_of(mask->shape.dims[0], 1);
}

static att_status loss_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(require_operands(infer, 0));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, rows_of(&infer->in[1]));
}

static void loss_backward(att_backward *backward)
{
    att_value in[3] = {att_backward_gradient(backward, 0), att_backward_in(backward, 0), att_backward_in(backward, 1)};
    att_rule_add_node(backward, 0, "upsampled_cross_entropy_grad", att_backward_attrs(backward), in, 3);
}

/* Interpolation, maximum, exponential (10) and sum, for each class of each pixel. */
static void loss_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = 16 * (double)att_shape_count(in[1].shape) * (double)in[0].shape.dims[2];
}

#define LABELED(n) ATTRS(upsampled_cross_entropy, .ignored = (n))
#define ALL(n) ATTRS(upsampled_cross_entropy, .ignored = (n), .mean = ATT_MEAN_OF_ALL)
/* The last number that a mask is drawn from is the ignored one. */
static const att_op_case loss_cases[] = {
    {.name = "odd", LABELED(5), IN(SAMPLE(3, 2, 5), INDICES(6, 5, 7)), .gradient = true},
    {.name = "mean_of_all", ALL(3), IN(SAMPLE(2, 3, 3), INDICES(4, 6, 4)), .gradient = true},
    {.name = "smaller", ALL(2), IN(SAMPLE(7, 5, 2), INDICES(3, 2, 3)), .gradient = true},
    {.name = "same", LABELED(ATT_NO_CLASS), IN(SAMPLE(3, 4, 19), INDICES(19, 3, 4))},
    {.name = "pixel", LABELED(33), IN(SAMPLE(1, 1, 33), INDICES(34, 3, 2))},
    {.name = "one_class", LABELED(1), IN(SAMPLE(2, 2, 1), INDICES(2, 4, 4))},
    {.name = "all_ignored", LABELED(0), IN(SAMPLE(2, 2, 3), INDICES(1, 4, 4)), .gradient = true},
    {.name = "sure", LABELED(17), IN(DRAWN(ATT_SAMPLE, 20, 0, 4, 3, 17), INDICES(18, 16, 12))},
    {.name = "camvid", LABELED(11), IN(SAMPLE(22, 30, 11), INDICES(12, 352, 480)), .bench = true},
    {.name = "ade20k", LABELED(150), IN(SAMPLE(32, 32, 150), INDICES(151, 128, 128)), .bench = true},
};

const att_op att_op_upsampled_cross_entropy = {
    .name = "upsampled_cross_entropy",
    .attrs_size = sizeof(att_upsampled_cross_entropy_attrs),
    .help = "rows [H, 1], whose mean is the loss: rows_i = -(H / n) sum_j ln softmax(upsample(logits)_ij)_mask_ij",
    .autocast_in = 1,
    .infer = loss_infer,
    .backward = loss_backward,
    .cost = loss_cost,
    ATT_CASES(loss_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 3));
    ATT_TRY(require_operands(infer, 1));
    ATT_TRY(att_rule_require_shape(infer, 0, "drows", ATT_SAMPLE, rows_of(&infer->in[2])));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SAMPLE, infer->in[1].shape);
}

/* As the loss, and two products and sums in place of one sum. */
static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = 20 * (double)att_shape_count(in[2].shape) * (double)in[1].shape.dims[2];
}

static const att_op_case grad_cases[] = {
    {.name = "odd", LABELED(5), IN(SAMPLE(5, 1), SAMPLE(3, 2, 5), INDICES(6, 5, 7))},
    {.name = "mean_of_all", ALL(3), IN(SAMPLE(6, 1), SAMPLE(2, 3, 3), INDICES(4, 6, 4))},
    {.name = "smaller", ALL(2), IN(SAMPLE(2, 1), SAMPLE(7, 5, 2), INDICES(3, 2, 3))},
    {.name = "same", LABELED(ATT_NO_CLASS), IN(SAMPLE(3, 1), SAMPLE(3, 4, 19), INDICES(19, 3, 4))},
    {.name = "pixel", LABELED(33), IN(SAMPLE(3, 1), SAMPLE(1, 1, 33), INDICES(34, 3, 2))},
    {.name = "one_class", LABELED(1), IN(SAMPLE(4, 1), SAMPLE(2, 2, 1), INDICES(2, 4, 4))},
    {.name = "all_ignored", LABELED(0), IN(SAMPLE(4, 1), SAMPLE(2, 2, 3), INDICES(1, 4, 4))},
    {.name = "sure", LABELED(17), IN(SAMPLE(16, 1), DRAWN(ATT_SAMPLE, 20, 0, 4, 3, 17), INDICES(18, 16, 12))},
    {.name = "camvid", LABELED(11), IN(SAMPLE(352, 1), SAMPLE(22, 30, 11), INDICES(12, 352, 480)), .bench = true},
    {.name = "ade20k", LABELED(150), IN(SAMPLE(128, 1), SAMPLE(32, 32, 150), INDICES(151, 128, 128)), .bench = true},
};

const att_op att_op_upsampled_cross_entropy_grad = {
    .name = "upsampled_cross_entropy_grad",
    .attrs_size = sizeof(att_upsampled_cross_entropy_attrs),
    .help = "dlogits = the transpose of upsample on (H / n) drows_i (softmax(upsample(logits)_ij) - onehot(mask_ij))",
    .autocast_in = 2,
    .autocast_out = 1,
    .infer = grad_infer,
    .cost = grad_cost,
    ATT_CASES(grad_cases),
};
