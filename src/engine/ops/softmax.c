#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_softmax(att_graph *graph, att_value x)
{
    return att_emit(graph, "softmax", NULL, &x, 1, NULL);
}

static att_status softmax_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rows(infer, 0, "x"));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
}

static const att_op_case softmax_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "row", IN(SAMPLE(9)), .gradient = true},
    {.name = "one_column", IN(SAMPLE(3, 1))},
    {.name = "three_axes", IN(SAMPLE(2, 3, 33))},
    {.name = "negative", IN(DRAWN(ATT_SAMPLE, 1, -1000, 4, 19))},
    {.name = "large_values", IN(DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "swin_tiny", IN(SAMPLE(64, 3, 49, 49)), .bench = true},
    {.name = "tiny", IN(SAMPLE(3, 197, 197)), .bench = true},
};

const att_op att_op_softmax = {
    .name = "softmax",
    .help = "y = exp(x - max(x)) / sum(exp(x - max(x))), over the last axis",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = softmax_infer,
    .backward = att_rule_backward_y,
    .flops_per_out = 12, /* Maximum: 1 operation per element; difference, exponential, sum: 10; division: 1. */
    ATT_CASES(softmax_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rows(infer, 0, "dy"));
    ATT_TRY(att_rule_require_like(infer, 1, "y", ATT_SAMPLE, 0));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
}

/* y is drawn near 1 / C without summing to 1; the formula holds for any values. */
#define GRAD_IN(share, ...) SAMPLE(__VA_ARGS__), DRAWN(ATT_SAMPLE, (share) / 2, share, __VA_ARGS__)
static const att_op_case grad_cases[] = {
    {.name = "odd", IN(GRAD_IN(0.14, 5, 7))},
    {.name = "row", IN(GRAD_IN(0.1, 9))},
    {.name = "one_column", IN(GRAD_IN(1, 3, 1))},
    {.name = "three_axes", IN(GRAD_IN(0.03, 2, 3, 33))},
    {.name = "swin_tiny", IN(GRAD_IN(0.02, 64, 3, 49, 49)), .bench = true},
    {.name = "tiny", IN(GRAD_IN(0.005, 3, 197, 197)), .bench = true},
};

const att_op att_op_softmax_grad = {
    .name = "softmax_grad",
    .help = "dx = y (dy - sum(dy y)), over the last axis",
    .autocast_in = 3,
    .autocast_out = 1,
    .infer = grad_infer,
    .flops_per_out = 4,
    ATT_CASES(grad_cases),
};
