#include "base/core/error.h"
#include "engine/passes/keep.h"
#include "engine/passes/reorder.h"
#include "engine/passes/segment.h"

/* State of the pass. Arrays are indexed by value of the original graph. copy[value] is the latest copy, which segment
 * copy_of[value] computes. */
typedef struct rewriting {
    att_graph *graph;
    const bool *observers;
    const att_keep_options *options;
    int node_count;
    att_retention *retention;
    att_value *copy;
    int *copy_of;
    att_order order;
} rewriting;

static att_value value_for_segment(rewriting *r, att_value value, int segment, bool observer);

/* Copies shapes and types from the original, which may be bf16. Shape rules would yield f32. */
static void copy_node(rewriting *r, att_node node, int segment)
{
    att_node copy = node;
    if (!att_node_own(r->graph, &copy))
        return;
    copy.segment = segment;
    for (int j = 0; j < node.in_count; j++)
        copy.in[j] = value_for_segment(r, node.in[j], segment, false);
    for (int j = 0; j < node.out_count; j++) {
        copy.out[j] = att_graph_add_value(r->graph, r->graph->values.items[node.out[j]].desc, -1);
        r->copy[node.out[j]] = copy.out[j];
        r->copy_of[node.out[j]] = segment;
    }
    att_order_append(&r->order, copy);
}

/* The value that a node of `segment` reads in place of `value`: the original or a copy. An observer reads a copy if the
 * value is recomputed for other nodes; a value that only observers read in later segments is kept for them. */
static att_value value_for_segment(rewriting *r, att_value value, int segment, bool observer)
{
    const att_node *from = att_graph_producer(r->graph, value);
    if (!from || r->graph->values.items[value].desc.kind != ATT_SAMPLE || from->segment >= segment ||
        r->retention[value] == ATT_RETAIN_KEPT || (observer && r->retention[value] == ATT_RETAIN_SEGMENT))
        return value;
    if (r->copy_of[value] != segment)
        copy_node(r, *from, segment);
    return r->graph->status == ATT_OK ? r->copy[value] : ATT_NONE;
}

static bool only_sums(const rewriting *r, const att_node *node)
{
    for (int j = 0; j < node->out_count; j++)
        if (r->graph->values.items[node->out[j]].desc.kind != ATT_SUMMED)
            return false;
    return true;
}

static bool has(const att_value *values, int count, att_value value)
{
    for (int i = 0; i < count; i++)
        if (values[i] == value)
            return true;
    return false;
}

/* Whether node i + 1 adds to gradients only, and reads a sample value that node i reads, but nothing of node i. */
static bool next_goes_first(const rewriting *r, int i)
{
    const att_node *node = &r->graph->nodes.items[i], *next = node + 1;
    bool shares = false;
    if (i + 1 >= r->node_count || next->segment != node->segment || next->stage != node->stage ||
        r->observers[i] != r->observers[i + 1] || only_sums(r, node) || !only_sums(r, next))
        return false;
    for (int j = 0; j < next->in_count; j++) {
        const att_value value = next->in[j];
        if (value == ATT_NONE)
            continue;
        if (has(node->out, node->out_count, value))
            return false;
        shares |= r->graph->values.items[value].desc.kind == ATT_SAMPLE && has(node->in, node->in_count, value);
    }
    return shares;
}

static void rewrite_node(rewriting *r, int i)
{
    att_node node = r->graph->nodes.items[i];
    if (!att_node_own(r->graph, &node))
        return;
    for (int j = 0; j < node.in_count; j++)
        node.in[j] = value_for_segment(r, node.in[j], node.segment, r->observers[i]);
    att_order_append(&r->order, node);
}

/* Observers are written after all other nodes of their segment, so that the order of the others, copies included, does
 * not depend on observers. att_graph_place_observers() moves them later. */
static void rewrite_segment(rewriting *r, int segment, bool observers)
{
    for (int i = 0; i < r->node_count && r->graph->status == ATT_OK; i++) {
        const att_node *node = &r->graph->nodes.items[i];
        if (node->stage != ATT_BODY || node->segment != segment || r->observers[i] != observers)
            continue;
        const bool swaps = !r->options->for_sizes && next_goes_first(r, i);
        if (swaps)
            rewrite_node(r, i + 1);
        rewrite_node(r, i);
        i += swaps;
    }
}

static void append_stage(rewriting *r, att_stage stage)
{
    for (int i = 0; i < r->node_count; i++)
        if (r->graph->nodes.items[i].stage == stage)
            att_order_append(&r->order, r->graph->nodes.items[i]);
}

static att_status rewrite(rewriting *r)
{
    att_graph *graph = r->graph;
    ATT_TRY(att_graph_choose_kept(graph, r->observers, r->options, r->retention));
    int segments = att_graph_segments(graph);
    r->order.graph = graph;
    append_stage(r, ATT_PROLOGUE);
    for (int segment = 0; segment < segments; segment++) {
        rewrite_segment(r, segment, false);
        rewrite_segment(r, segment, true);
    }
    append_stage(r, ATT_EPILOGUE);
    graph->segment = 0;
    return att_order_finish(&r->order);
}

att_status att_graph_rematerialize(att_graph *graph, const bool *observers, const att_keep_options *options)
{
    if (att_graph_segments(graph) == 1)
        return ATT_OK;
    att_arena work = {.context = graph->context};
    size_t values = (size_t)graph->values.count;
    rewriting r = {.graph = graph, .observers = observers, .options = options, .node_count = graph->nodes.count};
    r.retention = att_arena_allocate(&work, values * sizeof *r.retention);
    r.copy = att_arena_allocate(&work, values * sizeof *r.copy);
    r.copy_of = att_arena_allocate(&work, values * sizeof *r.copy_of);
    att_status status = r.retention && r.copy && r.copy_of
                            ? rewrite(&r)
                            : att_fail_memory(graph->context, values * sizeof *r.copy, "a plan");
    att_arena_free(&work);
    return status;
}
