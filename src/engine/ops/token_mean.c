#include <math.h>

#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/token_mean.h"

att_value att_token_mean(att_graph *graph, att_value x, int first)
{
    att_mean_attrs attrs = {.first = first, .factor = 1};
    return att_emit(graph, "token_mean", &attrs, &x, 1, NULL);
}

att_value att_repeat_tokens(att_graph *graph, att_value x, int count, double factor)
{
    att_mean_attrs attrs = {.total = count, .factor = factor * count};
    return att_emit(graph, "token_mean_grad", &attrs, &x, 1, NULL);
}

att_value att_global_mean(att_graph *graph, att_value x)
{
    return att_token_mean(graph, x, 0);
}

static att_status check_attrs(const att_infer *infer, int64_t total)
{
    const att_mean_attrs *attrs = infer->attrs;
    int first = attrs->first;
    if (!isfinite(attrs->factor))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "the factor must be a finite number");
    if (first < 0 || first >= total)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "the first token is %d, must be among %lld", first,
                             (long long)total);
    return ATT_OK;
}

static att_status mean_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rows(infer, 0, "x"));
    const att_desc *x = &infer->in[0];
    if (x->shape.rank < 2 || x->shape.rank > 3)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "x %s must be tokens [N, C] or a map [h, w, C]", ATT_SHOWN(x));
    if (att_rule_rows(x) > INT32_MAX)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "x %s has too many rows", ATT_SHOWN(x));
    ATT_TRY(check_attrs(infer, att_rule_rows(x)));
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, att_shape_of(att_rule_columns(x)));
}

static void mean_backward(att_backward *backward)
{
    att_mean_attrs attrs = *(const att_mean_attrs *)att_backward_attrs(backward);
    att_desc x = att_backward_in_desc(backward, 0);
    attrs.total = (int32_t)att_rule_rows(&x);
    attrs.width = x.shape.rank == 3 ? (int32_t)x.shape.dims[1] : 0;
    att_rule_add_of_dy(backward, "token_mean_grad", &attrs);
}

#define MEAN(f, t) ATTRS(mean, (f), (t), 0, 1)
#define MAP(h, w) ATTRS(mean, 0, (h) * (w), (w), 1)
static const att_op_case mean_cases[] = {
    {.name = "all", MEAN(0, 5), IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "patches", MEAN(1, 5), IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "one_token", MEAN(4, 5), IN(SAMPLE(5, 33))},
    {.name = "large_values", MEAN(0, 9), IN(DRAWN(ATT_SAMPLE, 1, 1e4, 9, 17))},
    {.name = "map", MAP(3, 5), IN(SAMPLE(3, 5, 7)), .gradient = true},
    {.name = "cifar_16", MAP(32, 32), IN(SAMPLE(32, 32, 16)), .bench = true},
    {.name = "cifar_64", MAP(32, 32), IN(SAMPLE(32, 32, 64)), .bench = true},
    {.name = "resnet_2048", MAP(7, 7), IN(SAMPLE(7, 7, 2048)), .bench = true},
    {.name = "demo", MEAN(0, 49), IN(SAMPLE(49, 64)), .bench = true},
    {.name = "tiny", MEAN(1, 197), IN(SAMPLE(197, 192)), .bench = true},
};

const att_op att_op_token_mean = {
    .name = "token_mean",
    .attrs_size = sizeof(att_mean_attrs),
    .help = "y [C] = factor times the mean of rows first .. N - 1 of x [.., C]",
    .autocast_in = 1,
    .infer = mean_infer,
    .backward = mean_backward,
    .flops_per_in = 1,
    ATT_CASES(mean_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_mean_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 1));
    ATT_TRY(check_attrs(infer, attrs->total));
    int64_t width = attrs->width, columns = infer->in[0].shape.dims[0];
    if (width < 0 || (width > 0 && attrs->total % width != 0))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d rows do not divide into a map of width %lld", attrs->total,
                             (long long)width);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE,
                        width ? att_shape_of(attrs->total / width, width, columns)
                              : att_shape_of(attrs->total, columns));
}

/* It is the transpose of token_mean, and token_mean its. */
static void grad_backward(att_backward *backward)
{
    att_rule_add_of_dy(backward, "token_mean", att_backward_attrs(backward));
}

static const att_op_case grad_cases[] = {
    {.name = "all", MEAN(0, 5), IN(SAMPLE(7))},
    {.name = "patches", MEAN(2, 5), IN(SAMPLE(33)), .gradient = true},
    {.name = "repeat", ATTRS(mean, 0, 5, 0, 2.5), IN(SAMPLE(7)), .gradient = true},
    {.name = "map", MAP(3, 5), IN(SAMPLE(33))},
    {.name = "cifar_64", MAP(32, 32), IN(SAMPLE(64)), .bench = true},
    {.name = "tiny", MEAN(1, 197), IN(SAMPLE(192)), .bench = true},
};

const att_op att_op_token_mean_grad = {
    .name = "token_mean_grad",
    .attrs_size = sizeof(att_mean_attrs),
    .help = "dx [total, C]: factor dy / (total - first) at rows first .. total - 1, zero before",
    .autocast_out = 1,
    .infer = grad_infer,
    .backward = grad_backward,
    .flops_per_in = 1, /* multiplies each channel once and copies it */
    ATT_CASES(grad_cases),
};
