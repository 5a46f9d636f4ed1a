#include <string.h>

#include "base/core/error.h"
#include "engine/passes/passes.h"

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

void att_graph_compact(att_graph *graph)
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

static bool is_output(const att_graph *graph, att_value value)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (graph->outputs.items[i].value == value)
            return true;
    return false;
}

/* Whether the identity `node` must stay, as a copy. An output needs a node that makes it, and a value with a requested
 * gradient must not share the gradient of the value that it copies. */
static bool stays_as_copy(const att_graph *graph, const att_node *node)
{
    return is_output(graph, node->out[0]) &&
           (!att_graph_producer(graph, node->in[0]) || graph->values.items[node->out[0]].requested);
}

void att_graph_drop_train_only(att_graph *graph, bool frozen)
{
    const att_op *copy = att_registry_op(graph->context, "cast");
    for (int i = 0; i < graph->nodes.count; i++) {
        att_node *node = &graph->nodes.items[i];
        if (!(node->op->flags & ATT_OP_TRAIN_ONLY) || (frozen && !node->frozen))
            continue;
        if (copy && stays_as_copy(graph, node)) {
            node->op = copy;
            continue;
        }
        replace_everywhere(graph, node->out[0], node->in[0]);
        node->op = NULL;
    }
    att_graph_compact(graph);
}

static bool node_is_used(const att_node *node, const int *readers, const int *owner)
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
        if (node_is_used(node, readers, owner))
            continue;
        for (int j = 0; j < node->in_count; j++)
            if (node->in[j] != ATT_NONE)
                readers[node->in[j]]--;
        node->op = NULL;
    }
    att_graph_compact(graph);
    att_free(graph->context, readers);
}

static bool same_node(const att_graph *graph, const att_node *a, const att_node *b)
{
    if (a->op != b->op || a->segment != b->segment || a->in_count != b->in_count)
        return false;
    for (int i = 0; i < b->out_count; i++)
        if (graph->values.items[b->out[i]].desc.kind != ATT_SAMPLE)
            return false;
    return memcmp(a->in, b->in, (size_t)a->in_count * sizeof *a->in) == 0 &&
           (a->attrs == b->attrs || memcmp(a->attrs, b->attrs, a->op->attrs_size) == 0);
}

static bool makes_output(const att_graph *graph, const att_node *node)
{
    for (int i = 0; i < node->out_count; i++)
        if (is_output(graph, node->out[i]))
            return true;
    return false;
}

/* Removes the second node, or the first if only the first is an observer. Removes neither if that node makes an output
 * of the graph. */
static void merge_pair(att_graph *graph, const bool *observers, int first, int second)
{
    bool remove_first = observers[first] && !observers[second];
    att_node *removed = &graph->nodes.items[remove_first ? first : second];
    const att_node *kept = &graph->nodes.items[remove_first ? second : first];
    if (makes_output(graph, removed))
        return;
    for (int k = 0; k < removed->out_count; k++)
        replace_everywhere(graph, removed->out[k], kept->out[k]);
    removed->op = NULL;
}

att_status att_graph_merge_copies(att_graph *graph, const int *owner)
{
    size_t count = (size_t)graph->nodes.count + 1;
    bool *observers = att_allocate_array(graph->context, count, sizeof *observers);
    if (!observers)
        return att_fail_memory(graph->context, count, "a plan");
    att_status status = att_graph_find_observers(graph, owner, observers);
    const att_node *nodes = graph->nodes.items;
    for (int i = 0; i < graph->nodes.count && status == ATT_OK; i++)
        for (int j = i + 1; nodes[i].op && j < graph->nodes.count; j++)
            if (same_node(graph, &nodes[i], &nodes[j]))
                merge_pair(graph, observers, i, j);
    att_graph_compact(graph);
    att_free(graph->context, observers);
    return status;
}
