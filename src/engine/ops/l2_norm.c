#include <attscope/ops.h>

#include <math.h>

#include "engine/ops/cases.h"
#include "engine/ops/l2_norm.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { GRAD_DY, GRAD_X, GRAD_NORM, GRAD_IN_COUNT };

att_value att_l2_norm(att_graph *graph, att_value x, double eps)
{
    att_l2_norm_attrs attrs = {.eps = eps};
    return att_emit(graph, "l2_norm", &attrs, &x, 1, NULL);
}

static att_status l2_norm_infer(att_infer *infer)
{
    const att_l2_norm_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rows(infer, 0, "x"));
    ATT_TRY(att_rule_require_eps(infer, attrs->eps));
    att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_rule_reduced_shape(&infer->in[0]));
}

static void l2_norm_backward(att_backward *backward)
{
    att_value in[GRAD_IN_COUNT] = {att_backward_gradient(backward, 0), att_backward_in(backward, 0),
                                   att_backward_out(backward, 1)};
    att_rule_add_node(backward, 0, "l2_norm_grad", att_backward_attrs(backward), in, GRAD_IN_COUNT);
}

#define EPS ATTRS(l2_norm, .eps = 1e-12)
#define CLAMPED ATTRS(l2_norm, .eps = 100)
static const att_op_case l2_norm_cases[] = {
    {.name = "odd", EPS, IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "clamped", CLAMPED, IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "row", EPS, IN(SAMPLE(9)), .gradient = true},
    {.name = "one_column", EPS, IN(SAMPLE(3, 1))},
    {.name = "zeros", EPS, IN(DRAWN(ATT_SAMPLE, 0, 0, 4, 33))},
    {.name = "large_values", EPS, IN(DRAWN(ATT_SAMPLE, 1e6, 0, 4, 65))},
    {.name = "three_axes", EPS, IN(SAMPLE(2, 3, 17))},
    {.name = "swinv2_tiny", EPS, IN(SAMPLE(64, 3, 64, 32)), .bench = true},
    {.name = "tiny", EPS, IN(SAMPLE(197, 192)), .bench = true},
};

const att_op att_op_l2_norm = {
    .name = "l2_norm",
    .attrs_size = sizeof(att_l2_norm_attrs),
    .help = "y = x / max(|x|, eps), |x| Euclidean, over the last axis",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_out = 1,
    .infer = l2_norm_infer,
    .backward = l2_norm_backward,
    .flops_per_in = 3, /* Sum of squares: 2 operations per element; scaling: 1. */
    ATT_CASES(l2_norm_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, GRAD_IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, GRAD_DY, "dy"));
    ATT_TRY(att_rule_require_like(infer, GRAD_X, "x", ATT_SAMPLE, GRAD_DY));
    const att_desc *x = &infer->in[GRAD_X];
    ATT_TRY(att_rule_require_shape(infer, GRAD_NORM, "norm", ATT_SAMPLE, att_rule_reduced_shape(x)));
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, x->shape);
}

/* The norm is drawn independently of x; the formula holds for any values. */
#define GRAD_IN(n, c) SAMPLE(n, c), SAMPLE(n, c), DRAWN(ATT_SAMPLE, 0.2, 3, n, 1)
static const att_op_case grad_cases[] = {
    {.name = "odd", EPS, IN(GRAD_IN(5, 7))},
    {.name = "clamped", CLAMPED, IN(GRAD_IN(5, 7))},
    {.name = "some_clamped", ATTRS(l2_norm, .eps = 3), IN(GRAD_IN(9, 33))},
    {.name = "one_column", EPS, IN(GRAD_IN(3, 1))},
    {.name = "row", EPS, IN(SAMPLE(9), SAMPLE(9), DRAWN(ATT_SAMPLE, 0.2, 3, 1))},
    {.name = "swinv2_tiny",
     EPS,
     IN(SAMPLE(64, 3, 64, 32), SAMPLE(64, 3, 64, 32), DRAWN(ATT_SAMPLE, 0.2, 5, 64, 3, 64, 1)),
     .bench = true},
    {.name = "tiny", EPS, IN(GRAD_IN(197, 192)), .bench = true},
};

const att_op att_op_l2_norm_grad = {
    .name = "l2_norm_grad",
    .attrs_size = sizeof(att_l2_norm_attrs),
    .help = "dx = (dy - n sum(dy n)) / |x|, n = x / |x|, where |x| > eps; else dx = dy / eps",
    .autocast_in = 1,
    .infer = grad_infer,
    .flops_per_in = 7, /* Sum of products: 3 operations per element; dx: 4. */
    ATT_CASES(grad_cases),
};
