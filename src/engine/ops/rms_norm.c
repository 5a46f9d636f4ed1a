#include <attscope/ops.h>

#include <math.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rms_norm.h"
#include "engine/ops/rule.h"

enum { X, GAMMA, IN_COUNT };
enum { GRAD_DY, GRAD_X, GRAD_GAMMA, GRAD_RSTD, GRAD_IN_COUNT };

att_value att_rms_norm(att_graph *graph, att_value x, att_value gamma, double eps)
{
    att_rms_norm_attrs attrs = {.eps = eps};
    att_value in[IN_COUNT] = {x, gamma};
    return att_emit(graph, "rms_norm", &attrs, in, IN_COUNT, NULL);
}

static att_status rms_norm_infer(att_infer *infer)
{
    const att_rms_norm_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, X, "x"));
    ATT_TRY(att_rule_require_vector(infer, GAMMA, "gamma", X));
    ATT_TRY(att_rule_require_eps(infer, attrs->eps));
    const att_desc *x = &infer->in[X];
    att_rule_out(infer, x->dtype, ATT_SAMPLE, x->shape);
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, att_rule_reduced_shape(x));
}

static void rms_norm_backward(att_backward *backward)
{
    att_value in[GRAD_IN_COUNT] = {att_backward_gradient(backward, 0), att_backward_in(backward, X),
                                   att_backward_in(backward, GAMMA), att_backward_out(backward, 1)};
    att_rule_add_outputs(backward, "rms_norm_grad", NULL, in, GRAD_IN_COUNT, GAMMA + 1);
}

#define EPS ATTRS(rms_norm, .eps = 1e-6)
#define VECTOR(c) DRAWN(ATT_SHARED, 0.3, 1, c)
static const att_op_case rms_norm_cases[] = {
    {.name = "odd", ATTRS(rms_norm, .eps = 0.02), IN(SAMPLE(5, 7), VECTOR(7)), .gradient = true},
    {.name = "row", ATTRS(rms_norm, .eps = 0.02), IN(SAMPLE(9), VECTOR(9)), .gradient = true},
    {.name = "one_column", EPS, IN(SAMPLE(3, 1), VECTOR(1))},
    {.name = "zeros", EPS, IN(DRAWN(ATT_SAMPLE, 0, 0, 4, 33), VECTOR(33))},
    {.name = "large_values", EPS, IN(DRAWN(ATT_SAMPLE, 1e6, 0, 4, 65), VECTOR(65))},
    {.name = "three_axes", EPS, IN(SAMPLE(2, 3, 17), VECTOR(17))},
    {.name = "swin_tiny", EPS, IN(SAMPLE(49, 96), VECTOR(96)), .bench = true},
    {.name = "tiny", EPS, IN(SAMPLE(197, 192), VECTOR(192)), .bench = true},
};

const att_op att_op_rms_norm = {
    .name = "rms_norm",
    .attrs_size = sizeof(att_rms_norm_attrs),
    .help = "y = x / sqrt(mean(x^2) + eps) gamma, over the last axis",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_out = 1,
    .infer = rms_norm_infer,
    .backward = rms_norm_backward,
    .flops_per_in = 4, /* Mean square: 2 operations per element; normalise and scale: 2. */
    ATT_CASES(rms_norm_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, GRAD_IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, GRAD_DY, "dy"));
    ATT_TRY(att_rule_require_like(infer, GRAD_X, "x", ATT_SAMPLE, GRAD_DY));
    ATT_TRY(att_rule_require_vector(infer, GRAD_GAMMA, "gamma", GRAD_X));
    const att_desc *x = &infer->in[GRAD_X];
    ATT_TRY(att_rule_require_shape(infer, GRAD_RSTD, "rstd", ATT_SAMPLE, att_rule_reduced_shape(x)));
    att_rule_out(infer, x->dtype, ATT_SAMPLE, x->shape);
    return att_rule_out(infer, x->dtype, ATT_SUMMED, att_shape_of(att_rule_columns(x)));
}

/* rstd is drawn independently of x; the formula holds for any values. */
#define GRAD_IN(n, c) SAMPLE(n, c), SAMPLE(n, c), VECTOR(c), DRAWN(ATT_SAMPLE, 0.2, 0.8, n, 1)
static const att_op_case grad_cases[] = {
    {.name = "odd", IN(GRAD_IN(5, 7))},
    {.name = "one_column", IN(GRAD_IN(3, 1))},
    {.name = "wide", IN(GRAD_IN(6, 65))},
    {.name = "row", IN(SAMPLE(9), SAMPLE(9), VECTOR(9), SAMPLE(1))},
    {.name = "swin_tiny", IN(GRAD_IN(49, 96)), .bench = true},
    {.name = "tiny", IN(GRAD_IN(197, 192)), .bench = true},
};

const att_op att_op_rms_norm_grad = {
    .name = "rms_norm_grad",
    .help = "dx = rstd (g - n mean(g n)), g = dy gamma, n = x rstd; dgamma",
    .autocast_in = 1,
    .infer = grad_infer,
    .flops_per_in = 12, /* Sum of products: 4 operations per element; dx: 5; dgamma: 3. */
    ATT_CASES(grad_cases),
};
