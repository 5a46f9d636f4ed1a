#include "engine/plan/plan.h"

#include <string.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/random.h"
#include "base/core/text.h"
#include "engine/passes/passes.h"
#include "engine/passes/segment.h"
#include "engine/patterns/list.h"

att_plan_options att_plan_options_defaults(void)
{
    return (att_plan_options){.purpose = ATT_INFER, .backend = "cpu"};
}

/* --- rewriting --------------------------------------------------------------------------------------------------- */

static att_value find_named(const att_graph *graph, const char *name)
{
    for (int i = 0; i < graph->inputs.count; i++)
        if (strcmp(graph->inputs.items[i].name, name) == 0)
            return graph->inputs.items[i].value;
    return att_graph_find_output(graph, name);
}

/* Finds the values named by `names` (NULL-terminated; NULL: none). The caller frees *values. */
static att_status find_values(const att_graph *graph, const char *const *names, att_value **values, int *count)
{
    while (names && names[*count])
        (*count)++;
    *values = att_allocate_array(graph->context, (size_t)*count + 1, sizeof **values);
    if (!*values)
        return att_fail_memory(graph->context, (size_t)*count * sizeof **values, "a plan");
    for (int i = 0; i < *count; i++) {
        (*values)[i] = find_named(graph, names[i]);
        if ((*values)[i] == ATT_NONE)
            return att_fail(graph->context, ATT_ERR_NOT_FOUND, "there is no input or output \"%s\" to differentiate by",
                            names[i]);
        for (int j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return att_fail(graph->context, ATT_ERR_ARGUMENT, "the gradient of \"%s\" is requested twice",
                                names[i]);
        if (graph->values.items[(*values)[i]].desc.dtype == ATT_I32)
            return att_fail(graph->context, ATT_ERR_ARGUMENT, "\"%s\" holds integers, which have no gradient",
                            names[i]);
    }
    return ATT_OK;
}

/* Marks the values, so that no pass before differentiate() makes readers bypass them. Unknown names are ignored here;
 * differentiate() reports them. */
static void mark_requested(att_graph *graph, const char *const *names)
{
    for (int i = 0; names && names[i]; i++) {
        att_value value = find_named(graph, names[i]);
        if (value != ATT_NONE)
            graph->values.items[value].requested = true;
    }
}

static att_status differentiate(att_graph *graph, const att_plan_options *options, int **owner)
{
    att_value loss = att_graph_find_output(graph, "loss"), *values = NULL;
    att_gradient_request request = {.frozen = options->frozen, .names = options->gradients};
    if (loss == ATT_NONE)
        return att_fail(graph->context, ATT_ERR_NOT_FOUND, "a plan with gradients needs an output named \"loss\"");
    att_status status = find_values(graph, options->gradients, &values, &request.value_count);
    request.values = values;
    if (status == ATT_OK)
        status = att_graph_differentiate(graph, loss, &request, owner);
    att_free(graph->context, values);
    return status;
}

/* Extends *owner after a pass has added values that contribute to no gradient. */
static att_status grow_owner(const att_graph *graph, int before, int **owner)
{
    if (!*owner || graph->values.count == before)
        return ATT_OK;
    size_t bytes = (size_t)graph->values.count * sizeof **owner;
    int *grown = att_reallocate(graph->context, *owner, bytes);
    if (!grown)
        return att_fail_memory(graph->context, bytes, "a plan");
    for (int i = before; i < graph->values.count; i++)
        grown[i] = -1;
    *owner = grown;
    return ATT_OK;
}

/* The backend, and arrays that describe the rewritten graph. */
typedef struct work {
    const att_backend *backend;
    const char *without; /* name of the pattern to leave out; NULL: none */
    int *owner, *readers;
    bool *observers;
    bool first_is_frozen; /* see att_rewritten */
} work;

static att_status place_observers(att_graph *graph, work *w)
{
    att_free(graph->context, w->observers);
    w->observers = NULL;
    return att_graph_place_observers(graph, w->owner, &w->observers);
}

static att_status detach_probes(att_graph *graph)
{
    bool *observers = att_allocate_array(graph->context, (size_t)graph->nodes.count + 1, sizeof *observers);
    if (!observers)
        return att_fail_memory(graph->context, (size_t)graph->nodes.count, "a plan");
    att_status status = att_graph_find_observers(graph, NULL, observers);
    if (status == ATT_OK)
        att_graph_detach_probes(graph, observers);
    att_free(graph->context, observers);
    return status == ATT_OK ? graph->status : status;
}

static bool is_named(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static bool is_wanted(const work *w, const char *pattern)
{
    const char *const *unwanted = w->backend->unwanted_patterns;
    return !(unwanted && is_named(unwanted, pattern)) && !(w->without && strcmp(w->without, pattern) == 0);
}

static att_status apply_patterns(att_graph *graph, const att_plan_options *options, att_pattern_stage stage, work *w)
{
    const att_pattern *wanted[ATT_PATTERN_COUNT + 1];
    int count = 0, before = graph->values.count;
    if (options->plain)
        return ATT_OK;
    for (const att_pattern *const *pattern = att_patterns; *pattern; pattern++)
        if (is_wanted(w, (*pattern)->name))
            wanted[count++] = *pattern;
    wanted[count] = NULL;
    ATT_TRY(att_graph_apply_patterns(graph, wanted, stage));
    return grow_owner(graph, before, &w->owner);
}

static att_status fuse(att_graph *graph, work *w)
{
    int before = graph->values.count;
    ATT_TRY(att_graph_fuse(graph, w->owner, 0));
    return grow_owner(graph, before, &w->owner);
}

/* Removes the inputs that no node reads and that are not outputs. */
static att_status drop_unread_inputs(att_graph *graph)
{
    int *readers, kept = 0;
    ATT_TRY(att_graph_count_readers(graph, &readers));
    for (int i = 0; i < graph->inputs.count; i++)
        if (readers[graph->inputs.items[i].value] > 0)
            graph->inputs.items[kept++] = graph->inputs.items[i];
    graph->inputs.count = kept;
    att_free(graph->context, readers);
    return ATT_OK;
}

/* Drops all other outputs, and nodes that no output needs: a batch norm among them must not change its statistics. */
static att_status choose_outputs(att_graph *graph, const char *const *names)
{
    int kept = 0;
    for (int i = 0; names && names[i]; i++) {
        int o = 0;
        while (o < graph->outputs.count && strcmp(graph->outputs.items[o].name, names[i]) != 0)
            o++;
        if (o == graph->outputs.count)
            return att_fail(graph->context, ATT_ERR_NOT_FOUND, "there is no output \"%s\"", names[i]);
    }
    for (int i = 0; names && i < graph->outputs.count; i++)
        if (is_named(names, graph->outputs.items[i].name))
            graph->outputs.items[kept++] = graph->outputs.items[i];
    if (names)
        graph->outputs.count = kept;
    att_graph_drop_dead(graph, NULL);
    ATT_TRY(graph->status);
    return names ? drop_unread_inputs(graph) : ATT_OK;
}

/* Values of the frozen part that the rest reads are computed in a segment of their own, whether or not a session
 * remembers them, so that this does not change the bits. */
static att_status split(att_graph *graph, const att_plan_options *options, work *w)
{
    bool *late = NULL;
    if (options->purpose == ATT_TRAIN && options->frozen && !options->frozen_as_trained) {
        ATT_TRY(att_new(graph->context, &late, (size_t)graph->nodes.count + 1, "a plan"));
        att_status status = att_find_late(graph, options->frozen, late, &w->first_is_frozen);
        if (status != ATT_OK) {
            att_free(graph->context, late);
            return status;
        }
    }
    att_graph_split_segments(graph, w->first_is_frozen ? late : NULL);
    att_free(graph->context, late);
    return ATT_OK;
}

static att_status freeze(att_graph *graph, const bool *frozen)
{
    if (!frozen)
        return ATT_OK;
    ATT_TRY(att_graph_freeze(graph, frozen));
    att_graph_drop_train_only(graph, true);
    return graph->status;
}

static att_status rewrite(att_graph *graph, const att_plan_options *options, work *w)
{
    ATT_TRY(choose_outputs(graph, options->outputs));
    ATT_TRY(detach_probes(graph));
    if (options->purpose != ATT_INFER)
        mark_requested(graph, options->gradients);
    if (options->purpose == ATT_TRAIN) {
        ATT_TRY(freeze(graph, options->frozen_as_trained ? NULL : options->frozen));
        ATT_TRY(apply_patterns(graph, options, ATT_BEFORE_GRADIENTS, w));
        ATT_TRY(att_graph_decompose(graph));
        ATT_TRY(att_graph_fuse(graph, NULL, ATT_OP_ABSORBS_FIRST));
    } else
        att_graph_drop_train_only(graph, false);
    if (options->purpose != ATT_INFER) {
        ATT_TRY(differentiate(graph, options, &w->owner));
        ATT_TRY(apply_patterns(graph, options, ATT_AFTER_GRADIENTS, w));
    }
    att_graph_drop_dead(graph, w->owner);
    ATT_TRY(graph->status);
    ATT_TRY(fuse(graph, w));
    ATT_TRY(split(graph, options, w));
    if (att_graph_segments(graph) > 1)
        ATT_TRY(att_graph_merge_copies(graph, w->owner));
    return place_observers(graph, w);
}

/* Counts readers as kernels need them: a value that contributes to a gradient counts as read. */
static att_status count_readers(const att_graph *graph, work *w)
{
    att_free(graph->context, w->readers);
    w->readers = NULL;
    ATT_TRY(att_graph_count_readers(graph, &w->readers));
    for (int i = 0; w->owner && i < graph->values.count; i++)
        if (w->owner[i] >= 0)
            w->readers[i]++;
    return ATT_OK;
}

/* Inserts copies of nodes for recomputation, and brings the nodes into their final order. */
static att_status order_nodes(att_graph *graph, work *w, const att_keep_options *keep)
{
    int before = graph->values.count;
    ATT_TRY(att_graph_rematerialize(graph, w->observers, keep));
    ATT_TRY(grow_owner(graph, before, &w->owner));
    att_graph_drop_dead(graph, w->owner);
    ATT_TRY(graph->status);
    ATT_TRY(place_observers(graph, w));
    ATT_TRY(att_graph_sort_segments(graph, w->observers));
    return count_readers(graph, w);
}

static att_status autocast(att_graph *graph, work *w)
{
    int before = graph->values.count;
    ATT_TRY(att_graph_autocast(graph, w->observers));
    ATT_TRY(grow_owner(graph, before, &w->owner));
    return place_observers(graph, w);
}

/* --- ports ------------------------------------------------------------------------------------------------------- */

static att_status copy_ports(att_plan *plan, const att_graph *graph, const att_named_value *list, int count,
                             att_port **out)
{
    att_port *ports = att_arena_allocate(&plan->arena, (size_t)count * sizeof *ports);
    if (!ports)
        return att_fail_memory(plan->context, (size_t)count * sizeof *ports, "a plan");
    for (int i = 0; i < count; i++) {
        int holder = 0;
        while (list[holder].value != list[i].value)
            holder++;
        att_desc desc = graph->values.items[list[i].value].desc;
        const char *name = att_arena_string(&plan->arena, list[i].name);
        if (!name)
            return att_fail_memory(plan->context, strlen(list[i].name), "a plan");
        ports[i] = (att_port){.name = name,
                              .desc = desc,
                              .row_bytes = att_shape_count(desc.shape) * (int64_t)att_dtype_size(desc.dtype),
                              .probe = list[i].probe,
                              .holder = holder};
    }
    *out = ports;
    return ATT_OK;
}

static att_status copy_parameters(att_plan *plan, const att_graph *graph)
{
    size_t bytes = (size_t)graph->parameters.count * sizeof *plan->parameters;
    att_parameter_info *parameters = att_arena_allocate(&plan->arena, bytes);
    if (!parameters)
        return att_fail_memory(plan->context, bytes, "a plan");
    for (int i = 0; i < graph->parameters.count; i++) {
        parameters[i] = graph->parameters.items[i];
        parameters[i].name = att_arena_string(&plan->arena, parameters[i].name);
        if (!parameters[i].name)
            return att_fail_memory(plan->context, bytes, "a plan");
    }
    plan->parameters = parameters;
    plan->parameter_count = graph->parameters.count;
    return ATT_OK;
}

/* Lists the gradients that the rewritten graph adds to. */
static att_status find_sums(att_plan *plan, const att_graph *graph, const work *w)
{
    enum { ALIGN = 64 };
    plan->sum_count = graph->parameters.count + graph->totals.count;
    plan->sums = att_arena_allocate(&plan->arena, ((size_t)plan->sum_count + 1) * sizeof *plan->sums);
    if (!plan->sums)
        return att_fail_memory(plan->context, (size_t)plan->sum_count * sizeof *plan->sums, "a plan");
    for (int i = 0; i < plan->sum_count; i++) {
        int total = i - graph->parameters.count;
        att_value value = total < 0 ? graph->parameters.items[i].value : graph->totals.items[total];
        plan->sums[i].elements = att_shape_count(graph->values.items[value].desc.shape);
        plan->sums[i].offset = plan->total_bytes;
        if (total >= 0)
            plan->total_bytes +=
                ((size_t)plan->sums[i].elements * att_dtype_size(plan->dtype) + ALIGN - 1) / ALIGN * ALIGN;
    }
    for (int i = 0; w->owner && i < graph->values.count; i++)
        if (w->owner[i] >= 0)
            plan->sums[w->owner[i]].used = true;
    return ATT_OK;
}

static att_status describe(att_plan *plan, const att_graph *graph)
{
    plan->input_count = graph->inputs.count;
    plan->output_count = graph->outputs.count;
    ATT_TRY(copy_ports(plan, graph, graph->inputs.items, graph->inputs.count, &plan->inputs));
    ATT_TRY(copy_ports(plan, graph, graph->outputs.items, graph->outputs.count, &plan->outputs));
    return copy_parameters(plan, graph);
}

#define PRECISION(name, text) text,
static const char *const precisions[] = {ATT_PRECISION_LIST(PRECISION)};
#undef PRECISION

const char *att_precision_name(att_precision precision)
{
    return (unsigned)precision < sizeof precisions / sizeof *precisions ? precisions[precision] : "unknown";
}

/* --- compiling --------------------------------------------------------------------------------------------------- */

static bool in_segment(const att_graph *graph, int node, int segment)
{
    return node < graph->nodes.count && graph->nodes.items[node].stage == ATT_BODY &&
           graph->nodes.items[node].segment == segment;
}

/* Finds the nodes of each segment. A second call keeps the segments' groups. */
static att_status split_segments(att_plan *plan, const att_graph *graph)
{
    int count = att_graph_segments(graph);
    if (!plan->segments)
        plan->segments = att_arena_allocate(&plan->arena, (size_t)count * sizeof *plan->segments);
    if (!plan->segments)
        return att_fail_memory(plan->context, (size_t)count * sizeof *plan->segments, "a plan");
    plan->segment_count = count;
    int node = 0;
    while (node < graph->nodes.count && graph->nodes.items[node].stage == ATT_PROLOGUE)
        node++;
    plan->prologue.count = node;
    for (int i = 0; i < count; i++) {
        att_segment *segment = &plan->segments[i];
        segment->first = node;
        while (in_segment(graph, node, i) && !att_node_reduces(graph, &graph->nodes.items[node]))
            node++;
        segment->end = node;
        while (in_segment(graph, node, i))
            node++;
        segment->reduction_count = node - segment->end;
    }
    plan->epilogue.count = graph->nodes.count - node;
    return ATT_OK;
}

static att_rewritten as_rewritten(const att_graph *graph, const work *w)
{
    return (att_rewritten){.graph = graph,
                           .owner = w->owner,
                           .observers = w->observers,
                           .readers = w->readers,
                           .first_is_frozen = w->first_is_frozen};
}

static void free_work(att_context *context, work *w)
{
    att_free(context, w->owner);
    att_free(context, w->readers);
    att_free(context, w->observers);
}

static att_status copy_owner(const att_graph *graph, const work *from, work *to)
{
    size_t bytes = (size_t)graph->values.count * sizeof *to->owner;
    if (!from->owner)
        return ATT_OK;
    to->owner = att_allocate(graph->context, bytes);
    if (!to->owner)
        return att_fail_memory(graph->context, bytes, "a plan");
    memcpy(to->owner, from->owner, bytes);
    return ATT_OK;
}

static att_status choose_sizes_on(att_plan *plan, att_graph *graph, work *w, const att_plan_options *options)
{
    ATT_TRY(place_observers(graph, w));
    ATT_TRY(order_nodes(graph, w, &(att_keep_options){.keep_first = w->first_is_frozen, .for_sizes = true}));
    ATT_TRY(split_segments(plan, graph));
    att_rewritten from = as_rewritten(graph, w);
    return att_choose_sizes(plan, &from, options);
}

/* Groups determine the order of sums, hence the bits. They are chosen on a copy in full precision that keeps values by
 * the default rule, so that neither the precision nor the memory budget changes them. */
static att_status choose_sizes(att_plan *plan, const att_graph *graph, const work *w, const att_plan_options *options)
{
    att_graph *copy = att_graph_copy(graph);
    if (!copy)
        return att_fail_memory(plan->context, sizeof *copy, "a plan");
    work own = {.first_is_frozen = w->first_is_frozen};
    att_status status = copy_owner(graph, w, &own);
    if (status == ATT_OK)
        status = choose_sizes_on(plan, copy, &own, options);
    free_work(plan->context, &own);
    att_graph_destroy(&copy);
    return status;
}

/* Hashes the graph before copies for recomputation are inserted, because recomputing a value does not change its bits.
 */
static att_status hash(att_plan *plan, const att_graph *graph, const work *w)
{
    att_rewritten from = as_rewritten(graph, w);
    return att_hash_graph(plan, &from);
}

/* Whether node `i` computes again, for the backward pass, what an earlier node has computed. */
static bool is_recomputed(const att_graph *graph, int i)
{
    const att_node *node = &graph->nodes.items[i];
    if (!(node->op->flags & ATT_OP_RECOMPUTE))
        return false;
    for (const att_node *other = graph->nodes.items; other < node; other++)
        if (other->op == node->op && other->in_count == node->in_count &&
            memcmp(other->in, node->in, (size_t)node->in_count * sizeof *node->in) == 0)
            return true;
    return false;
}

static att_cost cost_of(const att_graph *graph)
{
    att_cost cost = att_graph_cost(graph);
    for (int i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.items[i].stage == ATT_BODY && is_recomputed(graph, i)) {
            const att_cost again = att_node_cost(graph, &graph->nodes.items[i]);
            cost.flops -= again.flops;
            cost.macs -= again.macs;
            cost.bytes -= again.bytes;
        }
    return cost;
}

static att_status compile(att_plan *plan, att_graph *graph, const att_plan_options *options, work *w)
{
    const att_backend *backend;
    ATT_TRY(att_backend_choose(plan->context, options->backend, &backend));
    if (att_comm_size(plan->comm) > 1 && !backend->memory->host)
        return att_fail(plan->context, ATT_ERR_UNSUPPORTED,
                        "several processes need a backend that computes in host memory; \"%s\" does not",
                        backend->name);
    ATT_TRY(att_units_init(&plan->units, &plan->arena, backend));
    w->backend = backend;
    ATT_TRY(rewrite(graph, options, w));
    plan->cost = cost_of(graph);
    ATT_TRY(describe(plan, graph));
    ATT_TRY(find_sums(plan, graph, w));
    ATT_TRY(choose_sizes(plan, graph, w, options));
    if (plan->precision == ATT_MIXED)
        ATT_TRY(autocast(graph, w));
    ATT_TRY(hash(plan, graph, w));
    const att_keep_options keep = {.most_bytes = options->keep_bytes, .keep_first = w->first_is_frozen};
    ATT_TRY(order_nodes(graph, w, &keep));
    ATT_TRY(split_segments(plan, graph));
    att_rewritten from = as_rewritten(graph, w);
    ATT_TRY(att_plan_lower(plan, &from));
    return att_write_fingerprint(plan);
}

static att_status check_options(att_context *context, const att_plan_options *options)
{
    if ((unsigned)options->purpose > ATT_GRADIENT)
        return att_fail(context, ATT_ERR_ARGUMENT, "%d is not a purpose of a plan", (int)options->purpose);
    if ((unsigned)options->precision >= sizeof precisions / sizeof *precisions)
        return att_fail(context, ATT_ERR_ARGUMENT, "%d is not a precision of a plan", (int)options->precision);
    return ATT_OK;
}

att_status att_plan_compile(const att_graph *graph, const att_plan_options *options, att_plan **out)
{
    return att_plan_compile_without(graph, options, NULL, out);
}

att_status att_plan_compile_without(const att_graph *graph, const att_plan_options *options, const char *pattern,
                                    att_plan **out)
{
    att_context *context = graph->context;
    ATT_TRY(graph->status);
    ATT_TRY(check_options(context, options));
    att_graph *copy = att_graph_copy(graph);
    att_plan *plan = att_allocate(context, sizeof *plan);
    if (!copy || !plan) {
        att_graph_destroy(&copy);
        att_free(context, plan);
        return att_fail_memory(context, sizeof *plan, "a plan");
    }
    plan->context = context;
    plan->arena.context = context;
    plan->purpose = options->purpose;
    plan->precision = options->precision;
    plan->comm = options->comm;
    plan->sync_statistics = options->sync_statistics;
    plan->dtype = graph->dtype;
    work w = {.without = pattern};
    att_status status = compile(plan, copy, options, &w);
    free_work(context, &w);
    att_graph_destroy(&copy);
    if (status != ATT_OK)
        att_plan_destroy(&plan);
    else
        *out = plan;
    return status;
}

void att_plan_destroy(att_plan **out)
{
    if (!out || !*out)
        return;
    att_plan *plan = *out;
    att_units_release(&plan->units);
    att_free(plan->context, plan->packs.items);
    att_arena_free(&plan->arena);
    att_free(plan->context, plan);
    *out = NULL;
}

const char *att_plan_fingerprint(const att_plan *plan)
{
    return plan->fingerprint;
}

att_cost att_plan_cost(const att_plan *plan)
{
    return plan->cost;
}

/* A team's memory begins at a multiple of this. */
enum { TEAM_ALIGN = 64 };

static att_room room_of(const att_plan *plan, const att_segment *segment)
{
    att_room room = {.lanes = segment->lane_bytes, .packs = segment->pack_bytes};
    for (int i = 0; i < segment->program_count; i++) {
        const att_program *program = &segment->programs[i];
        const int teams = att_plan_threads(plan) / program->parts;
        size_t bytes = (program->arena_bytes / TEAM_ALIGN + 1) * TEAM_ALIGN * (size_t)teams;
        room.arenas = bytes > room.arenas ? bytes : room.arenas;
    }
    return room;
}

att_room att_plan_room(const att_plan *plan)
{
    att_room most = {0};
    for (int i = 0; i < plan->segment_count; i++) {
        att_room room = room_of(plan, &plan->segments[i]);
        if (att_room_bytes(room) > att_room_bytes(most))
            most = room;
    }
    return most;
}

static size_t segment_bytes(const att_segment *segment)
{
    size_t most = 0;
    for (int i = 0; i < segment->program_count; i++) {
        const att_program *program = &segment->programs[i];
        size_t bytes = program->arena_bytes;
        most = bytes > most ? bytes : most;
    }
    return most;
}

static att_field field_at(const att_port *ports, int count, int index)
{
    if (index < 0 || index >= count)
        return (att_field){.name = NULL};
    return (att_field){.name = ports[index].name, .dtype = ports[index].desc.dtype, .shape = ports[index].desc.shape};
}

att_field att_plan_input_at(const att_plan *plan, int index)
{
    return field_at(plan->inputs, plan->input_count, index);
}

att_field att_plan_output_at(const att_plan *plan, int index)
{
    return field_at(plan->outputs, plan->output_count, index);
}

att_plan_facts att_plan_describe(const att_plan *plan)
{
    att_plan_facts facts = {.lanes = plan->lanes,
                            .parts = plan->parts,
                            .segments = plan->segment_count,
                            .packed_bytes = plan->packed_bytes,
                            .gradient_bytes = plan->spare_bytes,
                            .kept_bytes = plan->store_bytes};
    size_t packs = 0;
    for (int i = 0; i < plan->segment_count; i++) {
        const att_segment *segment = &plan->segments[i];
        size_t bytes = segment_bytes(segment);
        packs = segment->pack_bytes > packs ? segment->pack_bytes : packs;
        facts.arena_bytes = bytes > facts.arena_bytes ? bytes : facts.arena_bytes;
        facts.group = segment->group > facts.group ? segment->group : facts.group;
        facts.steps += segment->end - segment->first + segment->reduction_count;
    }
    facts.packed_bytes += packs;
    return facts;
}
