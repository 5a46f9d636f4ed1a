#include "base/core/context.h"
#include "base/core/error.h"
#include "engine/plan/plan.h"

static const att_desc *desc_of(const att_graph *graph, att_value value)
{
    return &graph->values.items[value].desc;
}

/* Rows per sample of a node's output. For a node that sums over rows, such as a weight's gradient: rows of its first
 * input. */
static int64_t node_rows(const att_graph *graph, const att_node *node)
{
    const att_desc *counted = desc_of(graph, node->out[0]);
    bool product = att_node_cost(graph, node).macs > 0;
    if (counted->kind != ATT_SAMPLE || (product && desc_of(graph, node->in[0])->shape.rank > counted->shape.rank))
        counted = desc_of(graph, node->in[0]);
    int rank = counted->shape.rank;
    return rank < 2 ? 1 : att_shape_count(counted->shape) / counted->shape.dims[rank - 1];
}

/* The most rows of any node of the segment or, if `products`, of any matrix product. */
static int64_t most_rows(const att_rewritten *from, const att_segment *segment, bool products)
{
    int64_t most = 1;
    for (int i = segment->first; i < segment->end; i++) {
        const att_node *node = &from->graph->nodes.items[i];
        if (from->observers[i] || (products && att_node_cost(from->graph, node).macs == 0))
            continue;
        int64_t rows = node_rows(from->graph, node);
        most = rows > most ? rows : most;
    }
    return most;
}

/* A product of a single row, such as a classifier's, does not represent the maps in the same segment. */
static int64_t rows_of(const att_rewritten *from, const att_segment *segment)
{
    int64_t rows = most_rows(from, segment, true);
    return rows > 1 ? rows : most_rows(from, segment, false);
}

static int power_of_two_at_most(int64_t limit, int most)
{
    int power = 1;
    while (power * 2 <= limit && power * 2 <= most)
        power *= 2;
    return power;
}

/* Halves the group until the activations fit into the memory that the backend allows. Uses the graph before it is cast
 * to bf16, so that mixed precision has the same groups as full precision, and ignores observers. */
static att_status shrink_group(const att_plan *plan, const att_rewritten *from, const att_ref *refs,
                               att_segment *segment)
{
    const att_grouping *by = plan->units.backend->grouping;
    size_t most = plan->segment_count > 1 ? by->segment_bytes : by->arena_bytes;
    for (; segment->group > 1; segment->group /= 2) {
        size_t bytes;
        ATT_TRY(att_measure_arena(plan, from, segment, refs, segment->group, &bytes));
        if (bytes <= most)
            break;
    }
    return ATT_OK;
}

/* A sample with many activations is computed by all threads together, in one arena: it takes long enough that waiting
 * for each other costs little. In inference this holds for the whole plan. */
static att_status choose_teams(att_plan *plan, const att_rewritten *from, const att_ref *refs)
{
    enum { MOST_BYTES = 32 << 20 };
    for (int i = 0; i < plan->segment_count; i++) {
        att_segment *segment = &plan->segments[i];
        size_t bytes = 0;
        if (segment->group == 1 && plan->parts == 1)
            ATT_TRY(att_measure_arena(plan, from, segment, refs, 1, &bytes));
        segment->parts = bytes > MOST_BYTES ? att_plan_threads(plan) : plan->parts;
    }
    if (plan->purpose == ATT_INFER) {
        plan->teams = att_segment_teams(plan, &plan->segments[0]);
        plan->parts = plan->segments[0].parts;
    }
    return ATT_OK;
}

/* Whether the values of a sample keep their bits in any place of a group. Without AVX-512 the rounding of oneDNN's
 * products depends on the place. */
static bool has_equal_places(const att_plan *plan)
{
    return att_context_features(plan->context) & ATT_AVX512;
}

static att_status choose_groups(att_plan *plan, const att_rewritten *from, const att_plan_options *options)
{
    const int requested = options->group;
    const att_grouping *by = plan->units.backend->grouping;
    int64_t rows = plan->purpose != ATT_INFER ? by->train_rows : by->infer_rows;
    att_ref *refs;
    ATT_TRY(att_place_shared(plan, from, &refs));
    att_status status = ATT_OK;
    for (int i = 0; i < plan->segment_count && status == ATT_OK; i++) {
        att_segment *segment = &plan->segments[i];
        segment->parts = plan->parts;
        segment->group = power_of_two_at_most(requested ? requested : rows / rows_of(from, segment), by->most);
        if (!requested && i == 0 && from->first_is_frozen && !has_equal_places(plan))
            segment->group = 1; /* so that a session may remember the values of samples */
        else if (!requested)
            status = shrink_group(plan, from, refs, segment);
    }
    if (status == ATT_OK && !options->parts)
        status = choose_teams(plan, from, refs);
    att_free(plan->context, refs);
    return status;
}

static att_status choose_lanes(att_plan *plan, int wanted)
{
    int processes = att_comm_size(plan->comm);
    plan->lanes = plan->local_lanes = 1;
    if (plan->purpose == ATT_INFER)
        return ATT_OK;
    plan->lanes = wanted ? wanted : att_backend_threads(plan->units.backend, plan->context) * processes;
    if (plan->lanes % processes != 0)
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "%d lanes cannot be shared equally by %d processes",
                        plan->lanes, processes);
    plan->local_lanes = plan->lanes / processes;
    plan->first_lane = att_comm_rank(plan->comm) * plan->local_lanes;
    return ATT_OK;
}

att_status att_choose_sizes(att_plan *plan, const att_rewritten *from, const att_plan_options *options)
{
    const att_backend *backend = plan->units.backend;
    int threads = att_backend_threads(backend, plan->context), most = backend->grouping->most;
    if (options->group < 0 || options->group > most || options->lanes < 0 || options->lanes > ATT_MOST_LANES ||
        options->parts < 0 || options->parts > threads)
        return att_fail(plan->context, ATT_ERR_ARGUMENT,
                        "a plan takes a group of 0..%d, 0..%d lanes and 0..%d parts, not %d, %d and %d", most,
                        ATT_MOST_LANES, threads, options->group, options->lanes, options->parts);
    ATT_TRY(choose_lanes(plan, options->lanes));
    int teams = plan->purpose != ATT_INFER && plan->local_lanes < threads ? plan->local_lanes : threads;
    plan->parts = options->parts ? options->parts : threads / teams;
    plan->teams = threads / plan->parts < teams ? threads / plan->parts : teams;
    return choose_groups(plan, from, options);
}
