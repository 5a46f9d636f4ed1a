#include "base/core/error.h"
#include "engine/passes/passes.h"
#include "engine/passes/reorder.h"

static bool is_float32(const att_graph *graph, att_value value)
{
    const att_desc *desc = &graph->values.items[value].desc;
    return desc->dtype == ATT_F32 && desc->kind == ATT_SAMPLE;
}

/* accepts[value]: the value has a reader, every reader accepts bf16, and it is not an output of the graph. Observers
 * are ignored. */
static void find_bf16_values(const att_graph *graph, const bool *observers, bool *accepts)
{
    bool *refused = accepts + graph->values.count;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        for (int j = 0; j < node->in_count && !observers[i]; j++) {
            if (node->in[j] == ATT_NONE)
                continue;
            bool fits = (node->op->autocast_in >> j & 1) != 0;
            accepts[node->in[j]] |= fits;
            refused[node->in[j]] |= !fits;
        }
    }
    for (int i = 0; i < graph->outputs.count; i++)
        refused[graph->outputs.items[i].value] = true;
    for (int i = 0; i < graph->values.count; i++)
        accepts[i] &= !refused[i];
}

static bool has_wide_term(const att_graph *graph, const att_node *node)
{
    for (int j = 0; j < node->in_count; j++)
        if ((node->op->autocast_promote >> j & 1) && node->in[j] != ATT_NONE && is_float32(graph, node->in[j]))
            return true;
    return false;
}

static void cast_outputs(att_graph *graph, const bool *accepts)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        for (int j = 0; j < node->out_count && !has_wide_term(graph, node); j++)
            if ((node->op->autocast_out >> j & 1) && accepts[node->out[j]] && is_float32(graph, node->out[j]))
                graph->values.items[node->out[j]].desc.dtype = ATT_BF16;
    }
}

/* The casts made so far. casts[value] is the value cast to the other type, ATT_NONE if there is none. Observers have
 * casts of their own, so that the order of other nodes does not depend on them. */
typedef struct casting {
    att_graph *graph;
    const bool *observers;
    att_value *casts, *observer_casts;
} casting;

/* The cast of `value`, emitted before its first reader. */
static att_value cast_of(const casting *c, att_value value, att_dtype dtype, att_value *casts)
{
    if (casts[value] == ATT_NONE) {
        casts[value] = att_emit(c->graph, "cast", NULL, &value, 1, NULL);
        if (casts[value] != ATT_NONE)
            c->graph->values.items[casts[value]].desc.dtype = dtype;
    }
    return casts[value];
}

/* The value that input j of the node reads: the original or its cast. */
static att_value cast_input(const casting *c, const att_node *node, int j, bool observer)
{
    att_value value = node->in[j];
    if (value == ATT_NONE)
        return value;
    if ((node->op->autocast_cast >> j & 1) && is_float32(c->graph, value))
        return cast_of(c, value, ATT_BF16, observer ? c->observer_casts : c->casts);
    bool is_bf16 = c->graph->values.items[value].desc.dtype == ATT_BF16;
    if (observer && is_bf16 && !(node->op->autocast_in >> j & 1))
        return cast_of(c, value, ATT_F32, c->observer_casts);
    return value;
}

/* Each cast comes before its first reader. */
static void add_casts(const casting *c, att_order *order)
{
    att_graph *graph = c->graph;
    int count = graph->nodes.count;
    for (int i = 0; i < count && graph->status == ATT_OK; i++) {
        att_node node = graph->nodes.items[i];
        graph->scope = node.scope;
        graph->segment = node.segment;
        for (int j = 0; j < node.in_count; j++)
            node.in[j] = cast_input(c, &node, j, c->observers[i]);
        att_order_move(order, count);
        att_order_append(order, node);
    }
}

att_status att_graph_autocast(att_graph *graph, const bool *observers)
{
    if (graph->dtype != ATT_F32)
        return att_fail(graph->context, ATT_ERR_ARGUMENT, "mixed precision needs a graph in F32, not in %s",
                        att_dtype_name(graph->dtype));
    att_arena work = {.context = graph->context};
    size_t values = (size_t)graph->values.count;
    bool *accepts = att_arena_allocate(&work, 2 * values * sizeof *accepts);
    att_value *casts = att_arena_allocate(&work, 2 * values * sizeof *casts);
    if (!accepts || !casts) {
        att_arena_free(&work);
        return att_fail_memory(graph->context, 2 * values * sizeof *casts, "a plan");
    }
    for (size_t i = 0; i < 2 * values; i++)
        casts[i] = ATT_NONE;
    find_bf16_values(graph, observers, accepts);
    cast_outputs(graph, accepts);
    att_order order = {.graph = graph};
    casting c = {.graph = graph, .observers = observers, .casts = casts, .observer_casts = casts + values};
    add_casts(&c, &order);
    att_arena_free(&work);
    return att_order_finish(&order);
}
