#include "ops/cases.h"
#include "ops/list.h"
#include "ops/rule.h"

/* What batch norm needs of a map that a convolution by 1 x 1 makes, from what that reads: the channels' moments of W x
 * follow from the mean and the second moments of x. Means are row 0, second moments the K rows behind it. */

static att_status take_gram(const att_infer *infer, const char *op, att_kind kind)
{
    ATT_TRY(att_rule_take_rank(infer, op, 0, "gram", kind, 2));
    int64_t columns = infer->in[0].shape.dims[1];
    return att_rule_take_shape(infer, op, 0, "gram", kind, att_shape_of(columns + 1, columns));
}

/* --- channel_gram ------------------------------------------------------------------------------------------------- */

static att_status gram_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, "channel_gram", 1));
    ATT_TRY(att_rule_take_rows(infer, "channel_gram", 0, "x"));
    const att_desc *x = &infer->in[0];
    int64_t columns = att_rule_columns(x);
    att_rule_out(infer, x->dtype, ATT_SAMPLE, att_shape_of(columns + 1, columns));
    return ATT_OK;
}

/* One half of a symmetric product. */
static void gram_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->macs = (double)att_shape_count(in->shape) * (double)(att_rule_columns(in) + 1) / 2;
    cost->flops = 2 * cost->macs;
}

/* Means that are not small beside the deviation, as those behind a ReLU. */
#define MAP(...) .in = {ATT_CASE_DRAWN(ATT_SAMPLE, 1, 1, __VA_ARGS__)}, .in_count = 1
static const att_op_case gram_cases[] = {
    {.name = "odd", MAP(3, 5, 7)},
    {.name = "row", MAP(9)},
    {.name = "one_channel", MAP(19, 23, 1)},
    {.name = "many_rows", MAP(33, 31, 24)},
    {.name = "wide", MAP(9, 15, 133)},
    {.name = "large_mean", .in = {ATT_CASE_DRAWN(ATT_SAMPLE, 0.1, 1e4, 17, 13, 33)}, .in_count = 1},
    {.name = "resnet164_32", MAP(32, 32, 16), .bench = true},
    {.name = "resnet164_16", MAP(16, 16, 32), .bench = true},
    {.name = "resnet164_8", MAP(8, 8, 64), .bench = true},
    {.name = "resnet50_56", MAP(56, 56, 64), .bench = true},
    {.name = "resnet50_14", MAP(14, 14, 256), .bench = true},
};

const att_op att_op_channel_gram = {
    .name = "channel_gram",
    .help = "the mean m of a sample's rows, and the sum of (x - m)' (x - m)",
    .narrow_in = 1,
    .infer = gram_infer,
    .cost = gram_cost,
    ATT_CASES(gram_cases),
};

/* --- merge_gram --------------------------------------------------------------------------------------------------- */

static att_status merge_infer(att_infer *infer)
{
    const att_moments_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, "merge_gram", 1));
    ATT_TRY(take_gram(infer, "merge_gram", ATT_SAMPLE));
    if (attrs->rows < 1)
        return att_fail(infer->context, ATT_ERR_ARGUMENT, "merge_gram: samples have %lld rows, must have some",
                        (long long)attrs->rows);
    att_rule_out(infer, infer->in[0].dtype, ATT_BATCH, infer->in[0].shape);
    return ATT_OK;
}

static void merge_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = 3 * (double)att_shape_count(in->shape);
}

#define ROWS(n) .attrs.moments = {.rows = (n)}
#define GRAM(kind, c) ATT_CASE_DRAWN(kind, 0.1, 1, (c) + 1, c)
static const att_op_case merge_cases[] = {
    {.name = "odd", ROWS(15), .in = {GRAM(ATT_SAMPLE, 7)}, .in_count = 1},
    {.name = "wide", ROWS(2), .in = {GRAM(ATT_SAMPLE, 133)}, .in_count = 1},
    {.name = "resnet164_8", ROWS(64), .in = {GRAM(ATT_SAMPLE, 64)}, .in_count = 1, .bench = true},
    {.name = "resnet50_14", ROWS(196), .in = {GRAM(ATT_SAMPLE, 256)}, .in_count = 1, .bench = true},
};

const att_op att_op_merge_gram = {
    .name = "merge_gram",
    .help = "mean and covariance of the rows of all samples, from each sample's gram",
    .infer = merge_infer,
    .cost = merge_cost,
    ATT_CASES(merge_cases),
};

/* --- gram_moments ------------------------------------------------------------------------------------------------- */

static att_status moments_infer(att_infer *infer)
{
    static const char op[] = "gram_moments";
    ATT_TRY(att_rule_count(infer, op, 2));
    ATT_TRY(take_gram(infer, op, ATT_BATCH));
    ATT_TRY(att_rule_take_rank(infer, op, 1, "weight", ATT_SHARED, 4));
    int64_t outputs = infer->in[1].shape.dims[0], inputs = infer->in[0].shape.dims[1];
    ATT_TRY(att_rule_take_shape(infer, op, 1, "weight", ATT_SHARED, att_shape_of(outputs, inputs, 1, 1)));
    att_rule_out(infer, infer->in[0].dtype, ATT_BATCH, att_shape_of(2, outputs));
    return ATT_OK;
}

static void moments_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = 2 * (double)att_shape_count(in[0].shape) * (double)in[1].shape.dims[0];
}

/* Of random numbers, so that a gram is no covariance; near 1, so that variances are positive all the same. */
#define OF(c, k) .in = {GRAM(ATT_BATCH, k), ATT_CASE_DRAWN(ATT_SHARED, 0.1, 0.2, c, k, 1, 1)}, .in_count = 2
static const att_op_case moments_cases[] = {
    {.name = "odd", OF(15, 7)},
    {.name = "wide", OF(33, 133)},
    {.name = "resnet164_8", OF(256, 64), .bench = true},
    {.name = "resnet50_14", OF(1024, 256), .bench = true},
};

const att_op att_op_gram_moments = {
    .name = "gram_moments",
    .help = "mean w m and variance w' C w of each channel of W x, from the mean m and the covariance C of x",
    .infer = moments_infer,
    .cost = moments_cost,
    ATT_CASES(moments_cases),
};
