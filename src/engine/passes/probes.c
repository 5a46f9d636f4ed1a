#include <string.h>

#include "base/core/error.h"
#include "engine/passes/passes.h"

/* needed[value]: something other than a probe depends on the value. */
static void find_needed(const att_graph *graph, const int *owner, bool *needed, bool *observers)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (!graph->outputs.items[i].probe)
            needed[graph->outputs.items[i].value] = true;
    for (int i = 0; i < graph->assigned.count; i++)
        needed[graph->assigned.items[i].value] = true;
    for (int i = graph->nodes.count - 1; i >= 0; i--) {
        const att_node *node = &graph->nodes.items[i];
        observers[i] = true;
        for (int j = 0; j < node->out_count; j++)
            if (needed[node->out[j]] || (owner && owner[node->out[j]] >= 0))
                observers[i] = false;
        for (int j = 0; j < node->in_count && !observers[i]; j++)
            if (node->in[j] != ATT_NONE)
                needed[node->in[j]] = true;
    }
}

/* after[i]: the last node that observer i depends on and that is not an observer; -1: none. */
static void find_places(const att_graph *graph, const bool *observers, int *after)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        after[i] = -1;
        for (int j = 0; j < node->in_count && observers[i]; j++) {
            int producer = node->in[j] == ATT_NONE ? -1 : graph->values.items[node->in[j]].node;
            int place = producer >= 0 && observers[producer] ? after[producer] : producer;
            after[i] = place > after[i] ? place : after[i];
        }
    }
}

typedef struct ordering {
    const att_graph *graph;
    const bool *observers;
    const int *after;
    att_node *nodes;
    bool *marks;
    int count;
} ordering;

static void append(ordering *ordered, int i)
{
    ordered->marks[ordered->count] = ordered->observers[i];
    ordered->nodes[ordered->count++] = ordered->graph->nodes.items[i];
}

static void append_observers(ordering *ordered, int after)
{
    for (int i = after + 1; i < ordered->graph->nodes.count; i++)
        if (ordered->observers[i] && ordered->after[i] == after)
            append(ordered, i);
}

static void reorder(att_graph *graph, bool *observers, ordering *ordered)
{
    append_observers(ordered, -1);
    for (int i = 0; i < graph->nodes.count; i++) {
        if (observers[i])
            continue;
        append(ordered, i);
        append_observers(ordered, i);
    }
    memcpy(graph->nodes.items, ordered->nodes, (size_t)ordered->count * sizeof *ordered->nodes);
    memcpy(observers, ordered->marks, (size_t)ordered->count * sizeof *observers);
    for (int i = 0; i < ordered->count; i++)
        for (int j = 0; j < graph->nodes.items[i].out_count; j++)
            graph->values.items[graph->nodes.items[i].out[j]].node = i;
}

att_status att_graph_find_observers(const att_graph *graph, const int *owner, bool *observers)
{
    bool *needed = att_allocate_array(graph->context, (size_t)graph->values.count + 1, sizeof *needed);
    if (!needed)
        return att_fail_memory(graph->context, (size_t)graph->values.count, "a plan");
    find_needed(graph, owner, needed, observers);
    att_free(graph->context, needed);
    return ATT_OK;
}

void att_graph_detach_probes(att_graph *graph, const bool *observers)
{
    for (int i = 0; i < graph->outputs.count; i++) {
        att_named_value *output = &graph->outputs.items[i];
        int producer = graph->values.items[output->value].node;
        if (!output->probe || observers[producer])
            continue;
        graph->scope = graph->nodes.items[producer].scope;
        output->value = att_emit(graph, "cast", NULL, &output->value, 1, NULL);
    }
}

att_status att_graph_place_observers(att_graph *graph, const int *owner, bool **out)
{
    size_t nodes = (size_t)graph->nodes.count + 1;
    att_arena work = {.context = graph->context};
    bool *needed = att_arena_allocate(&work, (size_t)graph->values.count + 1);
    int *after = att_arena_allocate(&work, nodes * sizeof *after);
    ordering ordered = {.graph = graph, .after = after};
    ordered.nodes = att_arena_allocate(&work, nodes * sizeof *ordered.nodes);
    ordered.marks = att_arena_allocate(&work, nodes);
    bool *observers = att_allocate(graph->context, nodes);
    ordered.observers = observers;
    if (!needed || !after || !ordered.nodes || !ordered.marks || !observers) {
        att_arena_free(&work);
        att_free(graph->context, observers);
        return att_fail_memory(graph->context, nodes * sizeof *ordered.nodes, "a plan");
    }
    find_needed(graph, owner, needed, observers);
    find_places(graph, observers, after);
    reorder(graph, observers, &ordered);
    att_arena_free(&work);
    *out = observers;
    return ATT_OK;
}
