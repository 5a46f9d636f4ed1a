#include <string.h>

#include "base/core/error.h"
#include "engine/ops/attention.h"
#include "engine/plan/plan.h"

/* alignment in bytes of the rows that are gathered, and of packs */
enum { GATHER_ALIGN = 64, PACK_ALIGN = 64 };

/* --- packs ------------------------------------------------------------------------------------------------------- */

/* Whether the step of the segment can use `pack`: same kernel, same weights, same layout. */
static bool same_pack(const att_pack *pack, const att_step *step, int segment)
{
    const att_unit *a = pack->unit, *b = step->unit;
    if (pack->once || pack->segment != segment || a->kernel != b->kernel ||
        a->prepared.packed_key != b->prepared.packed_key || a->problem.in_count != b->problem.in_count)
        return false;
    for (int i = 0; i < a->problem.in_count; i++) {
        bool shared = att_is_shared(&pack->in[i]);
        if (shared != att_is_shared(&step->in[i]) ||
            (shared && (pack->in[i].place != step->in[i].place || pack->in[i].offset != step->in[i].offset ||
                        !att_shape_equal(a->problem.in[i].shape, b->problem.in[i].shape))))
            return false;
    }
    return true;
}

/* With several segments, weights are packed for one segment at a time. They change with each update, so most packs are
 * computed as often as in the prologue. Recorded runs (session/recorded.c) leave packs to the prologue. */
static int segment_of_pack(const att_plan *plan, const att_node *node)
{
    return node->stage == ATT_BODY && plan->segment_count > 1 && plan->units.backend->memory->host ? node->segment : -1;
}

static att_status add_pack(att_plan *plan, const att_node *node, att_step *step)
{
    const bool once = node->stage != ATT_BODY;
    const int segment = segment_of_pack(plan, node);
    for (int i = 0; i < plan->packs.count && !once; i++)
        if (same_pack(&plan->packs.items[i], step, segment)) {
            step->packed = i;
            return ATT_OK;
        }
    if (!att_list_grow(plan->context, (void *)&plan->packs.items, plan->packs.count, &plan->packs.capacity,
                       sizeof *plan->packs.items))
        return att_fail_memory(plan->context, sizeof *plan->packs.items, "a plan");
    step->packed = plan->packs.count;
    att_pack *pack = &plan->packs.items[plan->packs.count++];
    att_segment *of = segment < 0 ? NULL : &plan->segments[segment];
    size_t *total = of ? &of->pack_bytes : &plan->packed_bytes;
    *pack = (att_pack){.once = once, .segment = segment, .unit = step->unit, .in = step->in, .offset = *total};
    *total += (step->unit->prepared.packed_bytes + PACK_ALIGN - 1) / PACK_ALIGN * PACK_ALIGN;
    if (of && of->pack_count++ == 0)
        of->first_pack = step->packed;
    return ATT_OK;
}

/* --- steps ------------------------------------------------------------------------------------------------------- */

/* Neighbouring nodes share one copy of their scope. */
static att_status copy_scope(att_plan *plan, const char *scope, att_step *step)
{
    if (scope != plan->last_scope.from)
        plan->last_scope = (att_scope_copy){scope, att_arena_string(&plan->arena, scope)};
    step->scope = plan->last_scope.to;
    return step->scope ? ATT_OK : att_fail_memory(plan->context, strlen(scope), "a plan");
}

att_status att_prepare_step(att_plan *plan, const att_rewritten *from, int node, int group, int parts, att_step *step)
{
    const att_node *of = &from->graph->nodes.items[node];
    att_unit *unit;
    ATT_TRY(att_prepare_unit(&plan->units, from->graph, of, from->readers, group, parts, &unit));
    ATT_TRY(copy_scope(plan, of->scope, step));
    step->unit = unit;
    step->packed = -1;
    return unit->prepared.packed_bytes > 0 ? add_pack(plan, of, step) : ATT_OK;
}

size_t att_unit_scratch(const att_unit *unit)
{
    return (unit->prepared.scratch_bytes + 63) / 64 * 64;
}

void att_grow_scratch(size_t *scratch, const att_unit *unit)
{
    size_t bytes = att_unit_scratch(unit);
    *scratch = bytes > *scratch ? bytes : *scratch;
}

static att_status add_program(att_plan *plan, const att_rewritten *from, att_segment *segment, att_ref *refs, int group,
                              int parts)
{
    if (att_segment_program(segment, group, parts))
        return ATT_OK;
    int count = segment->end - segment->first, completed = 0;
    size_t bytes = (size_t)count * sizeof(att_step);
    att_program *program = &segment->programs[segment->program_count];
    *program = (att_program){.group = group, .parts = parts, .step_count = count};
    program->steps = att_arena_allocate(&plan->arena, bytes);
    if (!program->steps)
        return att_fail_memory(plan->context, bytes, "a plan");
    ATT_TRY(att_place_local(plan, from, segment, refs, program));
    for (int i = 0; i < count; i++) {
        ATT_TRY(att_prepare_step(plan, from, segment->first + i, group, parts, &program->steps[i]));
        while (completed < segment->sum_count && segment->sums[completed].last <= segment->first + i)
            completed++;
        program->steps[i].completed = completed;
    }
    ATT_TRY(att_place_local(plan, from, segment, refs, program)); /* units are known, and so is their scratch */
    segment->program_count++;
    return ATT_OK;
}

static att_status add_programs(att_plan *plan, const att_rewritten *from, att_segment *segment, att_ref *refs)
{
    size_t most = 2; /* group 1, and one sample on all threads */
    for (int group = segment->group; group > 1; group /= 2)
        most++;
    segment->programs = att_arena_allocate(&plan->arena, most * sizeof *segment->programs);
    if (!segment->programs)
        return att_fail_memory(plan->context, most * sizeof *segment->programs, "a plan");
    for (int group = segment->group; group >= 1; group /= 2)
        ATT_TRY(add_program(plan, from, segment, refs, group, segment->parts));
    int threads = att_backend_threads(plan->units.backend, plan->context);
    if (plan->purpose == ATT_INFER && threads > 1) /* for low latency, one sample on all threads */
        return add_program(plan, from, segment, refs, 1, threads);
    return ATT_OK;
}

/* Called when all packs of the segment are known. */
static void place_arenas(att_segment *segment)
{
    for (int i = 0; i < segment->program_count; i++)
        segment->programs[i].base = segment->lane_bytes + segment->pack_bytes;
}

static bool is_sample_place(att_place place)
{
    return place == ATT_AT_STORE || place == ATT_AT_INPUT || place == ATT_AT_OUTPUT;
}

static bool same_place(const att_ref *a, const att_ref *b)
{
    return a->place == b->place && a->offset == b->offset;
}

/* Redirects the reference to the rows of all processes. */
static void gather_ref(att_segment *segment, att_ref *ref, size_t *bytes)
{
    int index = 0;
    while (index < segment->gather_count && !same_place(&segment->gathers[index].from, ref))
        index++;
    if (index == segment->gather_count) {
        segment->gathers[segment->gather_count++] = (att_gather){.from = *ref, .offset = (int64_t)*bytes};
        *bytes += ((size_t)ref->row_bytes + GATHER_ALIGN - 1) / GATHER_ALIGN * GATHER_ALIGN;
    }
    ref->offset = segment->gathers[index].offset;
    ref->place = ATT_AT_GATHERED;
}

/* Lets the reductions read the samples of all processes. */
static att_status add_gathers(att_plan *plan, att_segment *segment)
{
    size_t most = 0, bytes = 0;
    for (int i = 0; i < segment->reduction_count; i++)
        most += (size_t)segment->reductions[i].unit->problem.in_count;
    segment->gathers = att_arena_allocate(&plan->arena, (most + 1) * sizeof *segment->gathers);
    if (!segment->gathers)
        return att_fail_memory(plan->context, most * sizeof *segment->gathers, "a plan");
    for (int i = 0; i < segment->reduction_count; i++) {
        const att_step *step = &segment->reductions[i];
        for (int j = 0; j < step->unit->problem.in_count; j++)
            if (is_sample_place(step->in[j].place))
                gather_ref(segment, &step->in[j], &bytes);
    }
    plan->gathered_bytes = bytes > plan->gathered_bytes ? bytes : plan->gathered_bytes;
    return ATT_OK;
}

/* All threads that run the body share each reduction. */
static att_status add_reductions(att_plan *plan, const att_rewritten *from, att_segment *segment, const att_ref *refs)
{
    size_t bytes = (size_t)segment->reduction_count * sizeof(att_step);
    segment->reductions = att_arena_allocate(&plan->arena, bytes);
    if (!segment->reductions)
        return att_fail_memory(plan->context, bytes, "a plan");
    for (int i = 0; i < segment->reduction_count; i++) {
        int node = segment->end + i;
        att_step *step = &segment->reductions[i];
        ATT_TRY(att_place_node(plan, &from->graph->nodes.items[node], refs, step));
        step->observer = from->observers[node];
        ATT_TRY(att_prepare_step(plan, from, node, 1, att_plan_threads(plan), step));
        att_grow_scratch(&plan->scratch_bytes, step->unit);
    }
    return att_comm_size(plan->comm) > 1 && plan->sync_statistics ? add_gathers(plan, segment) : ATT_OK;
}

const att_program *att_segment_program(const att_segment *segment, int group, int parts)
{
    for (int i = 0; i < segment->program_count; i++)
        if (segment->programs[i].group == group && segment->programs[i].parts == parts)
            return &segment->programs[i];
    return NULL;
}

bool att_node_draws(const att_node *node)
{
    bool is_attention = strcmp(node->op->name, "attention") == 0 || strcmp(node->op->name, "attention_grad") == 0;
    return (node->op->flags & ATT_OP_DRAWS) || (is_attention && ATT_ATTRS(node, attention)->drops);
}

static bool any_draws(const att_graph *graph)
{
    for (int i = 0; i < graph->nodes.count; i++)
        if (att_node_draws(&graph->nodes.items[i]))
            return true;
    return false;
}

att_status att_plan_lower(att_plan *plan, const att_rewritten *from)
{
    att_ref *refs;
    ATT_TRY(att_place_shared(plan, from, &refs));
    att_status status = att_place_lanes(plan, from, refs);
    if (status == ATT_OK && from->first_is_frozen)
        status = att_list_frozen(plan, from, refs);
    for (int i = 0; i < plan->segment_count && status == ATT_OK; i++) {
        status = add_programs(plan, from, &plan->segments[i], refs);
        if (status == ATT_OK)
            status = add_reductions(plan, from, &plan->segments[i], refs);
        place_arenas(&plan->segments[i]);
    }
    if (status == ATT_OK)
        status = att_lower_once(plan, from, refs);
    plan->draws = any_draws(from->graph);
    att_free(plan->context, refs);
    return status;
}
