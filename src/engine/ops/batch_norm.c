#include <attscope/ops.h>

#include <math.h>

#include "engine/ops/activation.h"
#include "engine/ops/batch_moments.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X, GAMMA, BETA, MEAN, VARIANCE, IN_COUNT };
enum { GRAD_DY, GRAD_X, GRAD_GAMMA, GRAD_MEAN, GRAD_VARIANCE, GRAD_IN_COUNT };

att_value att_batch_norm(att_graph *graph, att_value x, att_value gamma, att_value beta, att_value mean,
                         att_value variance, const att_batch_norm_options *options)
{
    att_batch_norm_options given = options ? *options : (att_batch_norm_options){0};
    att_batch_norm_attrs attrs = {.eps = given.eps == 0 ? 1e-5 : given.eps,
                                  .momentum = given.momentum == 0 ? 0.1 : given.momentum,
                                  .frozen = given.frozen};
    att_value in[IN_COUNT] = {x, gamma, beta, mean, variance};
    return att_emit(graph, "batch_norm", &attrs, in, IN_COUNT, NULL);
}

static att_status check_attrs(const att_infer *infer)
{
    const att_batch_norm_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_eps(infer, attrs->eps));
    if (!(attrs->momentum >= 0 && attrs->momentum <= 1))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "momentum is %g, must be within 0 and 1", attrs->momentum);
    return ATT_OK;
}

static att_status batch_norm_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, X, "x"));
    ATT_TRY(att_rule_require_vector(infer, GAMMA, "gamma", X));
    ATT_TRY(att_rule_require_vector(infer, BETA, "beta", X));
    ATT_TRY(att_rule_require_vector(infer, MEAN, "mean", X));
    ATT_TRY(att_rule_require_vector(infer, VARIANCE, "variance", X));
    ATT_TRY(check_attrs(infer));
    return att_rule_out(infer, infer->in[X].dtype, ATT_SAMPLE, infer->in[X].shape);
}

/* For the form with running statistics (inference, or frozen); otherwise training plans replace the node. Runs before
 * an activation is absorbed. */
static void batch_norm_backward(att_backward *backward)
{
    const bool reads_x = att_backward_needs_gradient(backward, GAMMA) || att_backward_needs_gradient(backward, BETA);
    att_value in[GRAD_IN_COUNT] = {att_backward_gradient(backward, 0),
                                   reads_x ? att_backward_in(backward, X) : ATT_NONE, att_backward_in(backward, GAMMA),
                                   att_backward_in(backward, MEAN), att_backward_in(backward, VARIANCE)};
    att_rule_add_outputs(backward, "batch_norm_grad", att_backward_attrs(backward), in, GRAD_IN_COUNT, BETA + 1);
}

void att_batch_norm_follow(att_graph *graph, const att_node *node, att_value stats, int64_t rows)
{
    att_moments_attrs attrs = {.rows = rows, .momentum = ATT_ATTRS(node, batch_norm)->momentum};
    att_value in[] = {stats, node->in[MEAN], node->in[VARIANCE]}, out[2];
    att_emit(graph, "running_stats", &attrs, in, 3, out);
    att_graph_assign(graph, node->in[MEAN], out[0]);
    att_graph_assign(graph, node->in[VARIANCE], out[1]);
}

/* Computes moments per sample, merges them over the batch, and updates the running statistics. */
static att_value batch_norm_in_training(att_graph *graph, const att_node *original)
{
    att_node node = *original; /* a copy, because emitting may move nodes */
    if (ATT_ATTRS(&node, batch_norm)->frozen)
        return ATT_NONE;
    att_shape shape = att_value_shape(graph, node.in[X]);
    int64_t rows = att_shape_count(shape) / shape.dims[shape.rank - 1];
    att_value moments = att_emit(graph, "channel_moments", NULL, &node.in[X], 1, NULL);
    att_moments_attrs merged = {.rows = rows};
    att_value stats = att_emit(graph, "merge_moments", &merged, &moments, 1, NULL);
    att_batch_norm_follow(graph, &node, stats, rows);
    att_value in[] = {node.in[X], stats, node.in[GAMMA], node.in[BETA]};
    return att_emit(graph, "normalize", node.attrs, in, 4, NULL);
}

static bool batch_norm_absorb(att_node *producer, const att_node *consumer)
{
    return att_rule_absorb_relu(&((att_batch_norm_attrs *)producer->attrs)->activation, consumer);
}

#define PLAIN ATTRS(batch_norm, 1e-5, 0.1, true, ATT_ACT_NONE)
#define RELU ATTRS(batch_norm, 1e-5, 0.1, true, ATT_ACT_RELU)
#define STATS(c) DRAWN(ATT_SHARED, 0.2, 0.3, c), DRAWN(ATT_SHARED, 0.1, 1.1, c)
#define VECTORS(c) DRAWN(ATT_SHARED, 0.3, 1, c), SHARED(c), STATS(c)
static const att_op_case batch_norm_cases[] = {
    {.name = "odd", PLAIN, IN(SAMPLE(3, 5, 7), VECTORS(7)), .gradient = true},
    {.name = "row", PLAIN, IN(SAMPLE(9), VECTORS(9)), .gradient = true},
    {.name = "one_channel", RELU, IN(SAMPLE(3, 5, 1), VECTORS(1))},
    {.name = "many_rows", RELU, IN(SAMPLE(33, 31, 24), VECTORS(24))},
    {.name = "large_mean",
     PLAIN,
     IN(DRAWN(ATT_SAMPLE, 1, 1e4, 6, 6, 33), DRAWN(ATT_SHARED, 0.3, 1, 33), SHARED(33), DRAWN(ATT_SHARED, 1, 1e4, 33),
        DRAWN(ATT_SHARED, 0.1, 1, 33))},
    {.name = "no_variance",
     PLAIN,
     IN(SAMPLE(6, 6, 16), SHARED(16), SHARED(16), SHARED(16), DRAWN(ATT_SHARED, 0, 0, 16))},
    {.name = "cifar_16", RELU, IN(SAMPLE(32, 32, 16), VECTORS(16)), .bench = true},
    {.name = "cifar_64", RELU, IN(SAMPLE(32, 32, 64), VECTORS(64)), .bench = true},
    {.name = "resnet_256", PLAIN, IN(SAMPLE(56, 56, 256), VECTORS(256)), .bench = true},
};

const att_op att_op_batch_norm = {
    .name = "batch_norm",
    .attrs_size = sizeof(att_batch_norm_attrs),
    .help = "y = act((x - mean) / sqrt(variance + eps) gamma + beta) per channel",
    .flags = ATT_OP_RECOMPUTE | ATT_OP_NEEDS_SAMPLES,
    .autocast_in = 1u << X,
    .autocast_out = 1,
    .infer = batch_norm_infer,
    .backward = batch_norm_backward,
    .in_training = batch_norm_in_training,
    .flops_per_in = 2, /* One factor and one shift per channel. */
    .absorb = batch_norm_absorb,
    ATT_CASES(batch_norm_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, GRAD_IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, GRAD_DY, "dy"));
    if (att_desc_present(&infer->in[GRAD_X]))
        ATT_TRY(att_rule_require_like(infer, GRAD_X, "x", ATT_SAMPLE, GRAD_DY));
    ATT_TRY(att_rule_require_vector(infer, GRAD_GAMMA, "gamma", GRAD_DY));
    ATT_TRY(att_rule_require_vector(infer, GRAD_MEAN, "mean", GRAD_DY));
    ATT_TRY(att_rule_require_vector(infer, GRAD_VARIANCE, "variance", GRAD_DY));
    ATT_TRY(check_attrs(infer));
    const att_desc *dy = &infer->in[GRAD_DY];
    att_shape vector = att_shape_of(att_rule_columns(dy));
    att_rule_out(infer, dy->dtype, ATT_SAMPLE, dy->shape);
    att_rule_out(infer, dy->dtype, ATT_SUMMED, vector);
    return att_rule_out(infer, dy->dtype, ATT_SUMMED, vector);
}

#define GRAD_VECTORS(c) DRAWN(ATT_SHARED, 0.3, 1, c), STATS(c)
static const att_op_case grad_cases[] = {
    {.name = "odd", PLAIN, IN(SAMPLE(3, 5, 7), SAMPLE(3, 5, 7), GRAD_VECTORS(7))},
    {.name = "row", PLAIN, IN(SAMPLE(9), SAMPLE(9), GRAD_VECTORS(9))},
    {.name = "many_rows", PLAIN, IN(SAMPLE(33, 31, 24), SAMPLE(33, 31, 24), GRAD_VECTORS(24))},
    {.name = "fixed", PLAIN, IN(SAMPLE(5, 7, 19), ABSENT, GRAD_VECTORS(19))},
    {.name = "cifar_64", PLAIN, IN(SAMPLE(32, 32, 64), SAMPLE(32, 32, 64), GRAD_VECTORS(64)), .bench = true},
};

const att_op att_op_batch_norm_grad = {
    .name = "batch_norm_grad",
    .attrs_size = sizeof(att_batch_norm_attrs),
    .help =
        "dx = dy gamma r, r = 1 / sqrt(variance + eps); dgamma, dbeta = the sums of dy (x - mean) r and of dy, "
        "which are not computed without x",
    .autocast_in = 1u << GRAD_DY | 1u << GRAD_X,
    .autocast_out = 1,
    .infer = grad_infer,
    .flops_per_in = 5, /* dx: 1 operation per element; dgamma: 3; dbeta: 1. */
    ATT_CASES(grad_cases),
};
