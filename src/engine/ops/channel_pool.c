#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_channel_pool(att_graph *graph, att_value x)
{
    return att_emit(graph, "channel_pool", NULL, &x, 1, NULL);
}

static att_shape pool_shape(const att_desc *x)
{
    att_shape shape = x->shape;
    shape.dims[shape.rank - 1] = 2;
    return shape;
}

static att_status pool_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rows(infer, 0, "x"));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, pool_shape(&infer->in[0]));
}

#define MAP(...) IN(SAMPLE(__VA_ARGS__))
static const att_op_case pool_cases[] = {
    {.name = "odd", MAP(3, 5, 7), .gradient = true},
    {.name = "row", MAP(33), .gradient = true},
    {.name = "one_channel", MAP(3, 5, 1)},
    {.name = "negative", IN(DRAWN(ATT_SAMPLE, 1, -100, 9, 33))},
    {.name = "cifar_64", MAP(32, 32, 64), .bench = true},
    {.name = "resnet_256", MAP(56, 56, 256), .bench = true},
};

const att_op att_op_channel_pool = {
    .name = "channel_pool",
    .help = "mean and maximum of each row over channels",
    .autocast_in = 1,
    .infer = pool_infer,
    .backward = att_rule_backward_xy,
    .flops_per_in = 2,
    ATT_CASES(pool_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 3));
    ATT_TRY(att_rule_require(infer, 0, "dy", ATT_SAMPLE));
    ATT_TRY(att_rule_require_rows(infer, 1, "x"));
    ATT_TRY(att_rule_require_shape(infer, 0, "dy", ATT_SAMPLE, pool_shape(&infer->in[1])));
    ATT_TRY(att_rule_require_shape(infer, 2, "y", ATT_SAMPLE, pool_shape(&infer->in[1])));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SAMPLE, infer->in[1].shape);
}

/* All elements are equal: the first channel receives the gradient of the maximum. */
#define EQUAL(n, c) IN(SAMPLE(n, 2), DRAWN(ATT_SAMPLE, 0, 1, n, c), DRAWN(ATT_SAMPLE, 0, 1, n, 2))
static const att_op_case grad_cases[] = {
    {.name = "equal", EQUAL(5, 7)},
    {.name = "one_channel", EQUAL(5, 1)},
    {.name = "no_maximum", IN(SAMPLE(9, 2), SAMPLE(9, 33), SAMPLE(9, 2))},
    {.name = "cifar_64", EQUAL(1024, 64), .bench = true},
};

const att_op att_op_channel_pool_grad = {
    .name = "channel_pool_grad",
    .help = "dx = dmean / C, plus dmax at the first channel of each row whose x is the maximum",
    .autocast_in = 1u << 1,
    .autocast_out = 1,
    .infer = grad_infer,
    ATT_CASES(grad_cases),
};
