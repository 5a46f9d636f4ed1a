#include <string.h>

#include "base/core/error.h"
#include "engine/plan/plan.h"

/* Steps that run once are usually few and small; there are many only if many weights are derived separately. Threads
 * share independent chains of steps. Each step runs on one thread, so that the bits of results do not depend on the
 * number of threads. */

/* of_node[i]: the chain of node first + i; of_sum[i]: the chain of the nodes that add to sum i, -1 if there is none. */
typedef struct chaining {
    const att_rewritten *from;
    int first, count;
    int *of_node, *of_sum;
    int sum_count;
} chaining;

/* Merges chain `removed` into chain `kept`. */
static void merge_chains(const chaining *c, int kept, int removed)
{
    for (int i = 0; i < c->count; i++)
        if (c->of_node[i] == removed)
            c->of_node[i] = kept;
    for (int i = 0; i < c->sum_count; i++)
        if (c->of_sum[i] == removed)
            c->of_sum[i] = kept;
}

static void join(const chaining *c, int node, int *other)
{
    if (*other < 0)
        *other = c->of_node[node];
    else if (*other != c->of_node[node])
        merge_chains(c, *other, c->of_node[node]);
}

/* Index of the sum that `value` contributes to, or of the total that `value` is; -1: none. */
static int sum_of(const chaining *c, att_value value)
{
    const att_graph *graph = c->from->graph;
    if (c->from->owner && c->from->owner[value] >= 0)
        return c->from->owner[value];
    for (int i = 0; i < graph->totals.count; i++)
        if (graph->totals.items[i] == value)
            return graph->parameters.count + i;
    return -1;
}

/* A node is in one chain with the producers of its inputs, and with all nodes that add to or read the same sums. */
static void find_chains(const chaining *c)
{
    const att_graph *graph = c->from->graph;
    for (int i = 0; i < c->count; i++) {
        const att_node *node = &graph->nodes.items[c->first + i];
        c->of_node[i] = i;
        for (int j = 0; j < node->in_count + node->out_count; j++) {
            att_value value = j < node->in_count ? node->in[j] : node->out[j - node->in_count];
            int producer = value == ATT_NONE ? -1 : graph->values.items[value].node - c->first;
            if (producer >= 0 && producer < i)
                join(c, i, &c->of_node[producer]);
            int sum = value == ATT_NONE ? -1 : sum_of(c, value);
            if (sum >= 0)
                join(c, i, &c->of_sum[sum]);
        }
    }
}

static att_status lower_steps(att_plan *plan, const chaining *c, const att_ref *refs, att_once_steps *once)
{
    size_t count = (size_t)c->count;
    once->steps = att_arena_allocate(&plan->arena, (count + 1) * sizeof *once->steps);
    once->chains = att_arena_allocate(&plan->arena, (count + 1) * sizeof *once->chains);
    if (!once->steps || !once->chains)
        return att_fail_memory(plan->context, count * sizeof *once->steps, "a plan");
    once->count = 0;
    for (int i = 0; i < c->count; i++) {
        const att_node *node = &c->from->graph->nodes.items[c->first + i];
        att_step *step = &once->steps[once->count];
        if (att_node_is_view(node, refs))
            continue;
        ATT_TRY(att_place_node(plan, node, refs, step));
        ATT_TRY(att_prepare_step(plan, c->from, c->first + i, 1, 1, step));
        att_grow_scratch(&plan->scratch_bytes, step->unit);
        once->chains[once->count++] = c->of_node[i];
    }
    return ATT_OK;
}

static att_status lower_stage(att_plan *plan, const att_rewritten *from, int first, const att_ref *refs,
                              att_once_steps *once)
{
    att_arena work = {.context = plan->context};
    chaining c = {.from = from, .first = first, .count = once->count, .sum_count = plan->sum_count};
    c.of_node = att_arena_allocate(&work, ((size_t)c.count + 1) * sizeof *c.of_node);
    c.of_sum = att_arena_allocate(&work, ((size_t)c.sum_count + 1) * sizeof *c.of_sum);
    att_status status = c.of_node && c.of_sum
                            ? ATT_OK
                            : att_fail_memory(plan->context, (size_t)c.sum_count * sizeof *c.of_sum, "a plan");
    if (status == ATT_OK) {
        for (int i = 0; i < c.sum_count; i++)
            c.of_sum[i] = -1;
        find_chains(&c);
        status = lower_steps(plan, &c, refs, once);
    }
    att_arena_free(&work);
    return status;
}

static att_status copy_constants(att_plan *plan, const att_rewritten *from, const att_ref *refs)
{
    const att_graph *graph = from->graph;
    plan->upload_count = graph->constants.count;
    plan->uploads = att_arena_allocate(&plan->arena, ((size_t)plan->upload_count + 1) * sizeof *plan->uploads);
    if (!plan->uploads)
        return att_fail_memory(plan->context, (size_t)plan->upload_count * sizeof *plan->uploads, "a plan");
    for (int i = 0; i < plan->upload_count; i++) {
        const att_constant *constant = &graph->constants.items[i];
        const att_desc *desc = &graph->values.items[constant->value].desc;
        size_t bytes = (size_t)att_shape_count(desc->shape) * att_dtype_size(desc->dtype);
        void *data = att_arena_allocate(&plan->arena, bytes);
        if (!data)
            return att_fail_memory(plan->context, bytes, "a plan");
        memcpy(data, constant->data, bytes);
        plan->uploads[i] = (att_upload){.offset = refs[constant->value].offset, .data = data, .bytes = bytes};
    }
    return ATT_OK;
}

static bool reads_assigned(const att_plan *plan, const att_ref *in, int count)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < plan->assigned_count; j++)
            if (in[i].place == ATT_AT_WEIGHTS && in[i].offset == plan->assigned[j])
                return true;
    return false;
}

static bool has_draws(const att_once_steps *once)
{
    for (int i = 0; i < once->count; i++)
        if (strcmp(once->steps[i].unit->problem.op, "dropout") == 0)
            return true;
    return false;
}

/* Finds the buffers that a run changes, and whether the prologue reads any of them. */
static att_status find_assigned(att_plan *plan, const att_graph *graph)
{
    plan->assigned_count = graph->assigned.count;
    plan->assigned = att_arena_allocate(&plan->arena, ((size_t)graph->assigned.count + 1) * sizeof *plan->assigned);
    if (!plan->assigned)
        return att_fail_memory(plan->context, (size_t)graph->assigned.count * sizeof *plan->assigned, "a plan");
    for (int i = 0; i < graph->assigned.count; i++)
        plan->assigned[i] = graph->assigned.items[i].parameter;
    for (int i = 0; i < plan->packs.count; i++)
        plan->prologue_reads_assigned |=
            reads_assigned(plan, plan->packs.items[i].in, plan->packs.items[i].unit->problem.in_count);
    for (int i = 0; i < plan->prologue.count; i++)
        plan->prologue_reads_assigned |=
            reads_assigned(plan, plan->prologue.steps[i].in, plan->prologue.steps[i].unit->problem.in_count);
    return ATT_OK;
}

att_status att_lower_once(att_plan *plan, const att_rewritten *from, const att_ref *refs)
{
    int nodes = from->graph->nodes.count;
    ATT_TRY(copy_constants(plan, from, refs));
    ATT_TRY(lower_stage(plan, from, 0, refs, &plan->prologue));
    ATT_TRY(lower_stage(plan, from, nodes - plan->epilogue.count, refs, &plan->epilogue));
    plan->prologue_draws = has_draws(&plan->prologue);
    return find_assigned(plan, from->graph);
}
