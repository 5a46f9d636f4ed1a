#include "engine/update/update.h"

#include <math.h>
#include <string.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "base/core/threads.h"
#include "engine/ops/update.h"
#include "engine/session/runner.h"

enum { SQUARES_CHUNK = 4096 }; /* elements per partial sum of squares */

/* A kernel call with fixed memory. */
typedef struct update_step {
    const att_unit *unit;
    void **operands; /* inputs, then outputs */
} update_step;

typedef struct step_list {
    update_step *items;
    int count, capacity;
} step_list;

struct att_update {
    att_context *context;
    att_gradient *gradient;
    const att_memory *memory;
    att_arena arena;
    att_units units;
    att_runner runner;
    step_list squares, norms, clips, updates, averages; /* run in this order; all threads meet after each list */
    char *square_values, *norm, *scale;
    size_t square_bytes;
    double norm_value;
    uint64_t reduced_at; /* gradient->changes when the norm was computed; 0: there is no norm to apply */
    const step_list *running;
    const att_hyper *hyper;
};

/* --- steps ------------------------------------------------------------------------------------------------------- */

static att_desc flat(att_dtype dtype, int64_t count)
{
    return (att_desc){.dtype = dtype, .kind = ATT_SHARED, .shape = att_shape_of(count)};
}

/* Adds a call. descs and operands: `in_count` inputs, then `out_count` outputs. */
static att_status add_step(att_update *update, step_list *list, const char *op, const void *attrs,
                           const att_desc *descs, void *const *operands, int in_count, int out_count, int parts)
{
    att_unit *unit;
    ATT_TRY(att_prepare_flat(&update->units, op, attrs, descs, in_count, descs + in_count, out_count, parts, &unit));
    size_t bytes = (size_t)(in_count + out_count) * sizeof *operands;
    void **copy = att_arena_allocate(&update->arena, bytes);
    if (!copy ||
        !att_list_grow(update->context, (void *)&list->items, list->count, &list->capacity, sizeof *list->items))
        return att_fail_memory(update->context, bytes, "an update");
    memcpy(copy, operands, bytes);
    list->items[list->count++] = (update_step){.unit = unit, .operands = copy};
    return ATT_OK;
}

static int threads_of(const att_update *update)
{
    return att_backend_threads(update->units.backend, update->context);
}

static const att_weights *weights_of(const att_update *update)
{
    return update->gradient->weights;
}

static int64_t chunks_of(int64_t elements)
{
    return (elements + SQUARES_CHUNK - 1) / SQUARES_CHUNK;
}

static att_status reserve(att_update *update, size_t bytes, char **block)
{
    *block = update->memory->allocate(update->context, bytes);
    return *block ? ATT_OK : att_fail_memory(update->context, bytes, "an update");
}

/* --- groups ------------------------------------------------------------------------------------------------------ */

static bool same_rates(const att_parameter_rates *a, const att_parameter_rates *b)
{
    return a->lr == b->lr && a->weight_decay == b->weight_decay && a->frozen == b->frozen;
}

static bool same_frozen(const att_parameter_rates *a, const att_parameter_rates *b)
{
    return a->frozen == b->frozen;
}

/* The optimiser and its settings. */
typedef struct optimizer {
    const att_op *op;
    const att_parameter_rates *rates; /* by parameter; NULL: the defaults of the declarations */
    int slot_count;
} optimizer;

static att_parameter_rates rates_of(const att_update *update, const optimizer *with, int parameter)
{
    return with->rates ? with->rates[parameter]
                       : att_parameter_rates_defaults(&weights_of(update)->parameters[parameter]);
}

static char *element_at(const att_update *update, void *block, int64_t offset)
{
    return (char *)block + (size_t)offset * att_dtype_size(weights_of(update)->dtype);
}

/* The parameter that begins at `offset` of the weights, or -1. */
static int parameter_at(const att_weights *weights, int64_t offset)
{
    for (int i = 0; i < weights->count; i++)
        if (weights->places[i].offset == offset)
            return i;
    return -1;
}

static int64_t padded_count(const att_parameter_info *parameter)
{
    int64_t count = att_shape_count(parameter->shape);
    return (count + ATT_WEIGHT_ALIGN - 1) / ATT_WEIGHT_ALIGN * ATT_WEIGHT_ALIGN;
}

/* Elements [begin, end) of the weights whose parameters have equal rates. Starts with begin = end = 0, and ends at
 * element `most`. Slots and gradients hold the parameters of a range that is not frozen side by side, too. */
typedef struct range_walk {
    int64_t begin, end, most;
    att_parameter_rates rates;
} range_walk;

/* Advances to the next range of adjacent parameters whose rates are equal by same(). False after the last. */
static bool next_range(const att_update *update, const optimizer *with,
                       bool (*same)(const att_parameter_rates *, const att_parameter_rates *), range_walk *walk)
{
    const att_weights *weights = weights_of(update);
    walk->begin = walk->end;
    while (walk->end < walk->most) {
        int parameter = parameter_at(weights, walk->end);
        att_parameter_rates own = rates_of(update, with, parameter);
        if (walk->end == walk->begin)
            walk->rates = own;
        else if (!same(&own, &walk->rates))
            break;
        walk->end += padded_count(&weights->parameters[parameter]);
    }
    return walk->end > walk->begin;
}

static att_status add_range(att_update *update, const optimizer *with, const range_walk *walk)
{
    enum { MOST_OPERANDS = 3 + sizeof with->op->slots / sizeof *with->op->slots };
    const att_weights *weights = weights_of(update);
    const int first = parameter_at(weights, walk->begin);
    att_update_attrs attrs = {.lr = walk->rates.lr, .weight_decay = walk->rates.weight_decay};
    att_desc range = flat(weights->dtype, walk->end - walk->begin);
    att_desc descs[MOST_OPERANDS] = {range, flat(weights->dtype, 1), range};
    void *operands[MOST_OPERANDS] = {att_gradient_at(update->gradient, first), update->scale,
                                     element_at(update, weights->own.values, walk->begin)};
    for (int i = 0; i < with->slot_count; i++) {
        descs[3 + i] = range;
        operands[3 + i] = att_weights_slot_at(weights, with->op->slots[i], first);
    }
    return add_step(update, &update->updates, with->op->name, &attrs, descs, operands, 2, 1 + with->slot_count,
                    threads_of(update));
}

/* Adds the calls for the sums of squares of a range. */
static att_status add_squares(att_update *update, const range_walk *walk, int64_t *chunks)
{
    int64_t count = chunks_of(walk->end - walk->begin);
    att_desc descs[] = {flat(weights_of(update)->dtype, walk->end - walk->begin), flat(ATT_F64, count)};
    void *operands[] = {att_gradient_at(update->gradient, parameter_at(weights_of(update), walk->begin)),
                        update->square_values + (size_t)*chunks * sizeof(double)};
    *chunks += count;
    return add_step(update, &update->squares, "sum_squares", NULL, descs, operands, 1, 1, threads_of(update));
}

/* Adds the calls for the norm of the gradients that are not frozen, and for the clipping factor. */
static att_status add_norm(att_update *update, const optimizer *with)
{
    const att_weights *weights = weights_of(update);
    int64_t chunks = 0, most = weights->count + 1 + chunks_of(weights->own.layout.trained);
    update->square_bytes = (size_t)most * sizeof(double);
    ATT_TRY(reserve(update, update->square_bytes, &update->square_values));
    ATT_TRY(reserve(update, sizeof(double), &update->norm));
    ATT_TRY(reserve(update, sizeof(double), &update->scale));
    range_walk walk = {.most = weights_of(update)->own.layout.trained};
    while (next_range(update, with, same_frozen, &walk))
        if (!walk.rates.frozen)
            ATT_TRY(add_squares(update, &walk, &chunks));
    att_desc descs[] = {flat(ATT_F64, chunks), flat(ATT_F64, 1), flat(weights->dtype, 1)};
    void *operands[] = {update->square_values, update->norm, update->scale};
    if (chunks > 0)
        ATT_TRY(add_step(update, &update->norms, "gradient_norm", NULL, descs, operands, 1, 1, 1));
    return add_step(update, &update->clips, "clip_factor", NULL, descs + 1, operands + 1, 1, 1, 1);
}

static att_status add_updates(att_update *update, const optimizer *with)
{
    range_walk walk = {.most = weights_of(update)->own.layout.trained};
    while (next_range(update, with, same_rates, &walk))
        if (!walk.rates.frozen)
            ATT_TRY(add_range(update, with, &walk));
    return ATT_OK;
}

/* The average covers buffers, too, but no frozen parameter. */
static att_status add_average(att_update *update, const optimizer *with)
{
    const att_weights *weights = weights_of(update);
    range_walk walk = {.most = weights->own.layout.elements};
    while (next_range(update, with, same_frozen, &walk)) {
        const int first = parameter_at(weights, walk.begin);
        const att_desc range = flat(weights->dtype, walk.end - walk.begin), descs[] = {range, range};
        void *operands[] = {element_at(update, weights->own.values, walk.begin),
                            att_weights_slot_at(weights, "ema", first)};
        if (!walk.rates.frozen)
            ATT_TRY(add_step(update, &update->averages, "ema", NULL, descs, operands, 1, 1, threads_of(update)));
    }
    return ATT_OK;
}

/* --- making ------------------------------------------------------------------------------------------------------ */

att_parameter_rates att_parameter_rates_defaults(const att_parameter_info *parameter)
{
    return (att_parameter_rates){.lr = 1, .weight_decay = parameter->decay ? 1 : 0};
}

att_update_options att_update_options_defaults(void)
{
    return (att_update_options){.backend = "cpu", .optimizer = "adamw"};
}

static const char *optimizer_name(const void *user, int index)
{
    const att_registry *registry = user;
    for (const att_op *const *op = registry->ops; *op; op++)
        if ((*op)->slots[0] && index-- == 0)
            return (*op)->name;
    return "";
}

static att_status find_optimizer(att_context *context, const char *name, optimizer *with)
{
    with->op = att_registry_op(context, name);
    if (with->op && with->op->slots[0]) {
        while (with->slot_count < (int)(sizeof with->op->slots / sizeof *with->op->slots) &&
               with->op->slots[with->slot_count])
            with->slot_count++;
        return ATT_OK;
    }
    const att_registry *registry = att_context_registry(context);
    int count = 0;
    while (*optimizer_name(registry, count))
        count++;
    const char *nearest = att_text_nearest(name, optimizer_name, registry, count);
    return att_fail(context, ATT_ERR_NOT_FOUND, "there is no optimiser \"%s\"%s%s%s", name,
                    nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

static bool is_frozen(const att_parameter_rates *rates, int parameter)
{
    return rates && rates[parameter].frozen;
}

static size_t missing_slot_bytes(const att_weights *weights, const char *slot, const att_parameter_rates *rates)
{
    int64_t elements = 0;
    for (int i = 0; i < weights->count && !att_weights_has_slot(weights, slot); i++)
        elements += is_frozen(rates, i) ? 0 : padded_count(&weights->parameters[i]);
    return (size_t)elements * att_dtype_size(weights->dtype);
}

size_t att_update_bytes(const att_weights *weights, const att_update_options *options)
{
    const att_op *op = att_registry_op(weights->context, options->optimizer);
    size_t bytes = options->ema ? missing_slot_bytes(weights, "ema", options->rates) : 0;
    for (size_t i = 0; op && i < sizeof op->slots / sizeof *op->slots && op->slots[i]; i++)
        bytes += missing_slot_bytes(weights, op->slots[i], options->rates);
    return bytes;
}

/* Adds the slots of the optimiser and of the average. */
static att_status add_slots(att_weights *weights, const optimizer *with, bool ema)
{
    const att_layout *layout;
    bool *frozen;
    ATT_TRY(att_new(weights->context, &frozen, (size_t)weights->count + 1, "an update"));
    for (int i = 0; i < weights->count; i++)
        frozen[i] = is_frozen(with->rates, i);
    att_status status = att_weights_layout(weights, frozen, &layout);
    for (int i = 0; i < with->slot_count && status == ATT_OK; i++)
        status = att_weights_add_slot(weights, with->op->slots[i], layout);
    if (status == ATT_OK && ema)
        status = att_weights_add_slot(weights, "ema", layout);
    att_free(weights->context, frozen);
    return status;
}

static att_status check_rates(const att_weights *weights, const att_parameter_rates *rates)
{
    for (int i = 0; rates && i < weights->count; i++)
        if (!weights->parameters[i].buffer && !(rates[i].lr >= 0 && isfinite(rates[i].lr) &&
                                                rates[i].weight_decay >= 0 && isfinite(rates[i].weight_decay)))
            return att_fail(weights->context, ATT_ERR_ARGUMENT,
                            "\"%s\": the factors of learning rate and weight decay are %g and %g; they must be finite "
                            "and not negative",
                            weights->parameters[i].name, rates[i].lr, rates[i].weight_decay);
    return ATT_OK;
}

static att_status prepare(att_update *update, const att_update_options *options)
{
    att_weights *weights = update->gradient->weights;
    optimizer with = {.rates = options->rates};
    const att_backend *backend;
    ATT_TRY(att_backend_choose(update->context, options->backend, &backend));
    if (backend->memory != weights->memory)
        return att_fail(update->context, ATT_ERR_MISMATCH, "the weights are not in the memory of the backend \"%s\"",
                        backend->name);
    ATT_TRY(find_optimizer(update->context, options->optimizer, &with));
    ATT_TRY(check_rates(weights, options->rates));
    ATT_TRY(att_units_init(&update->units, &update->arena, backend));
    ATT_TRY(add_slots(weights, &with, options->ema));
    ATT_TRY(add_norm(update, &with));
    ATT_TRY(add_updates(update, &with));
    if (options->ema)
        ATT_TRY(add_average(update, &with));
    return att_runner_init(&update->runner, &update->units);
}

att_status att_update_create(att_gradient *gradient, const att_update_options *options, att_update **out)
{
    att_context *context = gradient->context;
    att_update *update;
    ATT_TRY(att_new(context, &update, 1, "an update"));
    update->context = context;
    update->gradient = gradient;
    update->memory = gradient->weights->memory;
    update->arena.context = context;
    att_status status = prepare(update, options);
    if (status != ATT_OK)
        att_update_destroy(&update);
    else
        *out = update;
    return status;
}

static void release(att_update *update, char *block, size_t bytes)
{
    if (block)
        update->memory->release(update->context, block, bytes);
}

void att_update_destroy(att_update **out)
{
    if (!out || !*out)
        return;
    att_update *update = *out;
    step_list *lists[] = {&update->squares, &update->norms, &update->clips, &update->updates, &update->averages};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        att_free(update->context, lists[i]->items);
    release(update, update->square_values, update->square_bytes);
    release(update, update->norm, sizeof(double));
    release(update, update->scale, sizeof(double));
    att_runner_release(&update->runner);
    att_units_release(&update->units);
    att_arena_free(&update->arena);
    att_free(update->context, update);
    *out = NULL;
}

/* --- running ----------------------------------------------------------------------------------------------------- */

/* Steps with one part run on the first thread. */
static void run_thread(void *user, int thread)
{
    att_update *update = user;
    att_run run = {.hyper = update->hyper};
    for (int i = 0; i < update->running->count; i++) {
        const update_step *step = &update->running->items[i];
        const att_problem *problem = &step->unit->problem;
        att_call call = {.problem = problem,
                         .in = (const void *const *)step->operands,
                         .out = step->operands + problem->in_count,
                         .state = step->unit->prepared.state,
                         .part = thread,
                         .parts = problem->parts,
                         .run = &run};
        if (thread < problem->parts)
            att_runner_call(&update->runner, step->unit, &call, thread);
    }
}

static att_status run_list(att_update *update, const step_list *list)
{
    int threads = 1;
    for (int i = 0; i < list->count; i++)
        if (list->items[i].unit->problem.parts > threads)
            threads = list->items[i].unit->problem.parts;
    update->running = list;
    atomic_store(&update->runner.status, ATT_OK);
    att_threads_run(update->context, threads, run_thread, update);
    att_runner_wait(&update->runner);
    return (att_status)atomic_load(&update->runner.status);
}

att_status att_update_reduce(att_update *update, double *norm)
{
    update->reduced_at = 0;
    if (!update->gradient->filled)
        return att_fail(update->context, ATT_ERR_ARGUMENT,
                        "the gradient is empty; call att_session_accumulate() first");
    ATT_TRY(run_list(update, &update->squares));
    ATT_TRY(run_list(update, &update->norms));
    update->memory->copy_out(&update->norm_value, update->norm, sizeof update->norm_value);
    if (norm)
        *norm = update->norm_value;
    if (!isfinite(update->norm_value))
        return att_fail(update->context, ATT_ERR_NONFINITE, "the gradient's norm is %g", update->norm_value);
    update->reduced_at = update->gradient->changes;
    return ATT_OK;
}

static att_status check_hyper(const att_update *update, const att_hyper *hyper)
{
    bool averages = update->averages.count > 0;
    if (hyper->update < 1)
        return att_fail(update->context, ATT_ERR_ARGUMENT, "updates are counted from 1, not %lld",
                        (long long)hyper->update);
    if (!isfinite(hyper->lr) || !isfinite(hyper->weight_decay))
        return att_fail(update->context, ATT_ERR_ARGUMENT,
                        "the learning rate is %g and the weight decay %g; they must be finite", hyper->lr,
                        hyper->weight_decay);
    if (!(hyper->clip_norm >= 0))
        return att_fail(update->context, ATT_ERR_ARGUMENT, "clip_norm is %g; it must not be negative",
                        hyper->clip_norm);
    if (averages && !(hyper->ema_decay >= 0 && hyper->ema_decay <= 1))
        return att_fail(update->context, ATT_ERR_ARGUMENT, "ema_decay is %g, must be within 0 and 1", hyper->ema_decay);
    return ATT_OK;
}

static att_status apply(att_update *update)
{
    ATT_TRY(run_list(update, &update->clips));
    ATT_TRY(run_list(update, &update->updates));
    return run_list(update, &update->averages);
}

att_status att_update_apply(att_update *update, const att_hyper *hyper)
{
    if (update->reduced_at == 0 || update->reduced_at != update->gradient->changes)
        return att_fail(update->context, ATT_ERR_ARGUMENT,
                        "call att_update_reduce() for this gradient before att_update_apply()");
    ATT_TRY(check_hyper(update, hyper));
    update->reduced_at = 0;
    update->hyper = hyper;
    att_status status = apply(update);
    update->hyper = NULL;
    update->gradient->weights->own.version++;
    return status;
}

/* --- profile ----------------------------------------------------------------------------------------------------- */

att_status att_update_profile(att_update *update, bool on)
{
    att_runner_profile(&update->runner, on);
    return ATT_OK;
}

int att_update_profile_count(const att_update *update)
{
    return update->units.profile_count;
}

att_profile_row att_update_profile_at(const att_update *update, int index)
{
    return att_runner_profile_at(&update->runner, index);
}
