#include "base/core/error.h"
#include "engine/passes/passes.h"

/* The first reader of `value` that is not an observer; -1 if there is none. */
static int first_reader(const att_graph *graph, const bool *observers, att_value value)
{
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].in_count; j++)
            if (graph->nodes.items[i].op && !observers[i] && graph->nodes.items[i].in[j] == value)
                return i;
    return -1;
}

/* State of the pass. Observers are ignored, so that probes do not change what is fused. */
typedef struct fusing {
    att_graph *graph;
    int *readers; /* number of readers of each value, without observers */
    bool *observers, *observed;
} fusing;

static void exclude_observers(const fusing *f)
{
    const att_graph *graph = f->graph;
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].in_count && f->observers[i]; j++) {
            att_value value = graph->nodes.items[i].in[j];
            if (value == ATT_NONE)
                continue;
            f->readers[value]--;
            f->observed[value] = true;
        }
    for (int i = 0; i < graph->outputs.count; i++)
        if (graph->outputs.items[i].probe) {
            f->readers[graph->outputs.items[i].value]--;
            f->observed[graph->outputs.items[i].value] = true;
        }
}

/* Keeps node i for its observers. Its outputs other than out[0] become new values, because the fused node computes the
 * old ones. */
static void keep_observed(const fusing *f, int i)
{
    att_graph *graph = f->graph;
    f->observers[i] = true;
    for (int j = 1; j < graph->nodes.items[i].out_count; j++) {
        att_value value = graph->nodes.items[i].out[j];
        graph->nodes.items[i].out[j] = att_graph_add_value(graph, graph->values.items[value].desc, i);
    }
}

/* Node i absorbs its only reader and moves to the reader's position, where all operands are available. */
static void fuse_node(const fusing *f, int i)
{
    att_graph *graph = f->graph;
    att_node *producer = &graph->nodes.items[i];
    att_value hidden = producer->out[0];
    if (!producer->op->absorb || f->observers[i] || f->readers[hidden] != 1)
        return;
    int j = first_reader(graph, f->observers, hidden);
    att_node fused = *producer;
    if (j < 0 || graph->nodes.items[j].stage != producer->stage || !att_node_own(graph, &fused) ||
        !producer->op->absorb(&fused, &graph->nodes.items[j]))
        return;
    fused.out[0] = graph->nodes.items[j].out[0];
    graph->nodes.items[j] = fused;
    if (f->observed[hidden])
        keep_observed(f, i);
    else
        producer->op = NULL;
    f->readers[hidden] = 0;
}

static att_status fuse(const fusing *f, const int *owner, unsigned flags)
{
    att_graph *graph = f->graph;
    ATT_TRY(att_graph_find_observers(graph, owner, f->observers));
    exclude_observers(f);
    int count = graph->nodes.count;
    for (int i = 0; i < count; i++)
        if (graph->nodes.items[i].op && (graph->nodes.items[i].op->flags & flags) == flags)
            fuse_node(f, i); /* the fused node moved to a later index and is visited again there */
    att_graph_compact(graph);
    return graph->status;
}

att_status att_graph_fuse(att_graph *graph, const int *owner, unsigned flags)
{
    fusing f = {.graph = graph};
    size_t nodes = (size_t)graph->nodes.count + 1, values = (size_t)graph->values.count + 1;
    ATT_TRY(att_graph_count_readers(graph, &f.readers));
    f.observers = att_allocate_array(graph->context, nodes, sizeof *f.observers);
    f.observed = att_allocate_array(graph->context, values, sizeof *f.observed);
    att_status status =
        f.observers && f.observed ? fuse(&f, owner, flags) : att_fail_memory(graph->context, nodes + values, "a plan");
    att_free(graph->context, f.readers);
    att_free(graph->context, f.observers);
    att_free(graph->context, f.observed);
    return status;
}
