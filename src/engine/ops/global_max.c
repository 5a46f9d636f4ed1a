#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_global_max(att_graph *graph, att_value x)
{
    return att_emit(graph, "global_max", NULL, &x, 1, NULL);
}

static att_status max_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rows(infer, 0, "x"));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(att_rule_columns(&infer->in[0])));
}

#define MAP(...) IN(SAMPLE(__VA_ARGS__))
static const att_op_case max_cases[] = {
    {.name = "odd", MAP(3, 5, 7), .gradient = true},
    {.name = "row", MAP(9), .gradient = true},
    {.name = "one_channel", MAP(19, 23, 1)},
    {.name = "negative", IN(DRAWN(ATT_SAMPLE, 1, -100, 9, 33))},
    {.name = "cifar_64", MAP(32, 32, 64), .bench = true},
    {.name = "resnet_2048", MAP(7, 7, 2048), .bench = true},
};

const att_op att_op_global_max = {
    .name = "global_max",
    .help = "maximum of each channel over rows",
    .autocast_in = 1,
    .infer = max_infer,
    .backward = att_rule_backward_xy,
    .flops_per_in = 1,
    ATT_CASES(max_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 3));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 1));
    ATT_TRY(att_rule_require_rows(infer, 1, "x"));
    att_shape vector = att_shape_of(att_rule_columns(&infer->in[1]));
    ATT_TRY(att_rule_require_shape(infer, 0, "dy", ATT_SAMPLE, vector));
    ATT_TRY(att_rule_require_shape(infer, 2, "y", ATT_SAMPLE, vector));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SAMPLE, infer->in[1].shape);
}

/* All elements are equal: the first row receives the whole gradient. */
#define EQUAL(c, ...) IN(SAMPLE(c), DRAWN(ATT_SAMPLE, 0, 1, __VA_ARGS__), DRAWN(ATT_SAMPLE, 0, 1, c))
static const att_op_case grad_cases[] = {
    {.name = "equal", EQUAL(7, 3, 5, 7)},
    {.name = "row", EQUAL(33, 33)},
    {.name = "no_maximum", IN(SAMPLE(24), SAMPLE(31, 24), SAMPLE(24))},
    {.name = "cifar_64", EQUAL(64, 32, 32, 64), .bench = true},
};

const att_op att_op_global_max_grad = {
    .name = "global_max_grad",
    .help = "dx = dy at each channel's first row whose x is y, else 0",
    .autocast_in = 1u << 1,
    .autocast_out = 1,
    .infer = grad_infer,
    ATT_CASES(grad_cases),
};
