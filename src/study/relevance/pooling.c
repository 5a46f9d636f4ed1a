/* Which tokens the head reads: follows the graph from the logits back to the tokens of the last attention layer. */
#include "engine/graph/graph.h"
#include "engine/ops/list.h"
#include "engine/ops/slice_tokens.h"
#include "engine/ops/token_mean.h"
#include "study/relevance/method.h"

/* Where the walk is. */
typedef struct walk {
    const att_graph *graph;
    att_value value;
    int64_t first, count; /* count 0: behind the pooling */
} walk;

static int64_t rows_of(const att_graph *graph, att_value value)
{
    const att_shape shape = att_value_shape(graph, value);
    return shape.rank == 2 ? shape.dims[0] : 0;
}

/* Steps over a node. Returns false if it mixes tokens in a way that equal weights do not describe. */
static bool step(walk *w)
{
    const att_node *node = att_graph_producer(w->graph, w->value);
    if (!node || node->in_count == 0 || node->op == &att_op_attention || node->op == &att_op_global_max)
        return false;
    if (w->count == 0 && (node->op == &att_op_add || node->op == &att_op_combine || node->op == &att_op_concat))
        return false;
    if (node->op == &att_op_slice_tokens) {
        const att_slice_attrs *attrs = node->attrs;
        if (w->count == 0 && attrs->count != 1)
            return false;
        w->count = w->count == 0 ? 1 : w->count;
        w->first += attrs->first;
    } else if (node->op == &att_op_token_mean) {
        const att_mean_attrs *attrs = node->attrs;
        if (w->count > 0)
            return false;
        w->first = attrs->first;
        w->count = rows_of(w->graph, node->in[0]) - w->first;
    }
    w->value = node->in[0];
    return true;
}

att_read_tokens att_relevance_find_read(const att_graph *graph, att_value logits, int64_t tokens)
{
    walk w = {.graph = graph, .value = logits};
    while (w.count == 0 || rows_of(graph, w.value) != tokens)
        if (!step(&w))
            return (att_read_tokens){
                .reason = "its head reads neither one token nor the mean over tokens of the last attention layer"};
    return (att_read_tokens){.first = w.first, .count = w.count};
}
