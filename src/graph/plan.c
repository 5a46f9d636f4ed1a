#include "graph/plan.h"

#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "core/random.h"
#include "core/text.h"

/* Rows of a matrix product that fill a core without leaving its cache, and that keep weight gradients efficient; the
 * group is the largest power of two that stays within, and whose activations stay within ARENA_BYTES. */
enum { INFER_ROWS = 256, TRAIN_ROWS = 800, MAX_GROUP = 64, ARENA_BYTES = 96 << 20 };

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
    *backend = att_registry_backend(context, name);
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

/* Narrowing adds values, none of which is a parameter's gradient. */
static att_status narrow(att_graph *graph, int **owner)
{
    int before = graph->values.count;
    ATT_TRY(att_graph_narrow(graph));
    if (!*owner)
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

static att_status rewrite(att_graph *graph, const att_plan_options *options, int **owner)
{
    if (options->purpose == ATT_TRAIN)
        ATT_TRY(differentiate(graph, owner));
    else
        att_graph_drop_train_only(graph);
    att_graph_drop_dead(graph, *owner);
    ATT_TRY(graph->status);
    return att_graph_fuse(graph);
}

/* --- sizes ------------------------------------------------------------------------------------------------------- */

static int64_t most_rows(const att_graph *graph)
{
    int64_t most = 1;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (strcmp(node->op->name, "linear") != 0)
            continue;
        att_shape shape = graph->values.items[node->in[0]].desc.shape;
        int64_t rows = att_shape_count(shape) / shape.dims[shape.rank - 1];
        most = rows > most ? rows : most;
    }
    return most;
}

static int power_of_two_within(int64_t limit)
{
    int power = 1;
    while (power * 2 <= limit && power * 2 <= MAX_GROUP)
        power *= 2;
    return power;
}

/* Of a graph that is not narrowed yet, so that mixed precision takes the groups of full precision and less memory; and
 * without watchers, which change nothing. */
static att_status keep_within_budget(att_plan *plan, const att_graph *graph, const int *owner, const bool *watchers)
{
    for (; plan->group > 1; plan->group /= 2) {
        size_t bytes;
        ATT_TRY(att_place_measure(graph, plan, owner, watchers, plan->group, &bytes));
        if (bytes <= ARENA_BYTES)
            break;
    }
    return ATT_OK;
}

static att_status choose_sizes(att_plan *plan, const att_graph *graph, const int *owner, const bool *watchers,
                               const att_plan_options *options)
{
    int threads = att_context_threads(plan->context);
    if (options->group < 0 || options->group > MAX_GROUP || options->lanes < 0 || options->lanes > 1024 ||
        options->parts < 0 || options->parts > threads)
        return att_fail(plan->context, ATT_ERR_ARGUMENT,
                        "a plan takes a group of 0..%d, 0..1024 lanes and 0..%d parts, not %d, %d and %d", MAX_GROUP,
                        threads, options->group, options->lanes, options->parts);
    int64_t rows = plan->purpose == ATT_TRAIN ? TRAIN_ROWS : INFER_ROWS;
    plan->group = power_of_two_within(options->group ? options->group : rows / most_rows(graph));
    plan->lanes = plan->purpose == ATT_TRAIN ? (options->lanes ? options->lanes : threads) : 1;
    int teams = plan->purpose == ATT_TRAIN && plan->lanes < threads ? plan->lanes : threads;
    plan->parts = options->parts ? options->parts : threads / teams;
    plan->teams = threads / plan->parts < teams ? threads / plan->parts : teams;
    return options->group ? ATT_OK : keep_within_budget(plan, graph, owner, watchers);
}

/* --- ports ------------------------------------------------------------------------------------------------------- */

static att_status copy_ports(att_plan *plan, const att_graph *graph, const att_named_value *list, int count,
                             att_port **out)
{
    att_port *ports = att_arena_allocate(&plan->arena, (size_t)count * sizeof *ports);
    if (!ports)
        return att_fail_memory(plan->context, (size_t)count * sizeof *ports, "a plan");
    for (int i = 0; i < count; i++) {
        att_desc desc = graph->values.items[list[i].value].desc;
        const char *name = att_arena_string(&plan->arena, list[i].name);
        if (!name)
            return att_fail_memory(plan->context, strlen(list[i].name), "a plan");
        ports[i] = (att_port){.name = name,
                              .desc = desc,
                              .row_bytes = att_shape_count(desc.shape) * (int64_t)att_dtype_size(desc.dtype),
                              .probe = list[i].probe};
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

/* --- programs ---------------------------------------------------------------------------------------------------- */

/* Whether the step takes what `pack` makes: of the same weights, in the same layout. */
static bool same_pack(const att_pack *pack, const att_step *step)
{
    const att_unit *a = pack->unit, *b = step->unit;
    if (a->kernel != b->kernel || a->prepared.packed_key != b->prepared.packed_key ||
        a->problem.in_count != b->problem.in_count)
        return false;
    for (int i = 0; i < a->problem.in_count; i++) {
        bool shared = pack->in[i].place == ATT_AT_WEIGHTS;
        if (shared != (step->in[i].place == ATT_AT_WEIGHTS) || (shared && pack->in[i].offset != step->in[i].offset))
            return false;
    }
    return true;
}

static att_status add_pack(att_plan *plan, att_step *step)
{
    const att_unit *unit = step->unit;
    for (int i = 0; i < plan->packs.count; i++)
        if (same_pack(&plan->packs.items[i], step)) {
            step->packed = i;
            return ATT_OK;
        }
    if (plan->packs.count == plan->packs.capacity) {
        int larger = plan->packs.capacity ? plan->packs.capacity * 2 : 64;
        att_pack *grown = att_reallocate(plan->context, plan->packs.items, (size_t)larger * sizeof *grown);
        if (!grown)
            return att_fail_memory(plan->context, (size_t)larger * sizeof *grown, "a plan");
        plan->packs.items = grown;
        plan->packs.capacity = larger;
    }
    step->packed = plan->packs.count;
    att_pack *pack = &plan->packs.items[plan->packs.count++];
    *pack = (att_pack){.unit = unit, .offset = plan->packed_bytes};
    memcpy(pack->in, step->in, sizeof pack->in);
    plan->packed_bytes += (unit->prepared.packed_bytes + 63) / 64 * 64;
    return ATT_OK;
}

static att_status prepare_steps(att_plan *plan, const att_graph *graph, const int *readers, att_program *program)
{
    const char *last_from = NULL, *last_to = NULL;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        att_step *step = &program->steps[i];
        att_unit *unit;
        ATT_TRY(att_prepare_unit(plan, graph, node, readers, program->group, program->parts, &unit));
        step->unit = unit;
        step->packed = -1;
        if (node->scope != last_from) {
            last_from = node->scope;
            last_to = att_arena_string(&plan->arena, node->scope);
            if (!last_to)
                return att_fail_memory(plan->context, strlen(node->scope), "a plan");
        }
        step->scope = last_to;
        if (unit->prepared.packed_bytes > 0)
            ATT_TRY(add_pack(plan, step));
        if (unit->prepared.scratch_bytes > program->scratch_bytes)
            program->scratch_bytes = (unit->prepared.scratch_bytes + 63) / 64 * 64;
    }
    return ATT_OK;
}

/* A graph as plans see it after rewriting. */
typedef struct rewritten {
    const att_graph *graph;
    const int *owner, *readers;
    const bool *watchers;
} rewritten;

static att_status add_program(att_plan *plan, const rewritten *from, int group, int parts)
{
    const att_graph *graph = from->graph;
    if (att_plan_program(plan, group, parts))
        return ATT_OK;
    size_t bytes = (size_t)graph->nodes.count * sizeof(att_step);
    att_program *program = &plan->programs[plan->program_count];
    *program = (att_program){.group = group, .parts = parts, .step_count = graph->nodes.count};
    program->steps = att_arena_allocate(&plan->arena, bytes);
    if (!program->steps)
        return att_fail_memory(plan->context, bytes, "a plan");
    ATT_TRY(att_place_values(graph, plan, from->owner, from->watchers, program));
    ATT_TRY(prepare_steps(plan, graph, from->readers, program));
    plan->program_count++;
    return ATT_OK;
}

/* Readers as kernels should see them: a gradient of a parameter is read by the reduction. */
static att_status count_readers(const att_graph *graph, const int *owner, int **out)
{
    ATT_TRY(att_graph_count_readers(graph, out));
    for (int i = 0; owner && i < graph->values.count; i++)
        if (owner[i] >= 0)
            (*out)[i]++;
    return ATT_OK;
}

static att_status add_programs(att_plan *plan, const att_graph *graph, const int *owner, const bool *watchers)
{
    int *readers;
    ATT_TRY(count_readers(graph, owner, &readers));
    rewritten from = {graph, owner, readers, watchers};
    att_status status = ATT_OK;
    for (int group = plan->group; group >= 1 && status == ATT_OK; group /= 2)
        status = add_program(plan, &from, group, plan->parts);
    int threads = att_context_threads(plan->context);
    if (status == ATT_OK && plan->purpose == ATT_INFER && threads > 1) /* one sample on all threads: latency */
        status = add_program(plan, &from, 1, threads);
    att_free(plan->context, readers);
    return status;
}

const att_program *att_plan_program(const att_plan *plan, int group, int parts)
{
    for (int i = 0; i < plan->program_count; i++)
        if (plan->programs[i].group == group && plan->programs[i].parts == parts)
            return &plan->programs[i];
    return NULL;
}

/* --- reduction and update ---------------------------------------------------------------------------------------- */

static att_desc flat(att_dtype dtype, int64_t rows, int64_t count)
{
    att_desc desc = {.dtype = dtype, .kind = ATT_SHARED, .shape = {.rank = rows ? 2 : 1, .dims = {count}}};
    if (rows)
        desc.shape = att_shape_of(rows, count);
    return desc;
}

static att_status prepare_reduction(att_plan *plan)
{
    int64_t elements = plan->layout.trained;
    att_desc in = flat(plan->dtype, plan->lanes, elements);
    att_desc out[] = {flat(plan->dtype, 0, elements),
                      flat(ATT_F64, 0, (elements + ATT_SQUARES_CHUNK - 1) / ATT_SQUARES_CHUNK)};
    att_unit *unit;
    ATT_TRY(att_prepare_flat(plan, "sum_lanes", NULL, &in, 1, out, 2, &unit));
    plan->sum_lanes = unit;
    return ATT_OK;
}

static att_status add_update(att_plan *plan, const char *op, bool decay, int64_t begin, int64_t end, int outs)
{
    if (begin == end)
        return ATT_OK;
    att_desc range = flat(plan->dtype, 0, end - begin), out[ATT_MAX_OUT];
    for (int i = 0; i < outs; i++)
        out[i] = range;
    att_attrs attrs = {.update.decay = decay};
    att_unit *unit;
    ATT_TRY(att_prepare_flat(plan, op, &attrs, &range, 1, out, outs, &unit));
    plan->updates[plan->update_count++] = (att_update_step){.unit = unit, .offset = begin};
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
        ATT_TRY(add_update(plan, options->optimizer, false, plan->layout.decayed, plan->layout.trained, outs));
    }
    plan->ema = options->ema;
    return options->ema ? add_update(plan, "ema", false, 0, plan->layout.elements, 1) : ATT_OK;
}

/* --- fingerprint ------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return att_random_key(hash, value, 1);
}

static uint64_t mix_shape(uint64_t hash, att_shape shape)
{
    for (int i = 0; i < shape.rank; i++)
        hash = mix(hash, (uint64_t)shape.dims[i]);
    return hash;
}

/* Numbers of values by first appearance in what is hashed, so that watchers leave no trace. */
typedef struct numbering {
    int *number, count; /* number[value] - 1; 0: none yet */
} numbering;

static uint64_t number_of(numbering *n, att_value value)
{
    if (value == ATT_NONE)
        return 0;
    if (n->number[value] == 0)
        n->number[value] = ++n->count;
    return (uint64_t)n->number[value];
}

/* Attributes that leave no mark on shapes (rates, epsilons) are not in it. */
static uint64_t hash_graph(const att_graph *graph, const bool *watchers, numbering *n)
{
    uint64_t hash = mix(0, (uint64_t)graph->dtype);
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (watchers[i])
            continue;
        hash = mix(hash, att_random_hash(node->op->name));
        for (int j = 0; j < node->in_count; j++)
            hash = mix(hash, number_of(n, node->in[j]));
        for (int j = 0; j < node->out_count; j++)
            hash = mix_shape(hash, graph->values.items[node->out[j]].desc.shape);
    }
    for (int i = 0; i < graph->parameters.count; i++)
        hash = mix(hash, att_random_hash(graph->parameters.items[i].name));
    return hash;
}

#define PRECISION(name, text) text,
static const char *const precisions[] = {ATT_PRECISION_LIST(PRECISION)};
#undef PRECISION

const char *att_precision_name(att_precision precision)
{
    return (unsigned)precision < sizeof precisions / sizeof *precisions ? precisions[precision] : "unknown";
}

static att_status write_fingerprint(att_plan *plan, const att_graph *graph, const bool *watchers)
{
    numbering numbers = {
        .number = att_allocate_array(plan->context, (size_t)graph->values.count + 1, sizeof *numbers.number)};
    if (!numbers.number)
        return att_fail_memory(plan->context, (size_t)graph->values.count * sizeof *numbers.number, "a plan");
    uint64_t hash = hash_graph(graph, watchers, &numbers);
    att_free(plan->context, numbers.number);
    att_text text = {.context = plan->context};
    const char *version = plan->backend->version ? plan->backend->version() : "";
    att_text_append(
        &text, "precision=%s graph=%016llx purpose=%s backend=%s group=%d lanes=%d parts=%d tier=%s%s%s attscope=%s",
        att_precision_name(plan->precision), (unsigned long long)hash, plan->purpose == ATT_TRAIN ? "train" : "infer",
        plan->backend->name, plan->group, plan->lanes, plan->parts, att_tier_name(att_context_tier(plan->context)),
        *version ? " " : "", version, att_version());
    if (!text.failed)
        plan->fingerprint = att_arena_string(&plan->arena, text.data);
    att_text_free(&text);
    return plan->fingerprint ? ATT_OK : att_fail_memory(plan->context, 256, "a plan");
}

/* --- compiling --------------------------------------------------------------------------------------------------- */

/* What rewriting leaves beside the graph. */
typedef struct work {
    int *owner;
    bool *watchers;
} work;

static att_status settle_probes(att_graph *graph, work *w)
{
    att_free(graph->context, w->watchers);
    w->watchers = NULL;
    return att_graph_settle_probes(graph, w->owner, &w->watchers);
}

static att_status compile(att_plan *plan, att_graph *graph, const att_plan_options *options, work *w)
{
    ATT_TRY(find_backend(plan->context, options->backend, &plan->backend));
    size_t kernels = 0;
    while (plan->backend->kernels[kernels])
        kernels++;
    plan->profile_kernels = att_arena_allocate(&plan->arena, (kernels + 1) * sizeof(att_kernel *));
    if (!plan->profile_kernels)
        return att_fail_memory(plan->context, kernels * sizeof(att_kernel *), "a plan");
    ATT_TRY(rewrite(graph, options, &w->owner));
    ATT_TRY(settle_probes(graph, w));
    ATT_TRY(describe(plan, graph));
    ATT_TRY(choose_sizes(plan, graph, w->owner, w->watchers, options));
    if (plan->precision == ATT_MIXED) {
        ATT_TRY(narrow(graph, &w->owner));
        ATT_TRY(settle_probes(graph, w));
    }
    ATT_TRY(add_programs(plan, graph, w->owner, w->watchers));
    if (plan->purpose == ATT_TRAIN) {
        ATT_TRY(prepare_reduction(plan));
        ATT_TRY(prepare_update(plan, options));
    }
    return write_fingerprint(plan, graph, w->watchers);
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
    att_free(context, w.owner);
    att_free(context, w.watchers);
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
    att_arena_free(&plan->arena);
    att_free(plan->context, plan);
    *out = NULL;
}

const char *att_plan_fingerprint(const att_plan *plan)
{
    return plan->fingerprint;
}

static size_t program_bytes(const att_program *program)
{
    return program->arena_bytes + program->scratch_bytes * (size_t)program->parts;
}

att_plan_facts att_plan_describe(const att_plan *plan)
{
    att_plan_facts facts = {.group = plan->group,
                            .lanes = plan->lanes,
                            .steps = plan->programs[0].step_count,
                            .packed_bytes = plan->packed_bytes};
    for (int i = 0; i < plan->program_count; i++)
        if (program_bytes(&plan->programs[i]) > facts.arena_bytes)
            facts.arena_bytes = program_bytes(&plan->programs[i]);
    if (plan->purpose == ATT_TRAIN)
        facts.gradient_bytes = (size_t)plan->lanes * (size_t)plan->layout.trained * att_dtype_size(plan->dtype);
    return facts;
}
