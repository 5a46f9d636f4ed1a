#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "passes/segment.h"
#include "plan/plan.h"

enum { ARENA_ALIGN = 64 };
/* Of one value: the sum of many is still counted in 64 bits. */
static const int64_t MOST_BYTES = (int64_t)1 << 46;

/* A value that needs memory from step `first` (which writes it) to step `last` (which reads it): nodes for the arena,
 * segments for the store. */
typedef struct tenant {
    att_value value;
    int first, last;
    int64_t bytes, offset;
} tenant;

static int larger_first(const void *a, const void *b)
{
    const tenant *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->value - y->value;
}

static int lower_first(const void *a, const void *b)
{
    const tenant *x = *(tenant *const *)a, *y = *(tenant *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->value - y->value;
}

/* The lowest offset where the tenant fits between those it meets in time. `met` has room for all placed ones. */
static void settle(tenant *newcomer, tenant *placed, int count, tenant **met)
{
    int meets = 0;
    for (int i = 0; i < count; i++)
        if (placed[i].first <= newcomer->last && newcomer->first <= placed[i].last)
            met[meets++] = &placed[i];
    qsort(met, (size_t)meets, sizeof *met, lower_first);
    int64_t offset = 0;
    for (int i = 0; i < meets && met[i]->offset < offset + newcomer->bytes; i++)
        if (met[i]->offset + met[i]->bytes > offset)
            offset = met[i]->offset + met[i]->bytes;
    newcomer->offset = offset;
}

static int64_t settle_all(tenant *tenants, int count, tenant **met)
{
    int64_t top = 0;
    qsort(tenants, (size_t)count, sizeof *tenants, larger_first);
    for (int i = 0; i < count; i++) {
        settle(&tenants[i], tenants, i, met);
        if (tenants[i].offset + tenants[i].bytes > top)
            top = tenants[i].offset + tenants[i].bytes;
    }
    return top;
}

static int64_t largest_bytes(const tenant *tenants, int count)
{
    int64_t largest = 0;
    for (int i = 0; i < count; i++)
        largest = tenants[i].bytes > largest ? tenants[i].bytes : largest;
    return largest;
}

/* Offsets of the tenants, which are put in another order, and what they take together. */
static att_status house(att_context *context, tenant *tenants, int count, size_t *bytes)
{
    tenant **met = att_allocate_array(context, (size_t)count + 1, sizeof *met);
    if (!met)
        return att_fail_memory(context, (size_t)count * sizeof *met, "a plan");
    int64_t largest = largest_bytes(tenants, count);
    att_status status = ATT_OK;
    if (largest > MOST_BYTES)
        status = att_fail_memory(context, (size_t)largest, "a value between layers; smaller images take less");
    else
        *bytes = (size_t)settle_all(tenants, count, met);
    att_free(context, met);
    return status;
}

static int64_t row_bytes(const att_graph *graph, att_value value)
{
    att_desc desc = graph->values.items[value].desc;
    return att_shape_count(desc.shape) * (int64_t)att_dtype_size(desc.dtype);
}

static int64_t aligned_bytes(const att_graph *graph, att_value value, int group)
{
    return (row_bytes(graph, value) * group + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* --- what outlives a segment ------------------------------------------------------------------------------------- */

/* What a node of prologue or epilogue makes, but for what it adds to gradients. */
static void place_derived(att_plan *plan, const att_rewritten *from, const att_node *node, att_ref *refs)
{
    for (int i = 0; i < node->out_count && node->stage != ATT_BODY; i++) {
        att_value value = node->out[i];
        if (refs[value].place != ATT_AT_ARENA)
            continue;
        refs[value] = (att_ref){.place = ATT_AT_DERIVED, .offset = (int64_t)plan->derived_bytes};
        plan->derived_bytes += (size_t)aligned_bytes(from->graph, value, 1);
    }
}

/* Values that gradients, ports, weights and the batch's reductions hold. */
static void place_fixed(att_plan *plan, const att_rewritten *from, att_ref *refs)
{
    const att_graph *graph = from->graph;
    for (att_value value = 0; value < graph->values.count; value++) {
        int64_t offset = (int64_t)plan->batch_bytes;
        if (from->owner && from->owner[value] >= 0)
            refs[value] = (att_ref){.place = ATT_AT_GRADIENT, .offset = from->owner[value]};
        else if (graph->values.items[value].desc.kind == ATT_BATCH) {
            refs[value] = (att_ref){.place = ATT_AT_BATCH, .offset = offset};
            plan->batch_bytes += (size_t)aligned_bytes(graph, value, 1);
        } else
            refs[value] = (att_ref){.place = from->readers[value] ? ATT_AT_ARENA : ATT_AT_NOTHING};
    }
    for (int i = 0; i < graph->parameters.count; i++)
        refs[graph->parameters.items[i].value] = (att_ref){.place = ATT_AT_WEIGHTS, .offset = i};
    for (int i = 0; i < graph->assigned.count; i++)
        refs[graph->assigned.items[i].value] =
            (att_ref){.place = ATT_AT_WEIGHTS, .offset = graph->assigned.items[i].parameter};
    for (int i = 0; i < graph->nodes.count; i++)
        place_derived(plan, from, &graph->nodes.items[i], refs);
    for (int i = 0; i < graph->totals.count; i++)
        refs[graph->totals.items[i]] = (att_ref){.place = ATT_AT_GRADIENT, .offset = graph->parameters.count + i};
    for (int i = 0; i < graph->constants.count; i++) {
        att_value value = graph->constants.items[i].value;
        refs[value] = (att_ref){.place = ATT_AT_DERIVED, .offset = (int64_t)plan->derived_bytes};
        plan->derived_bytes += (size_t)aligned_bytes(graph, value, 1);
    }
    for (int i = 0; i < graph->inputs.count; i++)
        refs[graph->inputs.items[i].value] =
            (att_ref){.place = ATT_AT_INPUT, .offset = i, .row_bytes = plan->inputs[i].row_bytes};
    for (int i = 0; i < graph->outputs.count; i++)
        refs[graph->outputs.items[i].value] = (att_ref){
            .place = ATT_AT_OUTPUT, .offset = plan->outputs[i].holder, .row_bytes = plan->outputs[i].row_bytes};
}

/* The last segment that reads each value, -1: none; and whether the value is kept for the batch. */
static void find_kept(const att_rewritten *from, const att_ref *refs, int *last, bool *kept)
{
    const att_graph *graph = from->graph;
    for (att_value value = 0; value < graph->values.count; value++)
        last[value] = -1;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        bool reduces = att_node_reduces(graph, node);
        for (int j = 0; j < node->in_count; j++) {
            att_value value = node->in[j];
            if (value == ATT_NONE || refs[value].place != ATT_AT_ARENA)
                continue;
            int made = graph->nodes.items[graph->values.items[value].node].segment;
            last[value] = node->segment > last[value] ? node->segment : last[value];
            kept[value] |= reduces || made < node->segment;
        }
    }
}

static att_status place_kept(att_plan *plan, const att_rewritten *from, att_ref *refs, att_arena *work)
{
    const att_graph *graph = from->graph;
    size_t values = (size_t)graph->values.count + 1;
    int *last = att_arena_allocate(work, values * sizeof *last);
    bool *kept = att_arena_allocate(work, values * sizeof *kept);
    tenant *tenants = att_arena_allocate(work, values * sizeof *tenants);
    if (!last || !kept || !tenants)
        return att_fail_memory(graph->context, values * sizeof *tenants, "a plan");
    find_kept(from, refs, last, kept);
    int count = 0;
    for (att_value value = 0; value < graph->values.count; value++)
        if (kept[value])
            tenants[count++] = (tenant){.value = value,
                                        .first = graph->nodes.items[graph->values.items[value].node].segment,
                                        .last = last[value],
                                        .bytes = aligned_bytes(graph, value, 1)};
    ATT_TRY(house(graph->context, tenants, count, &plan->store_bytes));
    for (int i = 0; i < count; i++)
        refs[tenants[i].value] = (att_ref){
            .place = ATT_AT_STORE, .offset = tenants[i].offset, .row_bytes = row_bytes(graph, tenants[i].value)};
    return ATT_OK;
}

/* Values that are for watchers alone. */
static void mark_watched(const att_rewritten *from, att_ref *refs)
{
    const att_graph *graph = from->graph;
    for (int i = 0; i < graph->values.count; i++)
        refs[i].watched =
            refs[i].place != ATT_AT_WEIGHTS && refs[i].place != ATT_AT_INPUT && refs[i].place != ATT_AT_DERIVED;
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].in_count && !from->watchers[i]; j++)
            if (graph->nodes.items[i].in[j] != ATT_NONE)
                refs[graph->nodes.items[i].in[j]].watched = false;
    for (int i = 0; i < graph->outputs.count; i++)
        if (!graph->outputs.items[i].probe)
            refs[graph->outputs.items[i].value].watched = false;
    for (int i = 0; i < graph->values.count; i++)
        if (refs[i].place == ATT_AT_GRADIENT)
            refs[i].watched = false;
}

att_status att_place_shared(att_plan *plan, const att_rewritten *from, att_ref **out)
{
    const att_graph *graph = from->graph;
    size_t values = (size_t)graph->values.count + 1;
    att_ref *refs = att_allocate_array(graph->context, values, sizeof *refs);
    if (!refs)
        return att_fail_memory(graph->context, values * sizeof *refs, "a plan");
    plan->batch_bytes = 0;
    plan->derived_bytes = 0;
    place_fixed(plan, from, refs);
    att_arena work = {.context = graph->context};
    att_status status = place_kept(plan, from, refs, &work);
    att_arena_free(&work);
    mark_watched(from, refs);
    if (status != ATT_OK)
        att_free(graph->context, refs);
    else
        *out = refs;
    return status;
}

/* --- what a group of a segment needs ------------------------------------------------------------------------------ */

/* A segment's local values with their lifetimes; those that only watchers read have last = -1 where these are left
 * out. `tenant_of`, by value, is -1. */
static int collect(const att_rewritten *from, const att_segment *segment, const att_ref *refs, bool watched, int group,
                   tenant *tenants, int *tenant_of)
{
    const att_graph *graph = from->graph;
    int count = 0;
    for (int i = segment->first; i < segment->end; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (from->watchers[i] && !watched)
            continue;
        for (int j = 0; j < node->in_count; j++)
            if (node->in[j] != ATT_NONE && tenant_of[node->in[j]] >= 0)
                tenants[tenant_of[node->in[j]]].last = i;
        for (int j = 0; j < node->out_count; j++) {
            att_value value = node->out[j];
            if (refs[value].place != ATT_AT_ARENA)
                continue;
            tenant_of[value] = count;
            tenants[count++] =
                (tenant){.value = value, .first = i, .last = -1, .bytes = aligned_bytes(graph, value, group)};
        }
    }
    return count;
}

/* The tenants that somebody reads, with their offsets. They are the caller's. */
static att_status settle_segment(const att_rewritten *from, const att_segment *segment, const att_ref *refs,
                                 bool watched, int group, tenant **out, int *kept, size_t *arena_bytes)
{
    const att_graph *graph = from->graph;
    size_t most = 1;
    for (int i = segment->first; i < segment->end; i++)
        most += (size_t)graph->nodes.items[i].out_count;
    tenant *tenants = att_allocate_array(graph->context, most, sizeof *tenants);
    int *tenant_of = att_allocate_array(graph->context, (size_t)graph->values.count + 1, sizeof *tenant_of);
    att_status status =
        tenants && tenant_of ? ATT_OK : att_fail_memory(graph->context, most * sizeof *tenants, "a plan");
    if (status == ATT_OK) {
        memset(tenant_of, -1, (size_t)graph->values.count * sizeof *tenant_of);
        int count = collect(from, segment, refs, watched, group, tenants, tenant_of);
        *kept = 0;
        for (int i = 0; i < count; i++)
            if (tenants[i].last >= 0)
                tenants[(*kept)++] = tenants[i];
        status = house(graph->context, tenants, *kept, arena_bytes);
    }
    att_free(graph->context, tenant_of);
    if (status != ATT_OK)
        att_free(graph->context, tenants);
    else
        *out = tenants;
    return status;
}

att_status att_place_measure(const att_plan *plan, const att_rewritten *from, const att_segment *segment,
                             const att_ref *refs, int group, size_t *arena_bytes)
{
    tenant *tenants;
    int count;
    ATT_TRY(settle_segment(from, segment, refs, false, group, &tenants, &count, arena_bytes));
    att_free(plan->context, tenants);
    return ATT_OK;
}

att_status att_place_node(att_plan *plan, const att_node *node, const att_ref *refs, att_step *step)
{
    size_t bytes = ((size_t)node->in_count + (size_t)node->out_count) * sizeof *step->in;
    step->in = att_arena_allocate(&plan->arena, bytes);
    if (!step->in)
        return att_fail_memory(plan->context, bytes, "a plan");
    step->out = step->in + node->in_count;
    for (int j = 0; j < node->in_count; j++)
        step->in[j] = node->in[j] == ATT_NONE ? (att_ref){0} : refs[node->in[j]];
    for (int j = 0; j < node->out_count; j++)
        step->out[j] = refs[node->out[j]];
    return ATT_OK;
}

static att_status write_refs(att_plan *plan, const att_rewritten *from, const att_segment *segment, const att_ref *refs,
                             att_program *program)
{
    for (int i = segment->first; i < segment->end; i++) {
        att_step *step = &program->steps[i - segment->first];
        step->watcher = from->watchers[i];
        ATT_TRY(att_place_node(plan, &from->graph->nodes.items[i], refs, step));
    }
    return ATT_OK;
}

att_status att_place_local(att_plan *plan, const att_rewritten *from, const att_segment *segment, att_ref *refs,
                           att_program *program)
{
    tenant *tenants;
    int count;
    ATT_TRY(settle_segment(from, segment, refs, true, program->group, &tenants, &count, &program->arena_bytes));
    for (int i = 0; i < count; i++)
        refs[tenants[i].value].offset = tenants[i].offset;
    att_free(plan->context, tenants);
    return write_refs(plan, from, segment, refs, program);
}
