#include <attscope/ops.h>

#include <math.h>

#include "engine/ops/cases.h"
#include "engine/ops/global_style.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_global_style(att_graph *graph, att_value x, double eps)
{
    att_style_attrs attrs = {.eps = eps};
    return att_emit(graph, "global_style", &attrs, &x, 1, NULL);
}

static att_shape style_shape(const att_desc *x)
{
    return att_shape_of(att_rule_columns(x), 2);
}

static att_status style_infer(att_infer *infer)
{
    double eps = ((const att_style_attrs *)infer->attrs)->eps;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rows(infer, 0, "x"));
    const att_desc *x = &infer->in[0];
    if (att_rule_rows(x) < 2)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "x %s must have more than one row", ATT_SHOWN(x));
    ATT_TRY(att_rule_require_eps(infer, eps));
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, style_shape(x));
}

#define EPS ATTRS(style, .eps = 1e-5)
#define MAP(...) IN(SAMPLE(__VA_ARGS__))
static const att_op_case style_cases[] = {
    {.name = "odd", EPS, MAP(3, 5, 7), .gradient = true},
    {.name = "two_rows", ATTRS(style, .eps = 0.1), MAP(2, 9), .gradient = true},
    {.name = "one_channel", EPS, MAP(19, 23, 1)},
    {.name = "large_mean", EPS, IN(DRAWN(ATT_SAMPLE, 0.1, 1e4, 9, 31, 33))},
    {.name = "no_variance", EPS, IN(DRAWN(ATT_SAMPLE, 0, 3, 9, 33))},
    {.name = "cifar_64", EPS, MAP(32, 32, 64), .bench = true},
    {.name = "resnet_2048", EPS, MAP(7, 7, 2048), .bench = true},
};

const att_op att_op_global_style = {
    .name = "global_style",
    .attrs_size = sizeof(att_style_attrs),
    .help = "mean and sqrt(unbiased variance + eps) of each channel over rows",
    .autocast_in = 1,
    .infer = style_infer,
    .backward = att_rule_backward_xy,
    .flops_per_in = 4,
    ATT_CASES(style_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 3));
    ATT_TRY(att_rule_require(infer, 0, "dy", ATT_SAMPLE));
    ATT_TRY(att_rule_require_rows(infer, 1, "x"));
    ATT_TRY(att_rule_require_shape(infer, 0, "dy", ATT_SAMPLE, style_shape(&infer->in[1])));
    ATT_TRY(att_rule_require_shape(infer, 2, "y", ATT_SAMPLE, style_shape(&infer->in[1])));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SAMPLE, infer->in[1].shape);
}

#define GRAD(c, ...) IN(SAMPLE(c, 2), SAMPLE(__VA_ARGS__), DRAWN(ATT_SAMPLE, 0.1, 1, c, 2))
static const att_op_case grad_cases[] = {
    {.name = "odd", GRAD(7, 3, 5, 7)},
    {.name = "two_rows", GRAD(33, 2, 33)},
    {.name = "many_rows", GRAD(24, 33, 31, 24)},
    {.name = "cifar_64", GRAD(64, 32, 32, 64), .bench = true},
};

const att_op att_op_global_style_grad = {
    .name = "global_style_grad",
    .attrs_size = sizeof(att_style_attrs),
    .help = "dx = dmean / n + dstd (x - mean) / ((n - 1) std), n the number of rows",
    .autocast_in = 1u << 1,
    .autocast_out = 1,
    .infer = grad_infer,
    .flops_per_out = 3,
    ATT_CASES(grad_cases),
};
