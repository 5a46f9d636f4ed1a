#include <string.h>

#include "core/error.h"
#include "plan/plan.h"

/* Marks the gradients (indices into att_plan.sums) that the segment's nodes add to. False if there are none. */
static bool find_gradients(const att_rewritten *from, const att_segment *segment, bool *used)
{
    bool any = false;
    for (int i = segment->first; i < segment->end; i++) {
        const att_node *node = &from->graph->nodes.items[i];
        for (int j = 0; j < node->out_count; j++) {
            int owner = from->owner[node->out[j]];
            if (owner < 0)
                continue;
            used[owner] = true;
            any = true;
        }
    }
    return any;
}

/* alignment in bytes of the spare lanes of a gradient */
enum { LANE_ALIGN = 64 };

static att_status add_sum(att_plan *plan, att_segment *segment, int index, size_t *bytes)
{
    int64_t lanes = plan->lanes - 1, count = plan->sums[index].elements;
    att_desc in = {.dtype = plan->dtype, .kind = ATT_SHARED, .shape = att_shape_of(lanes, count)};
    att_desc out = {.dtype = plan->dtype, .kind = ATT_SUMMED, .shape = att_shape_of(count)};
    att_unit *unit;
    ATT_TRY(att_prepare_flat(&plan->units, "sum_lanes", NULL, &in, 1, &out, 1, plan->teams * plan->parts, &unit));
    size_t lane_bytes = (size_t)count * att_dtype_size(plan->dtype);
    segment->sums[segment->sum_count++] =
        (att_lane_sum){.index = index, .spare = *bytes, .bytes = lane_bytes, .sum = unit};
    *bytes += ((size_t)lanes * lane_bytes + LANE_ALIGN - 1) / LANE_ALIGN * LANE_ALIGN;
    return ATT_OK;
}

static void place_gradients(const att_rewritten *from, const att_segment *segment, att_ref *refs)
{
    for (int i = segment->first; i < segment->end; i++) {
        const att_node *node = &from->graph->nodes.items[i];
        for (int j = 0; j < node->out_count; j++) {
            att_ref *ref = &refs[node->out[j]];
            for (int k = 0; ref->place == ATT_AT_GRADIENT && k < segment->sum_count; k++) {
                const att_lane_sum *sum = &segment->sums[k];
                if (ref->offset != sum->index)
                    continue;
                ref->spare = sum->spare;
                ref->row_bytes = (int64_t)sum->bytes;
            }
        }
    }
}

static att_status place_segment(att_plan *plan, const att_rewritten *from, att_segment *segment, bool *used,
                                att_ref *refs)
{
    size_t room = (size_t)plan->sum_count * sizeof *segment->sums, bytes = 0;
    memset(used, 0, (size_t)plan->sum_count * sizeof *used);
    if (!find_gradients(from, segment, used))
        return ATT_OK;
    segment->sums = att_arena_allocate(&plan->arena, room);
    if (!segment->sums)
        return att_fail_memory(plan->context, room, "a plan");
    for (int i = 0; i < plan->sum_count; i++)
        if (used[i])
            ATT_TRY(add_sum(plan, segment, i, &bytes));
    plan->spare_bytes = bytes > plan->spare_bytes ? bytes : plan->spare_bytes;
    place_gradients(from, segment, refs);
    return ATT_OK;
}

att_status att_place_lanes(att_plan *plan, const att_rewritten *from, att_ref *refs)
{
    if (!from->owner || plan->lanes == 1 || plan->sum_count == 0)
        return ATT_OK;
    bool *used = att_allocate_array(plan->context, (size_t)plan->sum_count, sizeof *used);
    if (!used)
        return att_fail_memory(plan->context, (size_t)plan->sum_count, "a plan");
    att_status status = ATT_OK;
    for (int i = 0; i < plan->segment_count && status == ATT_OK; i++)
        status = place_segment(plan, from, &plan->segments[i], used, refs);
    att_free(plan->context, used);
    return status;
}
