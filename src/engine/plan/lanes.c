#include <stdlib.h>

#include "base/core/error.h"
#include "engine/plan/plan.h"

/* Whether what reductions add to gradients is the share of this process, as lanes are. Otherwise they see the samples
 * of all processes, and every process adds the same. */
static bool reductions_are_shares(const att_plan *plan)
{
    return att_comm_size(plan->comm) > 1 && !plan->sync_statistics;
}

/* The end of the nodes whose gradients are summed over lanes. */
static int lanes_end(const att_plan *plan, const att_segment *segment)
{
    return segment->end + (reductions_are_shares(plan) ? segment->reduction_count : 0);
}

/* The last node of the segment that adds to each gradient (index into att_plan.sums), -1 for none. False if there are
 * none at all. */
static bool find_gradients(const att_plan *plan, const att_rewritten *from, const att_segment *segment, int *last)
{
    bool any = false;
    for (int i = 0; i < plan->sum_count; i++)
        last[i] = -1;
    for (int i = segment->first; i < lanes_end(plan, segment); i++) {
        const att_node *node = &from->graph->nodes.items[i];
        for (int j = 0; j < node->out_count; j++) {
            int owner = from->owner[node->out[j]];
            if (owner < 0)
                continue;
            last[owner] = i;
            any = true;
        }
    }
    return any;
}

/* alignment in bytes of the spare lanes of a gradient */
enum { LANE_ALIGN = 64 };

static att_status add_sum(att_plan *plan, att_segment *segment, int index, int last, size_t *bytes)
{
    int64_t lanes = att_spare_lanes(plan), count = plan->sums[index].elements;
    att_desc in = {.dtype = plan->dtype, .kind = ATT_SHARED, .shape = att_shape_of(lanes, count)};
    att_desc out = {.dtype = plan->dtype, .kind = ATT_SUMMED, .shape = att_shape_of(count)};
    att_unit *unit = NULL;
    if (lanes > 0)
        ATT_TRY(att_prepare_flat(&plan->units, "sum_lanes", NULL, &in, 1, &out, 1, plan->teams * plan->parts, &unit));
    size_t lane_bytes = (size_t)count * att_dtype_size(plan->dtype);
    segment->sums[segment->sum_count++] =
        (att_lane_sum){.index = index, .last = last, .spare = *bytes, .bytes = lane_bytes, .sum = unit};
    *bytes += ((size_t)lanes * lane_bytes + LANE_ALIGN - 1) / LANE_ALIGN * LANE_ALIGN;
    return ATT_OK;
}

static int completed_first(const void *a, const void *b)
{
    const att_lane_sum *x = a, *y = b;
    return x->last != y->last ? x->last - y->last : x->index - y->index;
}

static void place_gradients(const att_plan *plan, const att_rewritten *from, const att_segment *segment, att_ref *refs)
{
    for (int i = segment->first; i < lanes_end(plan, segment); i++) {
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

/* Whether reductions of the segment add to a gradient of which last[] knows a node. */
static bool reductions_add(const att_rewritten *from, const att_segment *segment, const int *last)
{
    for (int i = segment->end; i < segment->end + segment->reduction_count; i++) {
        const att_node *node = &from->graph->nodes.items[i];
        for (int j = 0; j < node->out_count; j++)
            if (from->owner[node->out[j]] >= 0 && last[from->owner[node->out[j]]] >= 0)
                return true;
    }
    return false;
}

/* *bytes: of the segment's spare lanes. */
static att_status add_sums(att_plan *plan, const att_rewritten *from, att_segment *segment, int *last, size_t *bytes)
{
    size_t room = (size_t)plan->sum_count * sizeof *segment->sums;
    *bytes = 0;
    if (!find_gradients(plan, from, segment, last))
        return ATT_OK;
    segment->sums = att_arena_allocate(&plan->arena, room);
    if (!segment->sums)
        return att_fail_memory(plan->context, room, "a plan");
    for (int i = 0; i < plan->sum_count; i++)
        if (last[i] >= 0)
            ATT_TRY(add_sum(plan, segment, i, last[i], bytes));
    segment->reductions_repeat = !reductions_are_shares(plan) && reductions_add(from, segment, last);
    qsort(segment->sums, (size_t)segment->sum_count, sizeof *segment->sums, completed_first);
    return ATT_OK;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static bool shares_sum(const att_segment *a, const att_segment *b)
{
    for (int i = 0; i < a->sum_count; i++)
        for (int j = 0; j < b->sum_count; j++)
            if (a->sums[i].index == b->sums[j].index)
                return true;
    return false;
}

/* While the sums of one segment travel between processes, the next segment runs: neighbours have spare lanes of their
 * own. The second of two begins behind the largest of the first ones. */
static att_status place_alternately(att_plan *plan, const att_rewritten *from, int *last)
{
    size_t halves[2] = {0}, bytes;
    int turn = 0;
    const att_segment *before = NULL; /* the last segment with sums */
    for (int i = 0; i < plan->segment_count; i++) {
        ATT_TRY(add_sums(plan, from, &plan->segments[i], last, &bytes));
        att_segment *segment = &plan->segments[i];
        segment->turn = turn;
        if (segment->sum_count == 0)
            continue;
        segment->repeats = before && shares_sum(before, segment);
        halves[turn] = larger(halves[turn], bytes);
        turn = 1 - turn;
        before = segment;
    }
    for (int i = 0; i < plan->segment_count; i++)
        for (int j = 0; plan->segments[i].turn == 1 && j < plan->segments[i].sum_count; j++)
            plan->segments[i].sums[j].spare += halves[0];
    plan->spare_bytes = halves[0] + halves[1];
    return ATT_OK;
}

/* In the memory of segments. */
static att_status place_together(att_plan *plan, const att_rewritten *from, int *last)
{
    for (int i = 0; i < plan->segment_count; i++) {
        size_t bytes;
        ATT_TRY(add_sums(plan, from, &plan->segments[i], last, &bytes));
        plan->segments[i].lane_bytes = bytes;
        plan->spare_bytes = larger(plan->spare_bytes, bytes);
    }
    return ATT_OK;
}

att_status att_place_lanes(att_plan *plan, const att_rewritten *from, att_ref *refs)
{
    if (!from->owner || plan->lanes == 1 || plan->sum_count == 0)
        return ATT_OK;
    int *last;
    ATT_TRY(att_new(plan->context, &last, (size_t)plan->sum_count, "a plan"));
    att_status status =
        att_comm_size(plan->comm) > 1 ? place_alternately(plan, from, last) : place_together(plan, from, last);
    att_free(plan->context, last);
    for (int i = 0; i < plan->segment_count && status == ATT_OK; i++)
        place_gradients(plan, from, &plan->segments[i], refs);
    return status;
}
