#include "core/error.h"
#include "graph/reorder.h"

static bool is_float32(const att_graph *graph, att_value value)
{
    const att_desc *desc = &graph->values.items[value].desc;
    return desc->dtype == ATT_F32 && desc->kind == ATT_SAMPLE;
}

/* takes[value]: every reader takes it as bf16, and there is one; outputs of the graph stay what they are. */
static void find_takers(const att_graph *graph, bool *takes)
{
    bool *refused = takes + graph->values.count;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        for (int j = 0; j < node->in_count; j++) {
            if (node->in[j] == ATT_NONE)
                continue;
            bool fits = (node->op->narrow_in >> j & 1) != 0;
            takes[node->in[j]] |= fits;
            refused[node->in[j]] |= !fits;
        }
    }
    for (int i = 0; i < graph->outputs.count; i++)
        refused[graph->outputs.items[i].value] = true;
    for (int i = 0; i < graph->values.count; i++)
        takes[i] &= !refused[i];
}

static bool has_wide_term(const att_graph *graph, const att_node *node)
{
    for (int j = 0; j < node->in_count; j++)
        if ((node->op->narrow_with >> j & 1) && node->in[j] != ATT_NONE && is_float32(graph, node->in[j]))
            return true;
    return false;
}

static void narrow_outputs(att_graph *graph, const bool *takes)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        for (int j = 0; j < node->out_count && !has_wide_term(graph, node); j++)
            if ((node->op->narrow_out >> j & 1) && takes[node->out[j]] && is_float32(graph, node->out[j]))
                graph->values.items[node->out[j]].desc.dtype = ATT_BF16;
    }
}

/* The narrow twin of `value`, made by a cast just before the node that asks first. */
static att_value cast_of(att_graph *graph, att_value value, att_value *casts)
{
    if (casts[value] == ATT_NONE) {
        casts[value] = att_emit(graph, "cast", NULL, &value, 1, NULL);
        if (casts[value] != ATT_NONE)
            graph->values.items[casts[value]].desc.dtype = ATT_BF16;
    }
    return casts[value];
}

/* Each cast comes before its first reader. */
static void add_casts(att_graph *graph, att_value *casts, att_order *order)
{
    int count = graph->nodes.count;
    for (int i = 0; i < count && graph->status == ATT_OK; i++) {
        att_node node = graph->nodes.items[i];
        graph->scope = node.scope;
        graph->segment = node.segment;
        for (int j = 0; j < node.in_count; j++)
            if ((node.op->narrow_wanted >> j & 1) && node.in[j] != ATT_NONE && is_float32(graph, node.in[j]))
                node.in[j] = cast_of(graph, node.in[j], casts);
        att_order_take(order, count);
        att_order_append(order, node);
    }
}

att_status att_graph_narrow(att_graph *graph)
{
    if (graph->dtype != ATT_F32)
        return att_fail(graph->context, ATT_ERR_ARGUMENT, "mixed precision needs a graph in F32, not in %s",
                        att_dtype_name(graph->dtype));
    att_arena work = {.context = graph->context};
    size_t values = (size_t)graph->values.count;
    bool *takes = att_arena_allocate(&work, 2 * values * sizeof *takes);
    att_value *casts = att_arena_allocate(&work, values * sizeof *casts);
    if (!takes || !casts) {
        att_arena_free(&work);
        return att_fail_memory(graph->context, values * sizeof *casts, "a plan");
    }
    for (size_t i = 0; i < values; i++)
        casts[i] = ATT_NONE;
    find_takers(graph, takes);
    narrow_outputs(graph, takes);
    att_order order = {.graph = graph};
    add_casts(graph, casts, &order);
    att_arena_free(&work);
    return att_order_finish(&order);
}
