#include "engine/ops/batch_moments.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

/* The operations that reduce moments over the batch, for batch norm. */

static att_status check_rows(const att_infer *infer)
{
    const att_moments_attrs *attrs = infer->attrs;
    if (attrs->rows < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "samples have %lld rows, must have at least 1",
                             (long long)attrs->rows);
    return ATT_OK;
}

static att_status require_pairs(const att_infer *infer, const char *name, att_kind kind)
{
    ATT_TRY(att_rule_require_rank(infer, 0, name, kind, 2));
    return att_rule_require_shape(infer, 0, name, kind, att_shape_of(2, infer->in[0].shape.dims[1]));
}

/* --- channel_moments ---------------------------------------------------------------------------------------------- */

static att_status moments_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rows(infer, 0, "x"));
    const att_desc *x = &infer->in[0];
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, att_shape_of(2, att_rule_columns(x)));
}

/* x has mean 1 and deviation 1: the error of a computed mean is relative to the deviation, so it would be large
 * relative to a mean near 0. */
#define MAP(...) IN(DRAWN(ATT_SAMPLE, 1, 1, __VA_ARGS__))
static const att_op_case moments_cases[] = {
    {.name = "odd", MAP(3, 5, 7)},
    {.name = "row", MAP(9)},
    {.name = "one_channel", MAP(19, 23, 1)},
    {.name = "two_rows", MAP(2, 16)},
    {.name = "many_rows", MAP(33, 31, 24)},
    {.name = "large_mean", IN(DRAWN(ATT_SAMPLE, 0.1, 1e4, 33, 31, 33))},
    {.name = "no_variance", IN(DRAWN(ATT_SAMPLE, 0, 1e4 + 0.3, 9, 7, 48))},
    {.name = "cifar_16", MAP(32, 32, 16), .bench = true},
    {.name = "cifar_64", MAP(32, 32, 64), .bench = true},
    {.name = "middle_128", MAP(16, 16, 128), .bench = true},
    {.name = "cifar_256", MAP(8, 8, 256), .bench = true},
    {.name = "resnet_256", MAP(56, 56, 256), .bench = true},
    {.name = "resnet_2048", MAP(7, 7, 2048), .bench = true},
};

const att_op att_op_channel_moments = {
    .name = "channel_moments",
    .help = "mean and sum of (x - mean)^2 of each channel of a sample",
    .autocast_in = 1,
    .infer = moments_infer,
    .flops_per_in = 4,
    ATT_CASES(moments_cases),
};

/* --- merge_moments ------------------------------------------------------------------------------------------------ */

static att_status merge_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(require_pairs(infer, "moments", ATT_SAMPLE));
    ATT_TRY(check_rows(infer));
    return att_rule_out(infer, infer->in[0].dtype, ATT_BATCH, infer->in[0].shape);
}

#define ROWS(n) ATTRS(moments, .rows = (n))
#define MOMENTS(kind, c) DRAWN(kind, 0.1, 1, 2, c)
static const att_op_case merge_cases[] = {
    {.name = "odd", ROWS(15), IN(MOMENTS(ATT_SAMPLE, 7))},
    {.name = "wide", ROWS(2), IN(MOMENTS(ATT_SAMPLE, 133))},
    {.name = "large_mean", ROWS(49), IN(DRAWN(ATT_SAMPLE, 1, 1e4, 2, 33))},
    {.name = "cifar_64", ROWS(1024), IN(MOMENTS(ATT_SAMPLE, 64)), .bench = true},
    {.name = "resnet_2048", ROWS(49), IN(MOMENTS(ATT_SAMPLE, 2048)), .bench = true},
};

const att_op att_op_merge_moments = {
    .name = "merge_moments",
    .attrs_size = sizeof(att_moments_attrs),
    .help = "mean and biased variance of each channel over all samples, from each sample's moments",
    .infer = merge_infer,
    .flops_per_in = 4,
    ATT_CASES(merge_cases),
};

/* --- running_stats ------------------------------------------------------------------------------------------------ */

static att_status running_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 3));
    ATT_TRY(require_pairs(infer, "stats", ATT_BATCH));
    ATT_TRY(att_rule_require_vector(infer, 1, "mean", 0));
    ATT_TRY(att_rule_require_vector(infer, 2, "variance", 0));
    ATT_TRY(check_rows(infer));
    att_rule_out(infer, infer->in[0].dtype, ATT_BATCH, infer->in[1].shape);
    return att_rule_out(infer, infer->in[0].dtype, ATT_BATCH, infer->in[2].shape);
}

#define RUNNING(n) ATTRS(moments, .rows = (n), .momentum = 0.1)
#define VECTORS(c) MOMENTS(ATT_BATCH, c), SHARED(c), DRAWN(ATT_SHARED, 0.1, 1, c)
static const att_op_case running_cases[] = {
    {.name = "odd", RUNNING(15), IN(VECTORS(7))},
    {.name = "few_rows", RUNNING(2), IN(VECTORS(33))},
    {.name = "cifar_64", RUNNING(1024), IN(VECTORS(64)), .bench = true},
};

const att_op att_op_running_stats = {
    .name = "running_stats",
    .attrs_size = sizeof(att_moments_attrs),
    .help = "running mean and variance = (1 - momentum) old + momentum new, with the unbiased variance of the batch",
    .infer = running_infer,
    ATT_CASES(running_cases),
};

/* --- batch_mean --------------------------------------------------------------------------------------------------- */

static att_status batch_mean_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "sums", ATT_SAMPLE));
    ATT_TRY(check_rows(infer));
    return att_rule_out(infer, infer->in[0].dtype, ATT_BATCH, infer->in[0].shape);
}

static const att_op_case batch_mean_cases[] = {
    {.name = "odd", ROWS(15), IN(SAMPLE(7))},
    {.name = "scalar", ROWS(1), IN(SCALAR)},
    {.name = "wide", ROWS(3), IN(SAMPLE(2, 133))},
    {.name = "cifar_64", ROWS(1024), IN(SAMPLE(64)), .bench = true},
};

const att_op att_op_batch_mean = {
    .name = "batch_mean",
    .attrs_size = sizeof(att_moments_attrs),
    .help = "the mean over all rows of a batch, from sums over each sample's rows",
    .infer = batch_mean_infer,
    ATT_CASES(batch_mean_cases),
};
