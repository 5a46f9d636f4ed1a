/* The first segment of a training plan with frozen parameters: what is the same for a sample in every update. */
#include "base/core/error.h"
#include "engine/passes/segment.h"
#include "engine/plan/plan.h"

/* What is known of each value. */
typedef struct frozen_values {
    bool *varies;  /* updates change it, or it is drawn anew for each update, or depends on the other samples */
    bool *weighed; /* a parameter, a buffer, or computed from one */
} frozen_values;

static bool any_input(const att_node *node, const bool *marks)
{
    for (int j = 0; j < node->in_count; j++)
        if (node->in[j] != ATT_NONE && marks[node->in[j]])
            return true;
    return false;
}

static void mark_shared(const att_graph *graph, const bool *frozen, frozen_values *values)
{
    for (int i = 0; i < graph->parameters.count; i++) {
        const att_parameter_info *parameter = &graph->parameters.items[i];
        values->weighed[parameter->value] = true;
        values->varies[parameter->value] = !parameter->buffer && !frozen[i];
    }
    for (int i = 0; i < graph->assigned.count; i++)
        values->varies[graph->parameters.items[graph->assigned.items[i].parameter].value] = true;
    for (int i = 0; i < graph->totals.count; i++)
        values->varies[graph->totals.items[i]] = true;
}

/* Returns whether a node of the body that reads a parameter is the same in every update. */
static bool mark_nodes(const att_graph *graph, frozen_values *values, bool *late)
{
    bool found = false;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        const bool reduces = att_node_reduces(graph, node), weighed = any_input(node, values->weighed);
        const bool varies = reduces || att_node_draws(node) || any_input(node, values->varies);
        for (int j = 0; j < node->out_count; j++) {
            values->varies[node->out[j]] = varies;
            values->weighed[node->out[j]] = weighed;
        }
        late[i] = varies && !reduces;
        found = found || (node->stage == ATT_BODY && !varies && weighed);
    }
    return found;
}

att_status att_find_late(const att_graph *graph, const bool *frozen, bool *late, bool *found)
{
    att_arena work = {.context = graph->context};
    const size_t count = (size_t)graph->values.count + 1;
    frozen_values values = {.varies = att_arena_allocate(&work, count), .weighed = att_arena_allocate(&work, count)};
    const bool fails = !values.varies || !values.weighed;
    if (!fails) {
        mark_shared(graph, frozen, &values);
        *found = mark_nodes(graph, &values, late);
    }
    att_arena_free(&work);
    return fails ? att_fail_memory(graph->context, 2 * count, "a plan") : ATT_OK;
}

static bool is_kept(const att_ref *ref)
{
    return (ref->place == ATT_AT_STORE || ref->place == ATT_AT_OUTPUT) && !ref->observed;
}

static void add_frozen(att_plan *plan, const att_ref *ref)
{
    plan->frozen[plan->frozen_count++] = *ref;
    plan->frozen_bytes += (size_t)ref->row_bytes;
}

att_status att_list_frozen(att_plan *plan, const att_rewritten *from, const att_ref *refs)
{
    const att_segment *segment = &plan->segments[0];
    const size_t values = (size_t)from->graph->values.count + 1;
    plan->frozen = att_arena_allocate(&plan->arena, values * sizeof *plan->frozen);
    plan->frozen_reads = att_arena_allocate(&plan->arena, (size_t)plan->input_count + 1);
    if (!plan->frozen || !plan->frozen_reads)
        return att_fail_memory(plan->context, values * sizeof *plan->frozen, "a plan");
    for (int i = segment->first; i < segment->end; i++) {
        const att_node *node = &from->graph->nodes.items[i];
        for (int j = 0; j < node->in_count; j++)
            if (node->in[j] != ATT_NONE && refs[node->in[j]].place == ATT_AT_INPUT)
                plan->frozen_reads[refs[node->in[j]].offset] = true;
        for (int j = 0; j < node->out_count; j++)
            if (is_kept(&refs[node->out[j]]))
                add_frozen(plan, &refs[node->out[j]]);
    }
    return ATT_OK;
}
