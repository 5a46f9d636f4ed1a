#include <attscope/ops.h>

#include <math.h>

#include "engine/ops/cases.h"
#include "engine/ops/group_norm.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

/* A separate operation computes the moments of each channel, so that a team's threads can share both passes over x: the
 * one for the moments and the one for y. */
enum { X, MOMENTS, GAMMA, BETA, IN_COUNT };
enum { GRAD_DY, GRAD_X, GRAD_MOMENTS, SUMS_IN_COUNT };
enum { SUM_DY, SUM_DY_NORMAL };
enum { GRAD_GAMMA = SUMS_IN_COUNT, GRAD_SUM_DY, GRAD_SUM_DY_NORMAL, GRAD_IN_COUNT };

att_value att_group_norm(att_graph *graph, att_value x, int groups, att_value gamma, att_value beta, double eps)
{
    att_group_norm_attrs attrs = {.groups = groups, .eps = eps};
    att_value in[IN_COUNT] = {x, att_emit(graph, "channel_moments", NULL, &x, 1, NULL), gamma, beta};
    return att_emit(graph, "group_norm", &attrs, in, IN_COUNT, NULL);
}

static att_status check_attrs(const att_infer *infer, const att_desc *x)
{
    const att_group_norm_attrs *attrs = infer->attrs;
    int64_t columns = att_rule_columns(x);
    if (attrs->groups < 1 || columns % attrs->groups != 0)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "%lld channels of x %s in %lld groups, the number of groups must divide that of channels",
                             (long long)columns, ATT_SHOWN(x), (long long)attrs->groups);
    ATT_TRY(att_rule_require_eps(infer, attrs->eps));
    return ATT_OK;
}

static att_status require_optional_vector(const att_infer *infer, int i, const char *name, int j)
{
    return att_desc_present(&infer->in[i]) ? att_rule_require_vector(infer, i, name, j) : ATT_OK;
}

static att_shape moments_shape(const att_desc *x)
{
    return att_shape_of(2, att_rule_columns(x));
}

static att_status group_norm_infer(att_infer *infer)
{
    const att_desc *x = &infer->in[X];
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, X, "x"));
    ATT_TRY(check_attrs(infer, x));
    ATT_TRY(att_rule_require_shape(infer, MOMENTS, "moments", ATT_SAMPLE, moments_shape(x)));
    ATT_TRY(require_optional_vector(infer, GAMMA, "gamma", X));
    ATT_TRY(require_optional_vector(infer, BETA, "beta", X));
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, x->shape);
}

/* The gradient of x includes the path through the moments, so the moments receive no gradient. */
static void group_norm_backward(att_backward *backward)
{
    att_graph *graph = att_backward_graph(backward);
    const void *attrs = att_backward_attrs(backward);
    att_value in[SUMS_IN_COUNT] = {att_backward_gradient(backward, 0), att_backward_in(backward, X),
                                   att_backward_in(backward, MOMENTS)};
    att_value sums[2];
    att_emit(graph, "group_norm_sums", attrs, in, SUMS_IN_COUNT, sums);
    if (att_backward_needs_gradient(backward, GAMMA))
        att_rule_add_sum(backward, GAMMA, sums[SUM_DY_NORMAL], 1);
    if (att_backward_needs_gradient(backward, BETA))
        att_rule_add_sum(backward, BETA, sums[SUM_DY], 1);
    if (!att_backward_needs_gradient(backward, X))
        return;
    att_value grad[GRAD_IN_COUNT] = {
        in[GRAD_DY], in[GRAD_X], in[GRAD_MOMENTS], att_backward_in(backward, GAMMA), sums[SUM_DY], sums[SUM_DY_NORMAL],
    };
    att_rule_add_node(backward, X, "group_norm_grad", attrs, grad, GRAD_IN_COUNT);
}

#define GROUPS(g) ATTRS(group_norm, .groups = (g), .eps = 1e-5)
/* Moments are drawn independently of x; the formulas hold for any values. Channels have different means, so that groups
 * have a variance for any number of rows. */
#define CASE_MOMENTS(c) DRAWN(ATT_SAMPLE, 0.3, 1, 2, c)
#define VECTORS(c) DRAWN(ATT_SHARED, 0.3, 1, c), SHARED(c)
#define OF(c, ...) IN(SAMPLE(__VA_ARGS__), CASE_MOMENTS(c), VECTORS(c))
static const att_op_case group_norm_cases[] = {
    {.name = "odd", GROUPS(3), OF(15, 5, 7, 15)},
    {.name = "one_group", GROUPS(1), OF(7, 3, 5, 7)},
    {.name = "instances", GROUPS(33), OF(33, 4, 5, 33)},
    {.name = "row", GROUPS(3), OF(9, 9)},
    {.name = "one_channel", GROUPS(1), OF(1, 3, 5, 1)},
    {.name = "many_rows", GROUPS(2), OF(24, 33, 31, 24)},
    {.name = "wide", GROUPS(9), OF(513, 2, 513)},
    {.name = "no_gamma", GROUPS(2), IN(SAMPLE(5, 6), CASE_MOMENTS(6), ABSENT, SHARED(6))},
    {.name = "no_beta", GROUPS(2), IN(SAMPLE(5, 6), CASE_MOMENTS(6), SHARED(6), ABSENT)},
    {.name = "large_mean",
     GROUPS(4),
     IN(DRAWN(ATT_SAMPLE, 1, 1e4, 4, 5, 32), DRAWN(ATT_SAMPLE, 1, 1e4, 2, 32), VECTORS(32))},
    {.name = "poolformer_64", GROUPS(1), OF(64, 56, 56, 64), .bench = true},
    {.name = "poolformer_512", GROUPS(1), OF(512, 7, 7, 512), .bench = true},
    {.name = "resnet_256", GROUPS(32), OF(256, 56, 56, 256), .bench = true},
    {.name = "resnet_2048", GROUPS(32), OF(2048, 7, 7, 2048), .bench = true},
    {.name = "tiny", GROUPS(1), OF(192, 197, 192), .bench = true},
};

const att_op att_op_group_norm = {
    .name = "group_norm",
    .attrs_size = sizeof(att_group_norm_attrs),
    .help =
        "y = (x - mean) / sqrt(var + eps) gamma + beta, over all rows of each group of channels, from the moments "
        "of channels",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_out = 1,
    .infer = group_norm_infer,
    .backward = group_norm_backward,
    .flops_per_in = 3, /* Subtract the mean; scale and shift. */
    ATT_CASES(group_norm_cases),
};

static att_status require_gradient(const att_infer *infer, int count)
{
    const att_desc *x = &infer->in[GRAD_X];
    ATT_TRY(att_rule_count(infer, count));
    ATT_TRY(att_rule_require_rows(infer, GRAD_DY, "dy"));
    ATT_TRY(att_rule_require_like(infer, GRAD_X, "x", ATT_SAMPLE, GRAD_DY));
    ATT_TRY(check_attrs(infer, x));
    return att_rule_require_shape(infer, GRAD_MOMENTS, "moments", ATT_SAMPLE, moments_shape(x));
}

static att_status sums_infer(att_infer *infer)
{
    ATT_TRY(require_gradient(infer, SUMS_IN_COUNT));
    const att_desc *x = &infer->in[GRAD_X];
    att_shape vector = att_shape_of(att_rule_columns(x));
    att_rule_out(infer, x->dtype, ATT_SAMPLE, vector);
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, vector);
}

#define SUMS(c, ...) IN(SAMPLE(__VA_ARGS__), SAMPLE(__VA_ARGS__), CASE_MOMENTS(c))
static const att_op_case sums_cases[] = {
    {.name = "odd", GROUPS(3), SUMS(15, 5, 7, 15)},
    {.name = "instances", GROUPS(33), SUMS(33, 4, 5, 33)},
    {.name = "row", GROUPS(3), SUMS(9, 9)},
    {.name = "many_rows", GROUPS(2), SUMS(24, 33, 31, 24)},
    {.name = "wide", GROUPS(9), SUMS(513, 2, 513)},
    {.name = "poolformer_64", GROUPS(1), SUMS(64, 56, 56, 64), .bench = true},
    {.name = "resnet_2048", GROUPS(32), SUMS(2048, 7, 7, 2048), .bench = true},
};

const att_op att_op_group_norm_sums = {
    .name = "group_norm_sums",
    .attrs_size = sizeof(att_group_norm_attrs),
    .help = "of each channel the sums over rows of dy and of dy n, n = (x - mean) / sqrt(var + eps) of its group",
    .autocast_in = 1u << GRAD_DY,
    .infer = sums_infer,
    .flops_per_in = 4, /* Two sums, and a subtraction of the mean. */
    ATT_CASES(sums_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(require_gradient(infer, GRAD_IN_COUNT));
    ATT_TRY(require_optional_vector(infer, GRAD_GAMMA, "gamma", GRAD_X));
    const att_desc *x = &infer->in[GRAD_X];
    att_shape vector = att_shape_of(att_rule_columns(x));
    ATT_TRY(att_rule_require_shape(infer, GRAD_SUM_DY, "the sum of dy", ATT_SAMPLE, vector));
    ATT_TRY(att_rule_require_shape(infer, GRAD_SUM_DY_NORMAL, "the sum of dy n", ATT_SAMPLE, vector));
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, x->shape);
}

#define GRAD_OF(c, gamma, ...) \
    IN(SAMPLE(__VA_ARGS__), SAMPLE(__VA_ARGS__), CASE_MOMENTS(c), gamma, SAMPLE(c), SAMPLE(c))
#define GRAD(c, ...) GRAD_OF(c, DRAWN(ATT_SHARED, 0.3, 1, c), __VA_ARGS__)
static const att_op_case grad_cases[] = {
    {.name = "odd", GROUPS(3), GRAD(15, 5, 7, 15)},
    {.name = "one_group", GROUPS(1), GRAD(7, 3, 5, 7)},
    {.name = "instances", GROUPS(33), GRAD(33, 4, 5, 33)},
    {.name = "row", GROUPS(3), GRAD(9, 9)},
    {.name = "many_rows", GROUPS(2), GRAD(24, 33, 31, 24)},
    {.name = "wide", GROUPS(9), GRAD(513, 2, 513)},
    {.name = "no_gamma", GROUPS(2), GRAD_OF(6, ABSENT, 5, 6)},
    {.name = "poolformer_64", GROUPS(1), GRAD(64, 56, 56, 64), .bench = true},
    {.name = "poolformer_512", GROUPS(1), GRAD(512, 7, 7, 512), .bench = true},
    {.name = "resnet_256", GROUPS(32), GRAD(256, 56, 56, 256), .bench = true},
    {.name = "resnet_2048", GROUPS(32), GRAD(2048, 7, 7, 2048), .bench = true},
};

const att_op att_op_group_norm_grad = {
    .name = "group_norm_grad",
    .attrs_size = sizeof(att_group_norm_attrs),
    .help =
        "dx = (g - mean(g) - n mean(g n)) / sqrt(var + eps), g = dy gamma, n the normal x; means over all rows of a "
        "group, from the sums of dy and dy n of each channel",
    .autocast_in = 1u << GRAD_DY,
    .infer = grad_infer,
    .flops_per_in = 5,
    ATT_CASES(grad_cases),
};
