#include <string.h>

#include "core/error.h"
#include "plan/plan.h"

/* Parameters whose gradients the segment's nodes add to, in `made`; false: there are none. */
static bool find_gradients(const att_rewritten *from, const att_segment *segment, bool *made)
{
    bool any = false;
    for (int i = segment->first; i < segment->end; i++) {
        const att_node *node = &from->graph->nodes.items[i];
        for (int j = 0; j < node->out_count; j++) {
            int owner = from->owner[node->out[j]];
            if (owner < 0)
                continue;
            made[owner] = true;
            any = true;
        }
    }
    return any;
}

static int64_t padded(int64_t elements)
{
    return (elements + ATT_WEIGHT_ALIGN - 1) / ATT_WEIGHT_ALIGN * ATT_WEIGHT_ALIGN;
}

/* Neighbours in [begin, end) of the layout make one range. */
static int add_ranges(const att_plan *plan, const bool *made, int64_t begin, int64_t end, att_lane_range *ranges,
                      int count)
{
    int first = count;
    for (int i = 0; i < plan->parameter_count; i++) {
        int64_t offset = plan->layout.offsets[i], elements = padded(att_shape_count(plan->parameters[i].shape));
        if (!made[i] || offset < begin || offset >= end)
            continue;
        if (count > first && ranges[count - 1].offset + ranges[count - 1].count == offset)
            ranges[count - 1].count += elements;
        else
            ranges[count++] = (att_lane_range){.offset = offset, .count = elements};
    }
    return count;
}

/* Range after range, in each all lanes but the first. */
static att_status place_ranges(att_plan *plan, att_segment *segment)
{
    int64_t lanes = plan->lanes - 1;
    size_t bytes = 0, element = att_dtype_size(plan->dtype);
    for (int i = 0; i < segment->range_count; i++) {
        att_lane_range *range = &segment->ranges[i];
        range->spare = bytes;
        bytes += (size_t)(lanes * range->count) * element;
        att_desc in = {.dtype = plan->dtype, .kind = ATT_SHARED, .shape = att_shape_of(lanes, range->count)};
        att_desc out = {.dtype = plan->dtype, .kind = ATT_SUMMED, .shape = att_shape_of(range->count)};
        att_unit *unit;
        ATT_TRY(att_prepare_flat(plan, "sum_lanes", NULL, &in, 1, &out, 1, plan->teams * plan->parts, &unit));
        range->sum = unit;
    }
    plan->spare_bytes = bytes > plan->spare_bytes ? bytes : plan->spare_bytes;
    return ATT_OK;
}

static void place_gradients(const att_plan *plan, const att_rewritten *from, const att_segment *segment, att_ref *refs)
{
    size_t element = att_dtype_size(plan->dtype);
    for (int i = segment->first; i < segment->end; i++) {
        const att_node *node = &from->graph->nodes.items[i];
        for (int j = 0; j < node->out_count; j++) {
            att_ref *ref = &refs[node->out[j]];
            for (int k = 0; ref->place == ATT_AT_GRADIENT && k < segment->range_count; k++) {
                const att_lane_range *range = &segment->ranges[k];
                if (ref->offset < range->offset || ref->offset >= range->offset + range->count)
                    continue;
                ref->spare = range->spare + (size_t)(ref->offset - range->offset) * element;
                ref->row_bytes = range->count * (int64_t)element;
            }
        }
    }
}

static att_status place_segment(att_plan *plan, const att_rewritten *from, att_segment *segment, bool *made,
                                att_ref *refs)
{
    size_t bytes = (size_t)plan->parameter_count * sizeof *segment->ranges;
    memset(made, 0, (size_t)plan->parameter_count * sizeof *made);
    if (!find_gradients(from, segment, made))
        return ATT_OK;
    segment->ranges = att_arena_allocate(&plan->arena, bytes);
    if (!segment->ranges)
        return att_fail_memory(plan->context, bytes, "a plan");
    int decayed = add_ranges(plan, made, 0, plan->layout.decayed, segment->ranges, 0);
    segment->range_count = add_ranges(plan, made, plan->layout.decayed, plan->layout.trained, segment->ranges, decayed);
    ATT_TRY(place_ranges(plan, segment));
    place_gradients(plan, from, segment, refs);
    return ATT_OK;
}

att_status att_place_lanes(att_plan *plan, const att_rewritten *from, att_ref *refs)
{
    if (!from->owner || plan->lanes == 1)
        return ATT_OK;
    bool *made = att_allocate_array(plan->context, (size_t)plan->parameter_count, sizeof *made);
    if (!made)
        return att_fail_memory(plan->context, (size_t)plan->parameter_count, "a plan");
    att_status status = ATT_OK;
    for (int i = 0; i < plan->segment_count && status == ATT_OK; i++)
        status = place_segment(plan, from, &plan->segments[i], made, refs);
    att_free(plan->context, made);
    return status;
}
