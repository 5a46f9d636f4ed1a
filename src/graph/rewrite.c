#include <string.h>

#include "core/error.h"
#include "graph/graph.h"

static void replace_everywhere(att_graph *graph, att_value old, att_value new)
{
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].in_count; j++)
            if (graph->nodes.items[i].in[j] == old)
                graph->nodes.items[i].in[j] = new;
    for (int i = 0; i < graph->outputs.count; i++)
        if (graph->outputs.items[i].value == old)
            graph->outputs.items[i].value = new;
}

/* Removes nodes whose op was set to NULL and renumbers the makers of values. */
static void compact(att_graph *graph)
{
    int kept = 0;
    for (int i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.items[i].op)
            graph->nodes.items[kept++] = graph->nodes.items[i];
    graph->nodes.count = kept;
    for (int i = 0; i < kept; i++)
        for (int j = 0; j < graph->nodes.items[i].out_count; j++)
            graph->values.items[graph->nodes.items[i].out[j]].node = i;
}

void att_graph_drop_train_only(att_graph *graph)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        att_node *node = &graph->nodes.items[i];
        if (!(node->op->flags & ATT_OP_TRAIN_ONLY))
            continue;
        replace_everywhere(graph, node->out[0], node->in[0]);
        node->op = NULL;
    }
    compact(graph);
}

static bool is_output(const att_graph *graph, att_value value)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (graph->outputs.items[i].value == value)
            return true;
    return false;
}

static bool node_is_wanted(const att_node *node, const int *readers, const int *owner)
{
    for (int i = 0; i < node->out_count; i++)
        if (readers[node->out[i]] > 0 || (owner && owner[node->out[i]] >= 0))
            return true;
    return false;
}

att_status att_graph_count_readers(const att_graph *graph, int **out)
{
    int *readers = att_allocate_array(graph->context, (size_t)graph->values.count + 1, sizeof *readers);
    if (!readers)
        return att_fail_memory(graph->context, (size_t)graph->values.count * sizeof *readers, "a plan");
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].in_count; j++)
            if (graph->nodes.items[i].in[j] != ATT_NONE)
                readers[graph->nodes.items[i].in[j]]++;
    for (int i = 0; i < graph->outputs.count; i++)
        readers[graph->outputs.items[i].value]++;
    for (int i = 0; i < graph->assigned.count; i++)
        readers[graph->assigned.items[i].value]++;
    *out = readers;
    return ATT_OK;
}

void att_graph_drop_dead(att_graph *graph, const int *owner)
{
    int *readers;
    if (att_graph_count_readers(graph, &readers) != ATT_OK) {
        att_graph_fail(graph, ATT_ERR_MEMORY);
        return;
    }
    for (int i = graph->nodes.count - 1; i >= 0; i--) {
        att_node *node = &graph->nodes.items[i];
        if (node_is_wanted(node, readers, owner))
            continue;
        for (int j = 0; j < node->in_count; j++)
            if (node->in[j] != ATT_NONE)
                readers[node->in[j]]--;
        node->op = NULL;
    }
    compact(graph);
    att_free(graph->context, readers);
}

/* The first that is no watcher; -1: none. */
static int first_reader(const att_graph *graph, const bool *watchers, att_value value)
{
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].in_count; j++)
            if (graph->nodes.items[i].op && !watchers[i] && graph->nodes.items[i].in[j] == value)
                return i;
    return -1;
}

static bool same_node(const att_graph *graph, const att_node *a, const att_node *b)
{
    if (a->op != b->op || a->segment != b->segment || a->in_count != b->in_count)
        return false;
    for (int i = 0; i < b->out_count; i++)
        if (graph->values.items[b->out[i]].desc.kind != ATT_SAMPLE)
            return false;
    return memcmp(a->in, b->in, (size_t)a->in_count * sizeof *a->in) == 0 &&
           memcmp(&a->attrs, &b->attrs, sizeof a->attrs) == 0; /* NOLINT(bugprone-suspicious-memory-comparison) */
}

static bool makes_output(const att_graph *graph, const att_node *node)
{
    for (int i = 0; i < node->out_count; i++)
        if (is_output(graph, node->out[i]))
            return true;
    return false;
}

/* The first stays, or what is no watcher. */
static void merge_pair(att_graph *graph, const bool *watchers, int first, int second)
{
    bool first_goes = watchers[first] && !watchers[second];
    att_node *goes = &graph->nodes.items[first_goes ? first : second];
    const att_node *stays = &graph->nodes.items[first_goes ? second : first];
    if (makes_output(graph, goes))
        return;
    for (int k = 0; k < goes->out_count; k++)
        replace_everywhere(graph, goes->out[k], stays->out[k]);
    goes->op = NULL;
}

att_status att_graph_merge_copies(att_graph *graph, const int *owner)
{
    size_t count = (size_t)graph->nodes.count + 1;
    bool *watchers = att_allocate_array(graph->context, count, sizeof *watchers);
    if (!watchers)
        return att_fail_memory(graph->context, count, "a plan");
    att_status status = att_graph_find_watchers(graph, owner, watchers);
    const att_node *nodes = graph->nodes.items;
    for (int i = 0; i < graph->nodes.count && status == ATT_OK; i++)
        for (int j = i + 1; nodes[i].op && j < graph->nodes.count; j++)
            if (same_node(graph, &nodes[i], &nodes[j]))
                merge_pair(graph, watchers, i, j);
    compact(graph);
    att_free(graph->context, watchers);
    return status;
}

/* What fusing asks: of the graph without what only watches, so that probes change nothing. */
typedef struct fusing {
    att_graph *graph;
    int *readers; /* of each value, watchers left out */
    bool *watchers, *watched;
} fusing;

static void leave_watchers_out(const fusing *f)
{
    const att_graph *graph = f->graph;
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].in_count && f->watchers[i]; j++) {
            att_value value = graph->nodes.items[i].in[j];
            if (value == ATT_NONE)
                continue;
            f->readers[value]--;
            f->watched[value] = true;
        }
    for (int i = 0; i < graph->outputs.count; i++)
        if (graph->outputs.items[i].probe) {
            f->readers[graph->outputs.items[i].value]--;
            f->watched[graph->outputs.items[i].value] = true;
        }
}

/* Node i as it was, for those who watch; its other results are the fused node's. */
static void keep_watched(const fusing *f, int i)
{
    att_graph *graph = f->graph;
    f->watchers[i] = true;
    for (int j = 1; j < graph->nodes.items[i].out_count; j++) {
        att_value value = graph->nodes.items[i].out[j];
        graph->nodes.items[i].out[j] = att_graph_add_value(graph, graph->values.items[value].desc, i);
    }
}

/* Node i takes over what its only reader does, and moves to the reader's place, where all operands exist. */
static void fuse_node(const fusing *f, int i)
{
    att_graph *graph = f->graph;
    att_node *producer = &graph->nodes.items[i];
    att_value hidden = producer->out[0];
    if (!producer->op->absorb || f->watchers[i] || f->readers[hidden] != 1)
        return;
    int j = first_reader(graph, f->watchers, hidden);
    att_node fused = *producer;
    if (j < 0 || !producer->op->absorb(&fused, &graph->nodes.items[j]))
        return;
    fused.out[0] = graph->nodes.items[j].out[0];
    graph->nodes.items[j] = fused;
    if (f->watched[hidden])
        keep_watched(f, i);
    else
        producer->op = NULL;
    f->readers[hidden] = 0;
}

static att_status fuse(const fusing *f, const int *owner, unsigned flags)
{
    att_graph *graph = f->graph;
    ATT_TRY(att_graph_find_watchers(graph, owner, f->watchers));
    leave_watchers_out(f);
    int count = graph->nodes.count;
    for (int i = 0; i < count; i++)
        if (graph->nodes.items[i].op && (graph->nodes.items[i].op->flags & flags) == flags)
            fuse_node(f, i); /* the fused node lies further on and is tried again there */
    compact(graph);
    return graph->status;
}

att_status att_graph_fuse(att_graph *graph, const int *owner, unsigned flags)
{
    fusing f = {.graph = graph};
    size_t nodes = (size_t)graph->nodes.count + 1, values = (size_t)graph->values.count + 1;
    ATT_TRY(att_graph_count_readers(graph, &f.readers));
    f.watchers = att_allocate_array(graph->context, nodes, sizeof *f.watchers);
    f.watched = att_allocate_array(graph->context, values, sizeof *f.watched);
    att_status status =
        f.watchers && f.watched ? fuse(&f, owner, flags) : att_fail_memory(graph->context, nodes + values, "a plan");
    att_free(graph->context, f.readers);
    att_free(graph->context, f.watchers);
    att_free(graph->context, f.watched);
    return status;
}
