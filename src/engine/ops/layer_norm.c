#include <attscope/ops.h>

#include <math.h>

#include "engine/ops/cases.h"
#include "engine/ops/layer_norm.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X, GAMMA, BETA, IN_COUNT };
enum { GRAD_DY, GRAD_X, GRAD_GAMMA, GRAD_STATS, GRAD_ADDEND, GRAD_IN_COUNT };

att_value att_layer_norm(att_graph *graph, att_value x, att_value gamma, att_value beta, double eps)
{
    att_layer_norm_attrs attrs = {.eps = eps};
    att_value in[IN_COUNT] = {x, gamma, beta};
    return att_emit(graph, "layer_norm", &attrs, in, IN_COUNT, NULL);
}

static att_shape stats_shape(const att_desc *x)
{
    att_shape shape = x->shape;
    shape.dims[shape.rank - 1] = 2;
    return shape;
}

static att_status layer_norm_infer(att_infer *infer)
{
    const att_layer_norm_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, X, "x"));
    ATT_TRY(att_rule_require_vector(infer, GAMMA, "gamma", X));
    ATT_TRY(att_rule_require_vector(infer, BETA, "beta", X));
    ATT_TRY(att_rule_require_eps(infer, attrs->eps));
    const att_desc *x = &infer->in[X];
    att_rule_out(infer, x->dtype, ATT_SAMPLE, x->shape);
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, stats_shape(x));
}

static void layer_norm_backward(att_backward *backward)
{
    att_value in[GRAD_IN_COUNT] = {att_backward_gradient(backward, 0), att_backward_in(backward, X),
                                   att_backward_in(backward, GAMMA), att_backward_out(backward, 1), ATT_NONE};
    att_rule_add_outputs(backward, "layer_norm_grad", att_backward_attrs(backward), in, GRAD_IN_COUNT, BETA + 1);
}

#define EPS ATTRS(layer_norm, .eps = 1e-6)
#define VECTORS(c) DRAWN(ATT_SHARED, 0.3, 1, c), SHARED(c)
static const att_op_case layer_norm_cases[] = {
    {.name = "odd", ATTRS(layer_norm, .eps = 0.02), IN(SAMPLE(5, 7), VECTORS(7)), .gradient = true},
    {.name = "row", ATTRS(layer_norm, .eps = 0.02), IN(SAMPLE(9), VECTORS(9)), .gradient = true},
    {.name = "one_column", EPS, IN(SAMPLE(3, 1), VECTORS(1))},
    {.name = "zero_variance", EPS, IN(DRAWN(ATT_SAMPLE, 0, 3, 4, 33), VECTORS(33))},
    {.name = "large_mean", EPS, IN(DRAWN(ATT_SAMPLE, 1, 300, 4, 64), VECTORS(64))},
    {.name = "three_axes", EPS, IN(SAMPLE(2, 3, 17), VECTORS(17))},
    {.name = "demo", EPS, IN(SAMPLE(50, 64), VECTORS(64)), .bench = true},
    {.name = "tiny", EPS, IN(SAMPLE(197, 192), VECTORS(192)), .bench = true},
    {.name = "small", EPS, IN(SAMPLE(197, 384), VECTORS(384)), .bench = true},
};

const att_op att_op_layer_norm = {
    .name = "layer_norm",
    .attrs_size = sizeof(att_layer_norm_attrs),
    .help = "y = (x - mean) / sqrt(var + eps) gamma + beta, over the last axis",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_out = 1,
    .infer = layer_norm_infer,
    .backward = layer_norm_backward,
    .flops_per_in = 8, /* Mean: 1 operation per element; variance: 3; normalise, scale, shift: 4. */
    ATT_CASES(layer_norm_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, GRAD_IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, GRAD_DY, "dy"));
    ATT_TRY(att_rule_require_like(infer, GRAD_X, "x", ATT_SAMPLE, GRAD_DY));
    ATT_TRY(att_rule_require_vector(infer, GRAD_GAMMA, "gamma", GRAD_X));
    ATT_TRY(att_rule_require(infer, GRAD_STATS, "stats", ATT_SAMPLE));
    const att_desc *x = &infer->in[GRAD_X], *stats = &infer->in[GRAD_STATS];
    if (!att_shape_equal(stats->shape, stats_shape(x)))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "stats %s must hold two numbers for each row of x %s",
                             ATT_SHOWN(stats), ATT_SHOWN(x));
    if (att_desc_present(&infer->in[GRAD_ADDEND]))
        ATT_TRY(att_rule_require_like(infer, GRAD_ADDEND, "addend", ATT_SAMPLE, GRAD_X));
    att_shape vector = att_shape_of(att_rule_columns(x));
    att_rule_out(infer, x->dtype, ATT_SAMPLE, x->shape);
    att_rule_out(infer, x->dtype, ATT_SUMMED, vector);
    return att_rule_out(infer, x->dtype, ATT_SUMMED, vector);
}

static bool grad_absorb(att_node *producer, const att_node *consumer)
{
    return att_rule_absorb_added(producer, consumer, GRAD_ADDEND);
}

/* Statistics are drawn independently of x; the formula holds for any values. */
#define GRAD_IN(n, c) SAMPLE(n, c), SAMPLE(n, c), DRAWN(ATT_SHARED, 0.3, 1, c), DRAWN(ATT_SAMPLE, 0.2, 0.8, n, 2)
static const att_op_case grad_cases[] = {
    {.name = "odd", EPS, IN(GRAD_IN(5, 7), ABSENT)},
    {.name = "one_column", EPS, IN(GRAD_IN(3, 1), SAMPLE(3, 1))},
    {.name = "addend", EPS, IN(GRAD_IN(5, 33), SAMPLE(5, 33))},
    {.name = "row", EPS, IN(SAMPLE(9), SAMPLE(9), SHARED(9), SAMPLE(2), ABSENT)},
    {.name = "demo", EPS, IN(GRAD_IN(50, 64), SAMPLE(50, 64)), .bench = true},
    {.name = "tiny", EPS, IN(GRAD_IN(197, 192), SAMPLE(197, 192)), .bench = true},
    {.name = "small", EPS, IN(GRAD_IN(197, 384), SAMPLE(197, 384)), .bench = true},
};

const att_op att_op_layer_norm_grad = {
    .name = "layer_norm_grad",
    .attrs_size = sizeof(att_layer_norm_attrs),
    .help = "dx = rstd (g - mean(g) - n mean(g n)) + addend, g = dy gamma, n = (x - mean) rstd; dgamma, dbeta",
    .autocast_in = 1,
    .infer = grad_infer,
    .flops_per_in = 15, /* Two sums of products: 7 operations per element; dx: 5; dgamma and dbeta: 3. */
    .absorb = grad_absorb,
    ATT_CASES(grad_cases),
};
