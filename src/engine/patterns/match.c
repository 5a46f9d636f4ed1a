#include "engine/patterns/match.h"
#include "engine/graph/graph.h"
#include "engine/ops/add.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/list.h"
#include "engine/ops/token_mean.h"

const att_node *att_match(const att_graph *graph, att_value value, const att_op *op)
{
    const att_node *producer = att_graph_producer(graph, value);
    return producer && producer->op == op && !graph->values.items[value].requested ? producer : NULL;
}

bool att_match_norm(const att_graph *graph, att_value value, att_node *norm)
{
    const att_node *producer = att_match(graph, value, &att_op_normalize);
    if (!producer || ATT_ATTRS(producer, batch_norm)->activation != ATT_ACT_NONE)
        return false;
    *norm = *producer;
    return true;
}

/* Whether every row of `value` is pooled / rows. */
static bool match_broadcast(const att_graph *graph, att_value value, att_value *pooled)
{
    const att_node *producer = att_match(graph, value, &att_op_token_mean_grad);
    if (!producer || ATT_ATTRS(producer, mean)->first != 0 || ATT_ATTRS(producer, mean)->factor != 1)
        return false;
    *pooled = producer->in[0];
    return true;
}

bool att_match_broadcast_sum(const att_graph *graph, att_value value, att_value *rest, att_value *pooled)
{
    const att_node *producer = att_match(graph, value, &att_op_add);
    if (!producer || ATT_ATTRS(producer, add)->axes != 0)
        return false;
    for (int i = 0; i < 2; i++)
        if (match_broadcast(graph, producer->in[i], pooled)) {
            *rest = producer->in[1 - i];
            return true;
        }
    return false;
}

att_value att_emit_affine(att_graph *graph, att_value x, att_value matrix)
{
    att_value in[] = {x, matrix, ATT_NONE, ATT_NONE};
    return att_emit(graph, "affine", NULL, in, 4, NULL);
}

void att_emit_norm_sums(att_graph *graph, const void *attrs, att_value dy, att_value x,
                        const att_value *stats_gamma_beta, att_value sums[2])
{
    att_value in[] = {dy, x, stats_gamma_beta[0], stats_gamma_beta[1], stats_gamma_beta[2]};
    att_emit(graph, "normalize_sums", attrs, in, NORMALIZE_SUMS_IN_COUNT, sums);
}
