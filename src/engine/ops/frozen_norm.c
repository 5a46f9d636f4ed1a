#include <attscope/ops.h>

#include "engine/graph/graph.h"
#include "engine/ops/cases.h"
#include "engine/ops/frozen_norm.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X = ATT_FROZEN_X, GAMMA = ATT_FROZEN_GAMMA, STATS = ATT_FROZEN_STATS, BETA = ATT_FROZEN_BETA };
enum { IN_COUNT = ATT_FROZEN_INPUTS };
enum { NORM_GAMMA = 1, NORM_BETA = 2 }; /* inputs of a norm */

att_value att_frozen_norm(att_graph *graph, att_value x, att_value norm, bool shift)
{
    if (att_graph_status(graph) != ATT_OK)
        return ATT_NONE;
    const att_node *node = att_graph_producer(graph, norm);
    bool centred = node && node->op == &att_op_layer_norm;
    if (!node || !(centred || node->op == &att_op_rms_norm) || node->out[0] != norm)
        return att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                              "frozen_norm: its statistics must be those of a layer norm or an RMS "
                                              "norm"));
    att_value in[IN_COUNT] = {x, node->in[NORM_GAMMA], node->out[1], centred && shift ? node->in[NORM_BETA] : ATT_NONE};
    const att_frozen_norm_attrs attrs = {.centred = centred};
    return att_emit(graph, "frozen_norm", &attrs, in, IN_COUNT, NULL);
}

static att_status frozen_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, X, "x"));
    ATT_TRY(att_rule_require_vector(infer, GAMMA, "gamma", X));
    ATT_TRY(att_rule_require_rows(infer, STATS, "statistics"));
    if (att_desc_present(&infer->in[BETA]))
        ATT_TRY(att_rule_require_vector(infer, BETA, "beta", X));
    const att_desc *x = &infer->in[X], *stats = &infer->in[STATS];
    const int64_t numbers = ATT_FROZEN_NUMBERS((const att_frozen_norm_attrs *)infer->attrs);
    if (att_rule_columns(stats) != numbers || att_rule_rows(stats) != att_rule_rows(x))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "statistics %s must hold %lld numbers for each row of x %s",
                             ATT_SHOWN(stats), (long long)numbers, ATT_SHOWN(x));
    return att_rule_out(infer, x->dtype, ATT_SAMPLE, x->shape);
}

#define GAMMA_OF(c) DRAWN(ATT_SHARED, 0.3, 1, c)
#define STATS_OF(...) DRAWN(ATT_SAMPLE, 0.2, 0.8, __VA_ARGS__)
#define CENTRED ATTRS(frozen_norm, .centred = true)
static const att_op_case frozen_cases[] = {
    {.name = "layer_norm", CENTRED, IN(SAMPLE(5, 7), GAMMA_OF(7), STATS_OF(5, 2), ABSENT)},
    {.name = "layer_norm_shifted", CENTRED, IN(SAMPLE(5, 33), GAMMA_OF(33), STATS_OF(5, 2), SHARED(33))},
    {.name = "rms_norm", IN(SAMPLE(5, 17), GAMMA_OF(17), STATS_OF(5, 1), ABSENT)},
    {.name = "one_column", CENTRED, IN(SAMPLE(3, 1), GAMMA_OF(1), STATS_OF(3, 2), SHARED(1))},
    {.name = "large_mean", CENTRED, IN(DRAWN(ATT_SAMPLE, 1, 300, 4, 64), GAMMA_OF(64), STATS_OF(4, 2), ABSENT)},
    {.name = "three_axes", CENTRED, IN(SAMPLE(2, 3, 17), GAMMA_OF(17), STATS_OF(2, 3, 2), ABSENT)},
    {.name = "tiny", CENTRED, IN(SAMPLE(197, 192), GAMMA_OF(192), STATS_OF(197, 2), ABSENT), .bench = true},
};

const att_op att_op_frozen_norm = {
    .name = "frozen_norm",
    .attrs_size = sizeof(att_frozen_norm_attrs),
    .help = "y = (x - mean(x)) rstd gamma + beta with given rstd; without mean(x) for RMS norm",
    .infer = frozen_infer,
    .flops_per_in = 5, /* Mean: 1 operation per element; subtract, normalise, scale, shift: 4. */
    ATT_CASES(frozen_cases),
};
