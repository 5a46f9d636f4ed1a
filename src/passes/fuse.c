#include "core/error.h"
#include "passes/passes.h"

/* The first that is no watcher; -1: none. */
static int first_reader(const att_graph *graph, const bool *watchers, att_value value)
{
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].in_count; j++)
            if (graph->nodes.items[i].op && !watchers[i] && graph->nodes.items[i].in[j] == value)
                return i;
    return -1;
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
    if (j < 0 || graph->nodes.items[j].stage != producer->stage || !att_node_own(graph, &fused) ||
        !producer->op->absorb(&fused, &graph->nodes.items[j]))
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
    att_graph_compact(graph);
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
