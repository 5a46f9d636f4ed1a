#include "plan/plan.h"
#include "ops/update.h"

#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "core/random.h"
#include "core/text.h"
#include "passes/passes.h"
#include "passes/segment.h"
#include "patterns/list.h"

att_plan_options att_plan_options_defaults(void)
{
    return (att_plan_options){.purpose = ATT_INFER, .backend = "cpu"};
}

static const char *backend_name(const void *user, int index)
{
    const att_registry *registry = user;
    return registry->backends[index]->name;
}

static att_status find_backend(att_context *context, const char *name, const att_backend **backend)
{
    *backend = att_backend_find(context, name);
    if (*backend)
        return ATT_OK;
    const att_registry *registry = att_context_registry(context);
    int count = 0;
    while (registry->backends[count])
        count++;
    const char *nearest = att_text_nearest(name, backend_name, registry, count);
    return att_fail(context, ATT_ERR_NOT_FOUND, "there is no backend \"%s\"%s%s%s", name,
                    nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

/* --- rewriting --------------------------------------------------------------------------------------------------- */

static att_status differentiate(att_graph *graph, int **owner)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (strcmp(graph->outputs.items[i].name, "loss") == 0)
            return att_graph_differentiate(graph, graph->outputs.items[i].value, owner);
    return att_fail(graph->context, ATT_ERR_NOT_FOUND, "a training plan needs an output named \"loss\"");
}

/* A pass added values, none of which is a parameter's gradient. */
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

/* What rewriting leaves beside the graph. */
typedef struct work {
    int *owner, *readers;
    bool *watchers;
} work;

static att_status settle_probes(att_graph *graph, work *w)
{
    att_free(graph->context, w->watchers);
    w->watchers = NULL;
    return att_graph_settle_probes(graph, w->owner, &w->watchers);
}

static att_status detach_probes(att_graph *graph)
{
    bool *watchers = att_allocate_array(graph->context, (size_t)graph->nodes.count + 1, sizeof *watchers);
    if (!watchers)
        return att_fail_memory(graph->context, (size_t)graph->nodes.count, "a plan");
    att_status status = att_graph_find_watchers(graph, NULL, watchers);
    if (status == ATT_OK)
        att_graph_detach_probes(graph, watchers);
    att_free(graph->context, watchers);
    return status == ATT_OK ? graph->status : status;
}

static att_status apply_patterns(att_graph *graph, const att_plan_options *options, att_pattern_stage stage, work *w)
{
    if (options->plain)
        return ATT_OK;
    int before = graph->values.count;
    ATT_TRY(att_graph_apply_patterns(graph, att_patterns, stage));
    return grow_owner(graph, before, &w->owner);
}

static att_status fuse(att_graph *graph, work *w)
{
    int before = graph->values.count;
    ATT_TRY(att_graph_fuse(graph, w->owner, 0));
    return grow_owner(graph, before, &w->owner);
}

static att_status rewrite(att_graph *graph, const att_plan_options *options, work *w)
{
    ATT_TRY(detach_probes(graph));
    if (options->purpose == ATT_TRAIN) {
        ATT_TRY(apply_patterns(graph, options, ATT_BEFORE_GRADIENTS, w));
        ATT_TRY(att_graph_expand(graph));
        ATT_TRY(att_graph_fuse(graph, NULL, ATT_OP_ABSORBS_FIRST));
        ATT_TRY(differentiate(graph, &w->owner));
        ATT_TRY(apply_patterns(graph, options, ATT_AFTER_GRADIENTS, w));
    } else
        att_graph_drop_train_only(graph);
    att_graph_drop_dead(graph, w->owner);
    ATT_TRY(graph->status);
    ATT_TRY(fuse(graph, w));
    att_graph_cut(graph);
    if (att_graph_segments(graph) > 1)
        ATT_TRY(att_graph_merge_copies(graph, w->owner));
    return settle_probes(graph, w);
}

/* Readers as kernels should see them: a gradient of a parameter is read by the reduction. */
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

/* Brings the graph into the order that plans take. */
static att_status arrange(att_graph *graph, work *w, size_t keep_bytes)
{
    int before = graph->values.count;
    ATT_TRY(att_graph_rematerialize(graph, w->watchers, keep_bytes));
    ATT_TRY(grow_owner(graph, before, &w->owner));
    att_graph_drop_dead(graph, w->owner);
    ATT_TRY(graph->status);
    ATT_TRY(settle_probes(graph, w));
    ATT_TRY(att_graph_sort_segments(graph, w->watchers));
    return count_readers(graph, w);
}

static att_status narrow(att_graph *graph, work *w)
{
    int before = graph->values.count;
    ATT_TRY(att_graph_narrow(graph, w->watchers));
    ATT_TRY(grow_owner(graph, before, &w->owner));
    return settle_probes(graph, w);
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

static att_status describe(att_plan *plan, const att_graph *graph)
{
    plan->input_count = graph->inputs.count;
    plan->output_count = graph->outputs.count;
    ATT_TRY(copy_ports(plan, graph, graph->inputs.items, graph->inputs.count, &plan->inputs));
    ATT_TRY(copy_ports(plan, graph, graph->outputs.items, graph->outputs.count, &plan->outputs));
    ATT_TRY(copy_parameters(plan, graph));
    return att_layout_make(graph, &plan->arena, &plan->layout);
}

/* --- reduction and update ---------------------------------------------------------------------------------------- */

static att_desc flat(att_dtype dtype, int64_t count)
{
    return (att_desc){.dtype = dtype, .kind = ATT_SHARED, .shape = att_shape_of(count)};
}

static att_status prepare_reduction(att_plan *plan)
{
    int64_t elements = plan->layout.trained;
    att_desc in = flat(plan->dtype, elements),
             out = flat(ATT_F64, (elements + ATT_SQUARES_CHUNK - 1) / ATT_SQUARES_CHUNK);
    att_unit *unit;
    ATT_TRY(att_prepare_flat(plan, "sum_squares", NULL, &in, 1, &out, 1, att_context_threads(plan->context), &unit));
    plan->sum_squares = unit;
    return ATT_OK;
}

static att_status add_update(att_plan *plan, const char *op, bool decay, int64_t begin, int64_t end, int outs)
{
    if (begin == end)
        return ATT_OK;
    att_desc range = flat(plan->dtype, end - begin),
             *out = att_allocate_array(plan->context, (size_t)outs, sizeof *out);
    if (!out)
        return att_fail_memory(plan->context, (size_t)outs * sizeof *out, "a plan");
    for (int i = 0; i < outs; i++)
        out[i] = range;
    att_update_attrs attrs = {.decay = decay};
    att_unit *unit;
    att_status status =
        att_prepare_flat(plan, op, &attrs, &range, 1, out, outs, att_context_threads(plan->context), &unit);
    att_free(plan->context, out);
    ATT_TRY(status);
    if (!att_list_grow(plan->context, (void *)&plan->updates.items, plan->updates.count, &plan->updates.capacity,
                       sizeof *plan->updates.items))
        return att_fail_memory(plan->context, sizeof *plan->updates.items, "a plan");
    plan->updates.items[plan->updates.count++] = (att_update_step){.unit = unit, .offset = begin};
    return ATT_OK;
}

static const char *optimizer_name(const void *user, int index)
{
    const att_registry *registry = user;
    for (const att_op *const *op = registry->ops; *op; op++)
        if ((*op)->slots[0] && index-- == 0)
            return (*op)->name;
    return "";
}

static att_status find_optimizer(att_plan *plan, const char *name)
{
    const att_op *op = att_registry_op(plan->context, name);
    if (op && op->slots[0]) {
        plan->slots = op->slots;
        while (plan->slot_count < (int)(sizeof op->slots / sizeof *op->slots) && op->slots[plan->slot_count])
            plan->slot_count++;
        return ATT_OK;
    }
    const att_registry *registry = att_context_registry(plan->context);
    int count = 0;
    while (*optimizer_name(registry, count))
        count++;
    const char *nearest = att_text_nearest(name, optimizer_name, registry, count);
    return att_fail(plan->context, ATT_ERR_NOT_FOUND, "there is no optimiser \"%s\"%s%s%s", name,
                    nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

static att_status prepare_update(att_plan *plan, const att_plan_options *options)
{
    if (options->optimizer) {
        ATT_TRY(find_optimizer(plan, options->optimizer));
        int outs = 1 + plan->slot_count;
        ATT_TRY(add_update(plan, options->optimizer, true, 0, plan->layout.decayed, outs));
        ATT_TRY(
            add_update(plan, options->optimizer, options->decay_all, plan->layout.decayed, plan->layout.trained, outs));
    }
    plan->ema = options->ema;
    return options->ema ? add_update(plan, "ema", false, 0, plan->layout.elements, 1) : ATT_OK;
}

#define PRECISION(name, text) text,
static const char *const precisions[] = {ATT_PRECISION_LIST(PRECISION)};
#undef PRECISION

const char *att_precision_name(att_precision precision)
{
    return (unsigned)precision < sizeof precisions / sizeof *precisions ? precisions[precision] : "unknown";
}

/* --- compiling --------------------------------------------------------------------------------------------------- */

/* Keeps the groups of segments that were cut before. */
static att_status cut_segments(att_plan *plan, const att_graph *graph)
{
    int count = att_graph_segments(graph);
    if (!plan->segments)
        plan->segments = att_arena_allocate(&plan->arena, (size_t)count * sizeof *plan->segments);
    if (!plan->segments)
        return att_fail_memory(plan->context, (size_t)count * sizeof *plan->segments, "a plan");
    plan->segment_count = count;
    int node = 0;
    for (int i = 0; i < count; i++) {
        att_segment *segment = &plan->segments[i];
        segment->first = node;
        while (node < graph->nodes.count && graph->nodes.items[node].segment == i &&
               !att_node_reduces(graph, &graph->nodes.items[node]))
            node++;
        segment->end = node;
        while (node < graph->nodes.count && graph->nodes.items[node].segment == i)
            node++;
        segment->reduction_count = node - segment->end;
    }
    return ATT_OK;
}

static att_status make_profile(att_plan *plan)
{
    size_t kernels = 0;
    while (plan->backend->kernels[kernels])
        kernels++;
    plan->profile_kernels = att_arena_allocate(&plan->arena, (kernels + 1) * sizeof(att_kernel *));
    return plan->profile_kernels ? ATT_OK : att_fail_memory(plan->context, kernels * sizeof(att_kernel *), "a plan");
}

static att_rewritten as_rewritten(const att_graph *graph, const work *w)
{
    return (att_rewritten){.graph = graph, .owner = w->owner, .watchers = w->watchers, .readers = w->readers};
}

static void free_work(att_context *context, work *w)
{
    att_free(context, w->owner);
    att_free(context, w->readers);
    att_free(context, w->watchers);
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

static att_status choose_sizes_of(att_plan *plan, att_graph *graph, work *w, const att_plan_options *options)
{
    ATT_TRY(settle_probes(graph, w));
    ATT_TRY(arrange(graph, w, 0));
    ATT_TRY(cut_segments(plan, graph));
    att_rewritten from = as_rewritten(graph, w);
    return att_choose_sizes(plan, &from, options);
}

/* The groups decide the order of sums. They are those of a plan in full precision that keeps values by the default
 * rule, so that how much memory there is decides no bit. */
static att_status choose_sizes(att_plan *plan, const att_graph *graph, const work *w, const att_plan_options *options)
{
    att_graph *copy = att_graph_copy(graph);
    if (!copy)
        return att_fail_memory(plan->context, sizeof *copy, "a plan");
    work own = {0};
    att_status status = copy_owner(graph, w, &own);
    if (status == ATT_OK)
        status = choose_sizes_of(plan, copy, &own, options);
    free_work(plan->context, &own);
    att_graph_destroy(&copy);
    return status;
}

/* Before copies of nodes are made: which ones decides no bit. */
static att_status hash(att_plan *plan, const att_graph *graph, const work *w)
{
    att_rewritten from = as_rewritten(graph, w);
    return att_hash_graph(plan, &from);
}

static att_status compile(att_plan *plan, att_graph *graph, const att_plan_options *options, work *w)
{
    ATT_TRY(find_backend(plan->context, options->backend, &plan->backend));
    ATT_TRY(make_profile(plan));
    ATT_TRY(rewrite(graph, options, w));
    ATT_TRY(describe(plan, graph));
    ATT_TRY(choose_sizes(plan, graph, w, options));
    if (plan->precision == ATT_MIXED)
        ATT_TRY(narrow(graph, w));
    ATT_TRY(hash(plan, graph, w));
    ATT_TRY(arrange(graph, w, options->keep_bytes));
    ATT_TRY(cut_segments(plan, graph));
    att_rewritten from = as_rewritten(graph, w);
    ATT_TRY(att_make_programs(plan, &from));
    if (plan->purpose == ATT_TRAIN) {
        ATT_TRY(prepare_reduction(plan));
        ATT_TRY(prepare_update(plan, options));
    }
    return att_write_fingerprint(plan);
}

att_status att_plan_compile(const att_graph *graph, const att_plan_options *options, att_plan **out)
{
    att_context *context = graph->context;
    ATT_TRY(graph->status);
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
    plan->dtype = graph->dtype;
    work w = {0};
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
    att_units_release(plan);
    att_free(plan->context, plan->packs.items);
    att_free(plan->context, plan->updates.items);
    att_arena_free(&plan->arena);
    att_free(plan->context, plan);
    *out = NULL;
}

const char *att_plan_fingerprint(const att_plan *plan)
{
    return plan->fingerprint;
}

static size_t segment_bytes(const att_segment *segment)
{
    size_t most = 0;
    for (int i = 0; i < segment->program_count; i++) {
        const att_program *program = &segment->programs[i];
        size_t bytes = program->arena_bytes + program->scratch_bytes * (size_t)program->parts;
        most = bytes > most ? bytes : most;
    }
    return most;
}

att_plan_facts att_plan_describe(const att_plan *plan)
{
    att_plan_facts facts = {.lanes = plan->lanes,
                            .parts = plan->parts,
                            .segments = plan->segment_count,
                            .packed_bytes = plan->packed_bytes,
                            .kept_bytes = plan->store_bytes};
    for (int i = 0; i < plan->segment_count; i++) {
        const att_segment *segment = &plan->segments[i];
        size_t bytes = segment_bytes(segment);
        facts.arena_bytes = bytes > facts.arena_bytes ? bytes : facts.arena_bytes;
        facts.group = segment->group > facts.group ? segment->group : facts.group;
        facts.steps += segment->end - segment->first + segment->reduction_count;
    }
    if (plan->purpose == ATT_TRAIN)
        facts.gradient_bytes = (size_t)plan->layout.trained * att_dtype_size(plan->dtype) + plan->spare_bytes;
    return facts;
}
