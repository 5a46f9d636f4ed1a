#include <attscope/ops.h>

#include <string.h>

#include "base/core/random.h"
#include "engine/graph/graph.h"
#include "engine/ops/attention.h"
#include "engine/ops/cases.h"
#include "engine/ops/drop.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

static bool draws(const att_node *node)
{
    bool attends = node->op == &att_op_attention || node->op == &att_op_mix_tokens || node->op == &att_op_mix_axes;
    return attends ? ATT_ATTRS(node, attention)->drop_rate > 0 : (node->op->flags & ATT_OP_DRAWS) != 0;
}

uint64_t att_drop_next_stream(const att_graph *graph)
{
    uint64_t earlier = 0;
    for (int i = 0; i < graph->nodes.count; i++)
        earlier += draws(&graph->nodes.items[i]) && strcmp(graph->nodes.items[i].scope, graph->scope) == 0;
    return att_random_key(att_random_hash(graph->scope), earlier, 0);
}

static att_value emit_drop(att_graph *graph, const char *op, att_value x, double rate)
{
    if (rate == 0)
        return x;
    att_drop_attrs attrs = {.rate = rate, .stream = att_drop_next_stream(graph)};
    return att_emit(graph, op, &attrs, &x, 1, NULL);
}

att_value att_dropout(att_graph *graph, att_value x, double rate)
{
    return emit_drop(graph, "dropout", x, rate);
}

att_value att_channel_dropout(att_graph *graph, att_value x, double rate)
{
    return emit_drop(graph, "channel_dropout", x, rate);
}

att_value att_drop_path(att_graph *graph, att_value x, double rate)
{
    return emit_drop(graph, "drop_path", x, rate);
}

static att_status infer_drop(att_infer *infer)
{
    double rate = ((const att_drop_attrs *)infer->attrs)->rate;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "x", ATT_SAMPLE));
    if (!(rate >= 0 && rate < 1))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "rate is %g, must be in [0, 1)", rate);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
}

/* The gradient node has the same stream, hence the same mask. */
static void drop_backward(att_backward *backward, const char *op)
{
    att_rule_add_of_dy(backward, op, att_backward_attrs(backward));
}

static att_status dropout_infer(att_infer *infer)
{
    return infer_drop(infer);
}

static void dropout_backward(att_backward *backward)
{
    drop_backward(backward, "dropout");
}

#define DROP(r, s) ATTRS(drop, (r), (s))
static const att_op_case dropout_cases[] = {
    {.name = "odd", DROP(0.3, 5), IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "keeps_all", DROP(0, 1), IN(SAMPLE(5, 7))},
    {.name = "keeps_few", DROP(0.99, 2), IN(SAMPLE(9, 33))},
    {.name = "tiny", DROP(0.1, 3), IN(SAMPLE(197, 192)), .bench = true},
};

const att_op att_op_dropout = {
    .name = "dropout",
    .attrs_size = sizeof(att_drop_attrs),
    .help = "each element zero with probability rate, else x / (1 - rate)",
    .flags = ATT_OP_TRAIN_ONLY | ATT_OP_DRAWS,
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = dropout_infer,
    .backward = dropout_backward,
    ATT_CASES(dropout_cases),
};

static att_status channel_dropout_infer(att_infer *infer)
{
    ATT_TRY(infer_drop(infer));
    return att_rule_require_rows(infer, 0, "x");
}

static void channel_dropout_backward(att_backward *backward)
{
    drop_backward(backward, "channel_dropout");
}

static const att_op_case channel_dropout_cases[] = {
    {.name = "odd", DROP(0.3, 5), IN(SAMPLE(5, 2, 7)), .gradient = true},
    {.name = "keeps_all", DROP(0, 1), IN(SAMPLE(5, 7))},
    {.name = "keeps_few", DROP(0.9, 2), IN(SAMPLE(9, 33))},
    {.name = "uper", DROP(0.1, 3), IN(SAMPLE(32, 32, 192)), .bench = true},
};

const att_op att_op_channel_dropout = {
    .name = "channel_dropout",
    .attrs_size = sizeof(att_drop_attrs),
    .help = "each channel of a sample zero with probability rate, else x / (1 - rate)",
    .flags = ATT_OP_TRAIN_ONLY | ATT_OP_DRAWS | ATT_OP_NEEDS_SAMPLES,
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = channel_dropout_infer,
    .backward = channel_dropout_backward,
    ATT_CASES(channel_dropout_cases),
};

static att_status drop_path_infer(att_infer *infer)
{
    return infer_drop(infer);
}

static void drop_path_backward(att_backward *backward)
{
    drop_backward(backward, "drop_path");
}

static const att_op_case drop_path_cases[] = {
    {.name = "odd", DROP(0.5, 5), IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "keeps_all", DROP(0, 1), IN(SAMPLE(5, 7))},
    {.name = "keeps_few", DROP(0.9, 2), IN(SAMPLE(33))},
    {.name = "tiny", DROP(0.1, 3), IN(SAMPLE(197, 192)), .bench = true},
};

const att_op att_op_drop_path = {
    .name = "drop_path",
    .attrs_size = sizeof(att_drop_attrs),
    .help = "each sample zero with probability rate, else x / (1 - rate)",
    .flags = ATT_OP_TRAIN_ONLY | ATT_OP_DRAWS | ATT_OP_NEEDS_SAMPLES,
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = drop_path_infer,
    .backward = drop_path_backward,
    ATT_CASES(drop_path_cases),
};
