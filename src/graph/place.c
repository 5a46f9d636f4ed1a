#include <stdlib.h>

#include "core/error.h"
#include "graph/plan.h"

enum { ARENA_ALIGN = 64 };
/* Of one value: the sum of many is still counted in 64 bits. */
static const int64_t MOST_BYTES = (int64_t)1 << 46;

/* A value that needs memory of the arena from step `first` (which writes it) to step `last` (which reads it). */
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

static int port_of(const att_named_value *list, int count, att_value value)
{
    for (int i = 0; i < count; i++)
        if (list[i].value == value)
            return i;
    return -1;
}

/* Where a value lies if not in the arena. */
static att_ref fixed_ref(const att_graph *graph, const att_plan *plan, const int *owner, att_value value)
{
    if (owner && owner[value] >= 0)
        return (att_ref){.place = ATT_AT_GRADIENT, .offset = plan->layout.offsets[owner[value]]};
    int port = port_of(graph->outputs.items, graph->outputs.count, value);
    if (port >= 0)
        return (att_ref){.place = ATT_AT_OUTPUT, .offset = port, .row_bytes = plan->outputs[port].row_bytes};
    if (graph->values.items[value].node >= 0)
        return (att_ref){.place = ATT_AT_ARENA};
    port = port_of(graph->inputs.items, graph->inputs.count, value);
    if (port >= 0)
        return (att_ref){.place = ATT_AT_INPUT, .offset = port, .row_bytes = plan->inputs[port].row_bytes};
    return (att_ref){.place = ATT_AT_WEIGHTS, .offset = plan->layout.offsets[att_graph_parameter_of(graph, value)]};
}

static int64_t arena_bytes(const att_graph *graph, att_value value, int group)
{
    att_desc desc = graph->values.items[value].desc;
    int64_t bytes = att_shape_count(desc.shape) * group * (int64_t)att_dtype_size(desc.dtype);
    return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* refs[value] of everything but the arena's offsets; tenants of the arena with their lifetimes. */
static int collect(const att_graph *graph, const att_plan *plan, const int *owner, const bool *left_out, int group,
                   att_ref *refs, tenant *tenants, int *tenant_of)
{
    int count = 0;
    for (att_value value = 0; value < graph->values.count; value++)
        tenant_of[value] = -1;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (left_out && left_out[i])
            continue;
        for (int j = 0; j < node->in_count; j++) {
            att_value value = node->in[j];
            if (value == ATT_NONE)
                continue;
            if (tenant_of[value] >= 0)
                tenants[tenant_of[value]].last = i;
            else
                refs[value] = fixed_ref(graph, plan, owner, value);
        }
        for (int j = 0; j < node->out_count; j++) {
            att_value value = node->out[j];
            refs[value] = fixed_ref(graph, plan, owner, value);
            if (refs[value].place != ATT_AT_ARENA)
                continue;
            tenant_of[value] = count;
            tenants[count++] =
                (tenant){.value = value, .first = i, .last = -1, .bytes = arena_bytes(graph, value, group)};
        }
    }
    return count;
}

/* Leaves out the values that nobody reads. */
static int keep_read(tenant *tenants, int count, att_ref *refs)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (tenants[i].last < 0)
            refs[tenants[i].value].place = ATT_AT_NOTHING;
        else
            tenants[kept++] = tenants[i];
    }
    return kept;
}

static int64_t largest_bytes(const tenant *tenants, int count)
{
    int64_t largest = 0;
    for (int i = 0; i < count; i++)
        largest = tenants[i].bytes > largest ? tenants[i].bytes : largest;
    return largest;
}

/* Values that are for watchers alone. */
static void mark_watched(const att_graph *graph, const bool *watchers, att_ref *refs)
{
    for (int i = 0; i < graph->values.count; i++)
        refs[i].watched = refs[i].place != ATT_AT_WEIGHTS && refs[i].place != ATT_AT_INPUT;
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].in_count && !watchers[i]; j++)
            if (graph->nodes.items[i].in[j] != ATT_NONE)
                refs[graph->nodes.items[i].in[j]].watched = false;
    for (int i = 0; i < graph->outputs.count; i++)
        if (!graph->outputs.items[i].probe)
            refs[graph->outputs.items[i].value].watched = false;
    for (int i = 0; i < graph->values.count; i++)
        if (refs[i].place == ATT_AT_GRADIENT)
            refs[i].watched = false;
}

static void write_refs(const att_graph *graph, const bool *watchers, const att_ref *refs, att_program *program)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        att_step *step = &program->steps[i];
        step->watcher = watchers[i];
        for (int j = 0; j < node->in_count; j++)
            step->in[j] = node->in[j] == ATT_NONE ? (att_ref){0} : refs[node->in[j]];
        for (int j = 0; j < node->out_count; j++)
            step->out[j] = refs[node->out[j]];
    }
}

/* Where every value lies: refs by value, and how much of the arena that takes. `work` holds the refs. */
static att_status place(const att_graph *graph, const att_plan *plan, const int *owner, const bool *left_out, int group,
                        att_arena *work, att_ref **out, size_t *arena_bytes)
{
    size_t values = (size_t)graph->values.count + 1;
    att_ref *refs = att_arena_allocate(work, values * sizeof *refs);
    tenant *tenants = att_arena_allocate(work, values * sizeof *tenants);
    tenant **met = att_arena_allocate(work, values * sizeof *met);
    int *tenant_of = att_arena_allocate(work, values * sizeof *tenant_of);
    if (!refs || !tenants || !met || !tenant_of)
        return att_fail_memory(graph->context, values * sizeof *tenants, "a plan");
    int count = collect(graph, plan, owner, left_out, group, refs, tenants, tenant_of);
    count = keep_read(tenants, count, refs);
    int64_t largest = largest_bytes(tenants, count);
    if (largest > MOST_BYTES)
        return att_fail_memory(graph->context, (size_t)largest, "a value between layers; smaller images take less");
    *arena_bytes = (size_t)settle_all(tenants, count, met);
    for (int i = 0; i < count; i++)
        refs[tenants[i].value].offset = tenants[i].offset;
    *out = refs;
    return ATT_OK;
}

att_status att_place_measure(const att_graph *graph, const att_plan *plan, const int *owner, const bool *watchers,
                             int group, size_t *arena_bytes)
{
    att_arena work = {.context = graph->context};
    att_ref *refs;
    att_status status = place(graph, plan, owner, watchers, group, &work, &refs, arena_bytes);
    att_arena_free(&work);
    return status;
}

att_status att_place_values(const att_graph *graph, const att_plan *plan, const int *owner, const bool *watchers,
                            att_program *program)
{
    att_arena work = {.context = graph->context};
    att_ref *refs;
    att_status status = place(graph, plan, owner, NULL, program->group, &work, &refs, &program->arena_bytes);
    if (status == ATT_OK) {
        mark_watched(graph, watchers, refs);
        write_refs(graph, watchers, refs, program);
    }
    att_arena_free(&work);
    return status;
}
