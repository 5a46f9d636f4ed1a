#include "engine/patterns/match.h"
#include "engine/graph/graph.h"
#include "engine/ops/add.h"
#include "engine/ops/list.h"
#include "engine/ops/token_mean.h"

const att_node *att_match(const att_graph *graph, att_value value, const att_op *op)
{
    const att_node *producer = att_graph_producer(graph, value);
    return producer && producer->op == op && !graph->values.items[value].requested ? producer : NULL;
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
