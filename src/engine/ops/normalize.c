#include <attscope/ops.h>

#include "engine/ops/activation.h"
#include "engine/ops/batch_moments.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

/* The training form of batch norm; its statistics are a value of the batch. */

enum { X, STATS, GAMMA, BETA, IN_COUNT };
enum { GRAD_DY, GRAD_X, GRAD_STATS, GRAD_GAMMA, GRAD_BETA, SUMS_IN_COUNT };
enum { SUM_DY, SUM_DY_NORMAL };
enum { GRAD_MEAN_DY = SUMS_IN_COUNT, GRAD_MEAN_DY_NORMAL, GRAD_FACTOR, GRAD_POOLED, GRAD_IN_COUNT };

static att_shape stats_shape(const att_desc *x)
{
    return att_shape_of(2, att_rule_columns(x));
}

static att_status normalize_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, X, "x"));
    ATT_TRY(att_rule_require_shape(infer, STATS, "stats", ATT_BATCH, stats_shape(&infer->in[X])));
    ATT_TRY(att_rule_require_vector(infer, GAMMA, "gamma", X));
    ATT_TRY(att_rule_require_vector(infer, BETA, "beta", X));
    return att_rule_out(infer, infer->in[X].dtype, ATT_SAMPLE, infer->in[X].shape);
}

static void add_x_gradient(att_backward *backward, const att_value *in, const att_value *sums)
{
    att_graph *graph = att_backward_graph(backward);
    att_desc x = att_backward_in_desc(backward, X);
    const att_moments_attrs rows = {.rows = att_rule_rows(&x)};
    att_value grad[GRAD_IN_COUNT] = {in[GRAD_DY],
                                     in[GRAD_X],
                                     in[GRAD_STATS],
                                     in[GRAD_GAMMA],
                                     in[GRAD_BETA],
                                     att_emit(graph, "batch_mean", &rows, &sums[SUM_DY], 1, NULL),
                                     att_emit(graph, "batch_mean", &rows, &sums[SUM_DY_NORMAL], 1, NULL),
                                     ATT_NONE,
                                     ATT_NONE};
    att_rule_add_node(backward, X, "normalize_grad", att_backward_attrs(backward), grad, GRAD_IN_COUNT);
}

/* The gradient of x includes the path through the statistics, so these receive no gradient. */
static void normalize_backward(att_backward *backward)
{
    att_value in[SUMS_IN_COUNT] = {att_backward_gradient(backward, 0), att_backward_in(backward, X),
                                   att_backward_in(backward, STATS), att_backward_in(backward, GAMMA),
                                   att_backward_in(backward, BETA)};
    att_value sums[2];
    att_emit(att_backward_graph(backward), "normalize_sums", att_backward_attrs(backward), in, SUMS_IN_COUNT, sums);
    if (att_backward_needs_gradient(backward, GAMMA))
        att_rule_add_sum(backward, GAMMA, sums[SUM_DY_NORMAL], 1);
    if (att_backward_needs_gradient(backward, BETA))
        att_rule_add_sum(backward, BETA, sums[SUM_DY], 1);
    if (att_backward_needs_gradient(backward, X))
        add_x_gradient(backward, in, sums);
}

static bool normalize_absorb(att_node *producer, const att_node *consumer)
{
    return att_rule_absorb_relu(&((att_batch_norm_attrs *)producer->attrs)->activation, consumer);
}

#define PLAIN ATTRS(batch_norm, 1e-5, 0.1, false, ATT_ACT_NONE)
#define RELU ATTRS(batch_norm, 1e-5, 0.1, false, ATT_ACT_RELU)
#define BATCH_STATS(c) DRAWN(ATT_BATCH, 0.1, 1, 2, c)
#define VECTORS(c) BATCH_STATS(c), DRAWN(ATT_SHARED, 0.3, 1, c), SHARED(c)
#define OF(x, c) IN(x, VECTORS(c))
static const att_op_case normalize_cases[] = {
    {.name = "odd", PLAIN, OF(SAMPLE(3, 5, 7), 7)},
    {.name = "row", RELU, OF(SAMPLE(9), 9)},
    {.name = "one_channel", PLAIN, OF(SAMPLE(3, 5, 1), 1)},
    {.name = "many_rows", RELU, OF(SAMPLE(33, 31, 24), 24)},
    {.name = "large_values", PLAIN, OF(DRAWN(ATT_SAMPLE, 1, 1e4, 4, 5, 33), 33)},
    {.name = "cifar_16", RELU, OF(SAMPLE(32, 32, 16), 16), .bench = true},
    {.name = "cifar_64", RELU, OF(SAMPLE(32, 32, 64), 64), .bench = true},
    {.name = "middle_128", RELU, OF(SAMPLE(16, 16, 128), 128), .bench = true},
    {.name = "cifar_256", RELU, OF(SAMPLE(8, 8, 256), 256), .bench = true},
    {.name = "resnet_256", RELU, OF(SAMPLE(56, 56, 256), 256), .bench = true},
    {.name = "resnet_2048", RELU, OF(SAMPLE(7, 7, 2048), 2048), .bench = true},
};

const att_op att_op_normalize = {
    .name = "normalize",
    .attrs_size = sizeof(att_batch_norm_attrs),
    .help = "y = act((x - mean) / sqrt(variance + eps) gamma + beta), with the batch's statistics",
    .flags = ATT_OP_RECOMPUTE | ATT_OP_ABSORBS_FIRST,
    .autocast_in = 1u << X,
    .autocast_out = 1,
    .infer = normalize_infer,
    .backward = normalize_backward,
    .flops_per_in = 2,
    .absorb = normalize_absorb,
    ATT_CASES(normalize_cases),
};

static att_status require_gradient(const att_infer *infer, int count)
{
    ATT_TRY(att_rule_count(infer, count));
    ATT_TRY(att_rule_require_rows(infer, GRAD_DY, "dy"));
    ATT_TRY(att_rule_require_like(infer, GRAD_X, "x", ATT_SAMPLE, GRAD_DY));
    ATT_TRY(att_rule_require_shape(infer, GRAD_STATS, "stats", ATT_BATCH, stats_shape(&infer->in[GRAD_X])));
    ATT_TRY(att_rule_require_vector(infer, GRAD_GAMMA, "gamma", GRAD_X));
    return att_rule_require_vector(infer, GRAD_BETA, "beta", GRAD_X);
}

static att_status sums_infer(att_infer *infer)
{
    ATT_TRY(require_gradient(infer, SUMS_IN_COUNT));
    att_shape vector = att_shape_of(att_rule_columns(&infer->in[GRAD_X]));
    att_rule_out(infer, infer->in[GRAD_X].dtype, ATT_SAMPLE, vector);
    return att_rule_out(infer, infer->in[GRAD_X].dtype, ATT_SAMPLE, vector);
}

#define SUMS(c, ...) IN(SAMPLE(__VA_ARGS__), SAMPLE(__VA_ARGS__), VECTORS(c))
static const att_op_case sums_cases[] = {
    {.name = "odd", PLAIN, SUMS(7, 3, 5, 7)},
    {.name = "odd_relu", RELU, SUMS(7, 3, 5, 7)},
    {.name = "row", PLAIN, SUMS(9, 9)},
    {.name = "one_channel", RELU, SUMS(1, 19, 23, 1)},
    {.name = "many_rows", RELU, SUMS(24, 33, 31, 24)},
    {.name = "cifar_16", RELU, SUMS(16, 32, 32, 16), .bench = true},
    {.name = "cifar_64", PLAIN, SUMS(64, 32, 32, 64), .bench = true},
    {.name = "middle_128", RELU, SUMS(128, 16, 16, 128), .bench = true},
    {.name = "cifar_256", PLAIN, SUMS(256, 8, 8, 256), .bench = true},
    {.name = "resnet_256", PLAIN, SUMS(256, 56, 56, 256), .bench = true},
    {.name = "resnet_2048", PLAIN, SUMS(2048, 7, 7, 2048), .bench = true},
};

const att_op att_op_normalize_sums = {
    .name = "normalize_sums",
    .attrs_size = sizeof(att_batch_norm_attrs),
    .help = "sums of dy and dy n over the rows of a sample, n = (x - mean) / sqrt(variance + eps); dy masked by act",
    .autocast_in = 1u << GRAD_DY | 1u << GRAD_X,
    .infer = sums_infer,
    .flops_per_in = 4,
    ATT_CASES(sums_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(require_gradient(infer, GRAD_IN_COUNT));
    const att_desc *x = &infer->in[GRAD_X];
    att_shape vector = att_shape_of(att_rule_columns(x));
    ATT_TRY(att_rule_require_shape(infer, GRAD_MEAN_DY, "the mean of dy", ATT_BATCH, vector));
    ATT_TRY(att_rule_require_shape(infer, GRAD_MEAN_DY_NORMAL, "the mean of dy n", ATT_BATCH, vector));
    if (att_desc_present(&infer->in[GRAD_FACTOR]))
        ATT_TRY(att_rule_require_shape(infer, GRAD_FACTOR, "factor", ATT_SAMPLE, vector));
    if (att_desc_present(&infer->in[GRAD_POOLED]))
        ATT_TRY(att_rule_require_shape(infer, GRAD_POOLED, "pooled", ATT_SAMPLE, vector));
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, x->shape);
}

#define MEANS(c) DRAWN(ATT_BATCH, 1, 0, c), DRAWN(ATT_BATCH, 1, 0, c)
#define GRAD_OF(c, factor, pooled, ...) \
    IN(SAMPLE(__VA_ARGS__), SAMPLE(__VA_ARGS__), VECTORS(c), MEANS(c), factor, pooled)
#define GRAD(c, ...) GRAD_OF(c, ABSENT, ABSENT, __VA_ARGS__)
static const att_op_case grad_cases[] = {
    {.name = "odd", PLAIN, GRAD(7, 3, 5, 7)},
    {.name = "odd_relu", RELU, GRAD(7, 3, 5, 7)},
    {.name = "row", PLAIN, GRAD(9, 9)},
    {.name = "one_channel", RELU, GRAD(1, 3, 5, 1)},
    {.name = "many_rows", RELU, GRAD(24, 33, 31, 24)},
    {.name = "gated", PLAIN, GRAD_OF(7, SAMPLE(7), ABSENT, 3, 5, 7)},
    {.name = "pooled", PLAIN, GRAD_OF(33, ABSENT, SAMPLE(33), 3, 5, 33)},
    {.name = "gated_pooled_relu", RELU, GRAD_OF(24, SAMPLE(24), SAMPLE(24), 33, 31, 24)},
    {.name = "cifar_16", RELU, GRAD(16, 32, 32, 16), .bench = true},
    {.name = "cifar_64", PLAIN, GRAD(64, 32, 32, 64), .bench = true},
    {.name = "middle_128", RELU, GRAD(128, 16, 16, 128), .bench = true},
    {.name = "cifar_256", PLAIN, GRAD(256, 8, 8, 256), .bench = true},
    {.name = "resnet_256", PLAIN, GRAD(256, 56, 56, 256), .bench = true},
    {.name = "resnet_2048", PLAIN, GRAD(2048, 7, 7, 2048), .bench = true},
};

const att_op att_op_normalize_grad = {
    .name = "normalize_grad",
    .attrs_size = sizeof(att_batch_norm_attrs),
    .help =
        "dx = gamma / sqrt(variance + eps) (dy - mean(dy) - n mean(dy n)), n the normal x, means over the batch; dy "
        "masked by act (times a sample's factor for each channel + pooled / rows)",
    .autocast_in = 1u << GRAD_DY | 1u << GRAD_X,
    .autocast_out = 1,
    .infer = grad_infer,
    .flops_per_in = 5,
    ATT_CASES(grad_cases),
};
