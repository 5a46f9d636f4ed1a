#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "engine/passes/segment.h"
#include "engine/plan/plan.h"

enum { ARENA_ALIGN = 64 };
/* Limit on one value, so that the sum of many values fits into 64 bits. */
static const int64_t MOST_BYTES = (int64_t)1 << 46;

/* A value that needs memory from node `first`, which writes it, to node `last`, which is the last to read it. In the
 * store, which has rows of all samples, this holds for each row; other rows are in use at any time between begin and
 * end, the segments of the two nodes. In the arena these are the nodes, too. */
typedef struct buffer {
    att_value value;
    int first, last, begin, end;
    int64_t row, bytes, offset; /* row: bytes from sample to sample; bytes: with the room up to the next value */
} buffer;

static int larger_first(const void *a, const void *b)
{
    const buffer *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->value - y->value;
}

static int lower_first(const void *a, const void *b)
{
    const buffer *x = *(buffer *const *)a, *y = *(buffer *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->value - y->value;
}

/* Whether a row of the two can have the same memory, one after the other, though other rows are in use. */
static bool can_follow(const buffer *a, const buffer *b)
{
    return a->row == b->row && (a->last < b->first || b->last < a->first);
}

/* Whether the buffer, at the place of `at`, has rows in common only with buffers that it can follow. */
static bool fits_at(const buffer *added, const buffer *at, buffer **overlapping, int count)
{
    for (int i = 0; i < count; i++) {
        const buffer *other = overlapping[i];
        if (other->offset < at->offset + added->bytes && at->offset < other->offset + other->bytes &&
            !(other->offset == at->offset && can_follow(added, other)))
            return false;
    }
    return true;
}

/* Finds the lowest offset at which the buffer takes the rows of another, or else at which it does not overlap any
 * placed buffer with an intersecting lifetime. `overlapping` has room for all placed buffers. */
static void place_buffer(buffer *added, buffer *placed, int count, buffer **overlapping)
{
    int overlap_count = 0;
    for (int i = 0; i < count; i++)
        if (placed[i].begin <= added->end && added->begin <= placed[i].end)
            overlapping[overlap_count++] = &placed[i];
    qsort(overlapping, (size_t)overlap_count, sizeof *overlapping, lower_first);
    for (int i = 0; i < overlap_count; i++)
        if (can_follow(added, overlapping[i]) && fits_at(added, overlapping[i], overlapping, overlap_count)) {
            added->offset = overlapping[i]->offset;
            return;
        }
    int64_t offset = 0;
    for (int i = 0; i < overlap_count && overlapping[i]->offset < offset + added->bytes; i++)
        if (overlapping[i]->offset + overlapping[i]->bytes > offset)
            offset = overlapping[i]->offset + overlapping[i]->bytes;
    added->offset = offset;
}

static int64_t place_all(buffer *buffers, int count, buffer **overlapping)
{
    int64_t top = 0;
    qsort(buffers, (size_t)count, sizeof *buffers, larger_first);
    for (int i = 0; i < count; i++) {
        place_buffer(&buffers[i], buffers, i, overlapping);
        if (buffers[i].offset + buffers[i].bytes > top)
            top = buffers[i].offset + buffers[i].bytes;
    }
    return top;
}

static int64_t largest_bytes(const buffer *buffers, int count)
{
    int64_t largest = 0;
    for (int i = 0; i < count; i++)
        largest = buffers[i].bytes > largest ? buffers[i].bytes : largest;
    return largest;
}

/* Assigns offsets to the buffers and sorts them by size. *bytes: their total. */
static att_status plan_offsets(att_context *context, buffer *buffers, int count, size_t *bytes)
{
    buffer **overlapping = att_allocate_array(context, (size_t)count + 1, sizeof *overlapping);
    if (!overlapping)
        return att_fail_memory(context, (size_t)count * sizeof *overlapping, "a plan");
    int64_t largest = largest_bytes(buffers, count);
    att_status status = ATT_OK;
    if (largest > MOST_BYTES)
        status = att_fail_memory(context, (size_t)largest, "a value between layers; smaller images take less");
    else
        *bytes = (size_t)place_all(buffers, count, overlapping);
    att_free(context, overlapping);
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

/* --- values that outlive a segment ------------------------------------------------------------------------------- */

/* Whether the node gives a shared value another shape. */
static bool reshapes_shared(const att_node *node, const att_ref *refs)
{
    return strcmp(node->op->name, "reshape") == 0 && att_is_shared(&refs[node->in[0]]);
}

bool att_node_is_view(const att_node *node, const att_ref *refs)
{
    const att_ref *x = &refs[node->in[0]], *y = &refs[node->out[0]];
    return reshapes_shared(node, refs) && y->place == x->place && y->offset == x->offset;
}

/* Places the outputs of a node of the prologue or epilogue, except those that are added to gradients. Other shapes of
 * shared values have their places. */
static void place_derived(att_plan *plan, const att_rewritten *from, const att_node *node, att_ref *refs)
{
    for (int i = 0; i < node->out_count && node->stage != ATT_BODY; i++) {
        att_value value = node->out[i];
        if (refs[value].place != ATT_AT_ARENA)
            continue;
        if (reshapes_shared(node, refs)) {
            refs[value] = refs[node->in[0]];
            continue;
        }
        refs[value] = (att_ref){.place = ATT_AT_DERIVED, .offset = (int64_t)plan->derived_bytes};
        plan->derived_bytes += (size_t)aligned_bytes(from->graph, value, 1);
    }
}

/* Places parameters, gradients, inputs, outputs, batch values, derived values and constants. Of the other values, those
 * that are read are in the arena, and the rest has no place. */
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
            refs[value] = (att_ref){.place = from->readers[value] ? ATT_AT_ARENA : ATT_AT_NONE};
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

/* last[value]: the last node that reads the value, -1 if none does. kept[value]: the value is kept for the batch. */
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
            int producer_segment = graph->nodes.items[graph->values.items[value].node].segment;
            last[value] = i;
            kept[value] |= reduces || producer_segment < node->segment;
        }
    }
}

static att_status place_kept(att_plan *plan, const att_rewritten *from, att_ref *refs, att_arena *work)
{
    const att_graph *graph = from->graph;
    size_t values = (size_t)graph->values.count + 1;
    int *last = att_arena_allocate(work, values * sizeof *last);
    bool *kept = att_arena_allocate(work, values * sizeof *kept);
    buffer *buffers = att_arena_allocate(work, values * sizeof *buffers);
    if (!last || !kept || !buffers)
        return att_fail_memory(graph->context, values * sizeof *buffers, "a plan");
    find_kept(from, refs, last, kept);
    int count = 0;
    for (att_value value = 0; value < graph->values.count; value++)
        if (kept[value]) {
            const int first = graph->values.items[value].node;
            buffers[count++] = (buffer){.value = value,
                                        .first = first,
                                        .last = last[value],
                                        .begin = graph->nodes.items[first].segment,
                                        .end = graph->nodes.items[last[value]].segment,
                                        .row = row_bytes(graph, value),
                                        .bytes = aligned_bytes(graph, value, 1)};
        }
    ATT_TRY(plan_offsets(graph->context, buffers, count, &plan->store_bytes));
    for (int i = 0; i < count; i++)
        refs[buffers[i].value] = (att_ref){
            .place = ATT_AT_STORE, .offset = buffers[i].offset, .row_bytes = row_bytes(graph, buffers[i].value)};
    return ATT_OK;
}

/* Marks the values that only observers and probes read. */
static void mark_observed(const att_rewritten *from, att_ref *refs)
{
    const att_graph *graph = from->graph;
    for (int i = 0; i < graph->values.count; i++)
        refs[i].observed =
            refs[i].place != ATT_AT_WEIGHTS && refs[i].place != ATT_AT_INPUT && refs[i].place != ATT_AT_DERIVED;
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].in_count && !from->observers[i]; j++)
            if (graph->nodes.items[i].in[j] != ATT_NONE)
                refs[graph->nodes.items[i].in[j]].observed = false;
    for (int i = 0; i < graph->outputs.count; i++)
        if (!graph->outputs.items[i].probe)
            refs[graph->outputs.items[i].value].observed = false;
    for (int i = 0; i < graph->values.count; i++)
        if (refs[i].place == ATT_AT_GRADIENT)
            refs[i].observed = false;
}

att_status att_place_shared(att_plan *plan, const att_rewritten *from, att_ref **out)
{
    const att_graph *graph = from->graph;
    size_t values = (size_t)graph->values.count + 1;
    att_ref *refs;
    ATT_TRY(att_new(graph->context, &refs, values, "a plan"));
    plan->batch_bytes = 0;
    plan->derived_bytes = 0;
    place_fixed(plan, from, refs);
    att_arena work = {.context = graph->context};
    att_status status = place_kept(plan, from, refs, &work);
    att_arena_free(&work);
    mark_observed(from, refs);
    if (status != ATT_OK)
        att_free(graph->context, refs);
    else
        *out = refs;
    return status;
}

/* --- values that are local to a segment -------------------------------------------------------------------------- */

/* The scratch of step i of a program has the number -1 - i in place of a value. */
static att_value number_of_scratch(int step)
{
    return -1 - step;
}

/* Adds the scratch of each step, if the program (NULL: none) has units. */
static int collect_scratch(const att_segment *segment, const att_program *program, buffer *buffers, int count)
{
    for (int i = 0; program && i < program->step_count; i++) {
        const att_unit *unit = program->steps[i].unit;
        const int node = segment->first + i;
        const size_t bytes = unit ? att_unit_scratch(unit) * (size_t)program->parts : 0;
        if (bytes > 0)
            buffers[count++] = (buffer){.value = number_of_scratch(i),
                                        .first = node,
                                        .last = node,
                                        .begin = node,
                                        .end = node,
                                        .bytes = (int64_t)bytes};
    }
    return count;
}

/* Collects a segment's local values with their lifetimes. Values that nothing reads have last = -1. If `observed` is
 * false, both the reads and the outputs of observers are left out. buffer_of[value] is -1 for all values on entry. */
static int collect_buffers(const att_rewritten *from, const att_segment *segment, const att_ref *refs, bool observed,
                           int group, buffer *buffers, int *buffer_of)
{
    const att_graph *graph = from->graph;
    int count = 0;
    for (int i = segment->first; i < segment->end; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (from->observers[i] && !observed)
            continue;
        for (int j = 0; j < node->in_count; j++)
            if (node->in[j] != ATT_NONE && buffer_of[node->in[j]] >= 0)
                buffers[buffer_of[node->in[j]]].last = buffers[buffer_of[node->in[j]]].end = i;
        for (int j = 0; j < node->out_count; j++) {
            att_value value = node->out[j];
            if (refs[value].place != ATT_AT_ARENA)
                continue;
            buffer_of[value] = count;
            buffers[count++] = (buffer){.value = value,
                                        .first = i,
                                        .last = -1,
                                        .begin = i,
                                        .end = -1,
                                        .bytes = aligned_bytes(graph, value, group)};
        }
    }
    return count;
}

/* Plans the memory of the segment's local values that are read, and of the program's scratch (NULL: of none). The
 * caller frees *out. */
static att_status plan_segment(const att_rewritten *from, const att_segment *segment, const att_ref *refs,
                               bool observed, int group, const att_program *program, buffer **out, int *kept,
                               size_t *arena_bytes)
{
    const att_graph *graph = from->graph;
    size_t most = 1;
    for (int i = segment->first; i < segment->end; i++)
        most += (size_t)graph->nodes.items[i].out_count + 1;
    buffer *buffers = att_allocate_array(graph->context, most, sizeof *buffers);
    int *buffer_of = att_allocate_array(graph->context, (size_t)graph->values.count + 1, sizeof *buffer_of);
    att_status status =
        buffers && buffer_of ? ATT_OK : att_fail_memory(graph->context, most * sizeof *buffers, "a plan");
    if (status == ATT_OK) {
        memset(buffer_of, -1, (size_t)graph->values.count * sizeof *buffer_of);
        int count = collect_buffers(from, segment, refs, observed, group, buffers, buffer_of);
        *kept = 0;
        for (int i = 0; i < count; i++)
            if (buffers[i].last >= 0)
                buffers[(*kept)++] = buffers[i];
        *kept = collect_scratch(segment, program, buffers, *kept);
        status = plan_offsets(graph->context, buffers, *kept, arena_bytes);
    }
    att_free(graph->context, buffer_of);
    if (status != ATT_OK)
        att_free(graph->context, buffers);
    else
        *out = buffers;
    return status;
}

att_status att_measure_arena(const att_plan *plan, const att_rewritten *from, const att_segment *segment,
                             const att_ref *refs, int group, size_t *arena_bytes)
{
    buffer *buffers;
    int count;
    ATT_TRY(plan_segment(from, segment, refs, false, group, NULL, &buffers, &count, arena_bytes));
    att_free(plan->context, buffers);
    return ATT_OK;
}

att_status att_place_node(att_plan *plan, const att_node *node, const att_ref *refs, att_step *step)
{
    size_t bytes = ((size_t)node->in_count + (size_t)node->out_count) * sizeof *step->in;
    step->in = step->in ? step->in : att_arena_allocate(&plan->arena, bytes);
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
        step->observer = from->observers[i];
        ATT_TRY(att_place_node(plan, &from->graph->nodes.items[i], refs, step));
    }
    return ATT_OK;
}

att_status att_place_local(att_plan *plan, const att_rewritten *from, const att_segment *segment, att_ref *refs,
                           att_program *program)
{
    buffer *buffers;
    int count;
    ATT_TRY(plan_segment(from, segment, refs, true, program->group, program, &buffers, &count, &program->arena_bytes));
    for (int i = 0; i < count; i++)
        if (buffers[i].value >= 0)
            refs[buffers[i].value].offset = buffers[i].offset;
        else
            program->steps[number_of_scratch(buffers[i].value)].scratch = (size_t)buffers[i].offset;
    att_free(plan->context, buffers);
    return write_refs(plan, from, segment, refs, program);
}
