#include "engine/weights/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/random.h"

enum { DRAW_CHUNK = 4096 }; /* elements drawn at a time */

enum { DECAYED, OTHERS, BUFFERS };

static int range_of(const att_parameter_info *parameter)
{
    return parameter->buffer ? BUFFERS : parameter->decay ? DECAYED : OTHERS;
}

/* frozen: parameters without a place; NULL: none. */
static int64_t assign_offsets(const att_weights *weights, const bool *frozen, int range, int64_t *offsets, int64_t at)
{
    for (int i = 0; i < weights->count; i++) {
        const att_parameter_info *parameter = &weights->parameters[i];
        if (range_of(parameter) != range)
            continue;
        offsets[i] = frozen && frozen[i] ? -1 : at;
        int64_t count = offsets[i] < 0 ? 0 : att_shape_count(parameter->shape);
        at += (count + ATT_WEIGHT_ALIGN - 1) / ATT_WEIGHT_ALIGN * ATT_WEIGHT_ALIGN;
    }
    return at;
}

static att_status make_layout(att_weights *weights, const bool *frozen, att_layout *layout)
{
    size_t bytes = (size_t)weights->count * sizeof *layout->offsets;
    layout->offsets = att_arena_allocate(&weights->arena, bytes);
    layout->count = weights->count;
    if (!layout->offsets)
        return att_fail_memory(weights->context, bytes, "the weights' layout");
    layout->decayed = assign_offsets(weights, frozen, DECAYED, layout->offsets, 0);
    layout->trained = assign_offsets(weights, frozen, OTHERS, layout->offsets, layout->decayed);
    layout->elements = assign_offsets(weights, frozen, BUFFERS, layout->offsets, layout->trained);
    return ATT_OK;
}

att_status att_weights_layout(att_weights *weights, const bool *frozen, const att_layout **out)
{
    bool any = false;
    for (int i = 0; frozen && i < weights->count; i++)
        any = any || frozen[i];
    *out = &weights->own.layout;
    if (!any)
        return ATT_OK;
    att_layout *layout = att_arena_allocate(&weights->arena, sizeof *layout);
    *out = layout;
    return layout ? make_layout(weights, frozen, layout)
                  : att_fail_memory(weights->context, sizeof *layout, "the weights' layout");
}

static bool same_layout(const att_layout *a, const att_layout *b)
{
    return a == b || memcmp(a->offsets, b->offsets, (size_t)a->count * sizeof *a->offsets) == 0;
}

static size_t layout_bytes(const att_weights *weights, const att_layout *layout)
{
    return (size_t)layout->elements * att_dtype_size(weights->dtype);
}

size_t att_block_bytes(const att_weights *weights, const att_block *block)
{
    return layout_bytes(weights, &block->layout);
}

size_t att_weights_held_bytes(const att_weights *weights)
{
    size_t bytes = att_weights_bytes(weights);
    for (int i = 0; i < weights->block_count; i++)
        for (int slot = 0; slot < weights->blocks[i]->slot_count; slot++)
            bytes += layout_bytes(weights, weights->blocks[i]->slots[slot].layout);
    return bytes;
}

size_t att_weights_bytes(const att_weights *weights)
{
    size_t bytes = 0;
    for (int i = 0; i < weights->block_count; i++)
        bytes += att_block_bytes(weights, weights->blocks[i]);
    return bytes;
}

uint64_t att_weights_version(const att_weights *weights)
{
    uint64_t version = 0;
    for (int i = 0; i < weights->block_count; i++)
        version += weights->blocks[i]->version;
    return version;
}

/* Reports the failed allocation, and names the largest parameter. */
static att_status fail_weights(const att_weights *weights, size_t bytes)
{
    const att_parameter_info *largest = &weights->parameters[0];
    for (int i = 1; i < weights->count; i++)
        if (att_shape_count(weights->parameters[i].shape) > att_shape_count(largest->shape))
            largest = &weights->parameters[i];
    char shape[96], what[256];
    snprintf(what, sizeof what, "the weights (the largest are \"%.100s\", %s)", largest->name,
             att_shape_format(largest->shape, shape, sizeof shape));
    return att_fail_memory(weights->context, bytes, what);
}

static att_status allocate_values(const att_weights *weights, const att_layout *layout, void **values)
{
    size_t bytes = layout_bytes(weights, layout);
    if (bytes == 0)
        return ATT_OK;
    *values = weights->memory->allocate(weights->context, bytes);
    return *values ? ATT_OK : fail_weights(weights, bytes);
}

/* Allocates the lists of a weights object. */
static att_status allocate_lists(att_weights *weights, int count, int block_count, att_parameter_info **parameters,
                                 att_parameter_place **places)
{
    size_t room = (size_t)count + 1;
    *parameters = att_arena_allocate(&weights->arena, room * sizeof **parameters);
    *places = att_arena_allocate(&weights->arena, room * sizeof **places);
    weights->blocks = att_arena_allocate(&weights->arena, (size_t)block_count * sizeof(att_block *));
    if (!*parameters || !*places || !weights->blocks)
        return att_fail_memory(weights->context, room * sizeof **parameters, "the weights");
    weights->parameters = *parameters;
    weights->places = *places;
    weights->count = count;
    weights->block_count = block_count;
    return ATT_OK;
}

static att_status copy_parameters(const att_graph *graph, att_weights *weights)
{
    att_parameter_info *parameters;
    att_parameter_place *places;
    ATT_TRY(allocate_lists(weights, graph->parameters.count, 1, &parameters, &places));
    for (int i = 0; i < weights->count; i++)
        parameters[i] = graph->parameters.items[i];
    ATT_TRY(make_layout(weights, NULL, &weights->own.layout));
    for (int i = 0; i < weights->count; i++) {
        parameters[i].name = att_arena_string(&weights->arena, parameters[i].name);
        places[i] = (att_parameter_place){.offset = weights->own.layout.offsets[i]};
        if (!parameters[i].name)
            return att_fail_memory(graph->context, strlen(graph->parameters.items[i].name), "the weights");
    }
    return ATT_OK;
}

static att_status init_weights(const att_graph *graph, const att_backend *backend, att_weights *weights)
{
    weights->context = graph->context;
    weights->arena.context = graph->context;
    weights->memory = backend->memory;
    weights->dtype = graph->dtype;
    ATT_TRY(copy_parameters(graph, weights));
    weights->blocks[0] = &weights->own;
    return allocate_values(weights, &weights->own.layout, &weights->own.values);
}

att_status att_weights_create(const att_graph *graph, const char *name, att_weights **out)
{
    const att_backend *backend;
    ATT_TRY(graph->status);
    ATT_TRY(att_backend_choose(graph->context, name, &backend));
    att_weights *weights;
    ATT_TRY(att_new(graph->context, &weights, 1, "the weights"));
    att_status status = init_weights(graph, backend, weights);
    if (status != ATT_OK)
        att_weights_destroy(&weights);
    else
        *out = weights;
    return status;
}

/* Appends the parameters and blocks of a part, without the parameters whose names an earlier part has. */
static void append_part(att_weights *covered, const att_weights *part, att_parameter_info *parameters,
                        att_parameter_place *places)
{
    int before = covered->count;
    for (int i = 0; i < part->count; i++) {
        int j = 0;
        while (j < before && strcmp(parameters[j].name, part->parameters[i].name) != 0)
            j++;
        if (j < before)
            continue;
        parameters[covered->count] = part->parameters[i];
        places[covered->count++] =
            (att_parameter_place){covered->block_count + part->places[i].block, part->places[i].offset};
    }
    for (int i = 0; i < part->block_count; i++)
        covered->blocks[covered->block_count++] = part->blocks[i];
}

static att_status overlay(const att_weights *base, const att_weights *over, att_weights *covered)
{
    att_parameter_info *parameters;
    att_parameter_place *places;
    if (base->dtype != over->dtype || base->memory != over->memory)
        return att_fail(covered->context, ATT_ERR_MISMATCH,
                        "overlaid weights must have the same type and lie in the same memory");
    ATT_TRY(allocate_lists(covered, base->count + over->count, base->block_count + over->block_count, &parameters,
                           &places));
    covered->count = covered->block_count = 0;
    append_part(covered, over, parameters, places);
    append_part(covered, base, parameters, places);
    return ATT_OK;
}

att_status att_weights_overlay(att_weights *base, att_weights *over, att_weights **out)
{
    att_context *context = base->context;
    att_weights *covered;
    ATT_TRY(att_new(context, &covered, 1, "the weights"));
    covered->context = context;
    covered->arena.context = context;
    covered->memory = base->memory;
    covered->dtype = base->dtype;
    covered->overlaid = true;
    att_status status = overlay(base, over, covered);
    if (status != ATT_OK)
        att_weights_destroy(&covered);
    else
        *out = covered;
    return status;
}

static void release_slot(att_weights *weights, int slot)
{
    const size_t bytes = layout_bytes(weights, weights->own.slots[slot].layout);
    if (bytes > 0)
        weights->memory->release(weights->context, weights->own.slots[slot].values, bytes);
}

void att_weights_destroy(att_weights **out)
{
    if (!out || !*out)
        return;
    att_weights *weights = *out;
    att_block *own = &weights->own;
    if (own->values)
        weights->memory->release(weights->context, own->values, att_block_bytes(weights, own));
    for (int i = 0; i < own->slot_count; i++)
        release_slot(weights, i);
    att_arena_free(&weights->arena);
    att_free(weights->context, weights);
    *out = NULL;
}

int att_weights_count(const att_weights *weights)
{
    return weights->count;
}

att_parameter_info att_weights_at(const att_weights *weights, int index)
{
    return weights->parameters[index];
}

int att_weights_find(const att_weights *weights, const char *name)
{
    for (int i = 0; i < weights->count; i++)
        if (strcmp(weights->parameters[i].name, name) == 0)
            return i;
    return -1;
}

/* --- slots ------------------------------------------------------------------------------------------------------- */

static int find_slot(const att_block *block, const char *name)
{
    for (int i = 0; i < block->slot_count; i++)
        if (strcmp(block->slots[i].name, name) == 0)
            return i;
    return -1;
}

bool att_weights_has_slot(const att_weights *weights, const char *name)
{
    return find_slot(&weights->own, name) >= 0;
}

char *att_weights_slot_at(const att_weights *weights, const char *name, int index)
{
    const int slot = find_slot(&weights->own, name);
    const int64_t offset = slot < 0 ? -1 : weights->own.slots[slot].layout->offsets[index];
    return offset < 0 ? NULL
                      : (char *)weights->own.slots[slot].values + (size_t)offset * att_dtype_size(weights->dtype);
}

att_status att_weights_add_slot(att_weights *weights, const char *name, const att_layout *layout)
{
    att_block *block = &weights->own;
    int slot = find_slot(block, name);
    if (slot >= 0 && same_layout(block->slots[slot].layout, layout))
        return ATT_OK;
    if (slot < 0 && block->slot_count == ATT_MAX_SLOTS)
        return att_fail(weights->context, ATT_ERR_ARGUMENT,
                        "weights have at most %d slots; there is no room for \"%s\"", ATT_MAX_SLOTS, name);
    void *values = NULL;
    const char *copy = slot < 0 ? att_arena_string(&weights->arena, name) : block->slots[slot].name;
    if (!copy)
        return att_fail_memory(weights->context, strlen(name), "the weights");
    ATT_TRY(allocate_values(weights, layout, &values));
    if (slot < 0)
        slot = block->slot_count++;
    else
        release_slot(weights, slot);
    block->slots[slot].name = copy;
    block->slots[slot].layout = layout;
    block->slots[slot].values = values;
    return ATT_OK;
}

int att_weights_slot_count(const att_weights *weights)
{
    return weights->blocks[0]->slot_count;
}

const char *att_weights_slot_name(const att_weights *weights, int slot)
{
    return weights->blocks[0]->slots[slot].name;
}

/* --- contents ---------------------------------------------------------------------------------------------------- */

/* Where the slot of the parameter's block begins to hold its values; -1: nowhere. */
static int64_t offset_in_slot(const att_weights *weights, int slot, int index, char **values)
{
    const att_parameter_place *place = &weights->places[index];
    const att_block *block = weights->blocks[place->block];
    const int own = find_slot(block, att_weights_slot_name(weights, slot));
    int parameter = 0;
    if (own < 0)
        return -1;
    while (block->layout.offsets[parameter] != place->offset)
        parameter++;
    *values = block->slots[own].values;
    return block->slots[own].layout->offsets[parameter];
}

bool att_weights_in_slot(const att_weights *weights, int slot, int index)
{
    char *values;
    return offset_in_slot(weights, slot, index, &values) >= 0;
}

/* reads: the average of a frozen parameter is the parameter itself. */
static att_status locate(const att_weights *weights, int slot, int index, int64_t count, bool reads, void **data,
                         size_t *bytes)
{
    if (index < 0 || index >= weights->count || slot < -1 || slot >= att_weights_slot_count(weights))
        return att_fail(weights->context, ATT_ERR_ARGUMENT, "there is no parameter %d in slot %d of these weights",
                        index, slot);
    const att_parameter_info *parameter = &weights->parameters[index];
    if (att_shape_count(parameter->shape) != count)
        return att_fail(weights->context, ATT_ERR_ARGUMENT, "\"%s\" has %lld elements, not %lld", parameter->name,
                        (long long)att_shape_count(parameter->shape), (long long)count);
    const att_block *block = weights->blocks[weights->places[index].block];
    char *values = block->values;
    int64_t offset = slot < 0 ? weights->places[index].offset : offset_in_slot(weights, slot, index, &values);
    if (offset < 0 && reads && strcmp(att_weights_slot_name(weights, slot), "ema") == 0)
        offset = weights->places[index].offset, values = block->values;
    if (offset < 0)
        return att_fail(weights->context, ATT_ERR_ARGUMENT, "\"%s\" has no slot \"%s\"", parameter->name,
                        att_weights_slot_name(weights, slot));
    if (slot < 0 || values == block->values)
        ATT_TRY(att_weights_complete(weights));
    size_t size = att_dtype_size(weights->dtype);
    *data = values + (size_t)offset * size;
    *bytes = (size_t)count * size;
    return ATT_OK;
}

att_status att_weights_set(att_weights *weights, int slot, int index, const void *host, int64_t count)
{
    void *data;
    size_t bytes;
    ATT_TRY(locate(weights, slot, index, count, false, &data, &bytes));
    weights->memory->copy_in(data, host, bytes);
    if (slot < 0)
        weights->blocks[weights->places[index].block]->version++;
    return ATT_OK;
}

att_status att_weights_get(const att_weights *weights, int slot, int index, void *host, int64_t count)
{
    void *data;
    size_t bytes;
    ATT_TRY(locate(weights, slot, index, count, true, &data, &bytes));
    weights->memory->copy_out(host, data, bytes);
    return ATT_OK;
}

/* --- initial values ---------------------------------------------------------------------------------------------- */

static double truncated_normal(att_random *random, double deviation)
{
    double draw;
    do
        draw = deviation * att_random_normal(random);
    while (fabs(draw) > 2);
    return draw;
}

/* Element e of frequencies of this shape, see ATT_INIT_ROTARY. Each head has random numbers of its own. */
static double draw_frequency(att_init init, att_shape shape, uint64_t seed, uint64_t name, int64_t e)
{
    static const double circle = 6.283185307179586477;
    const int64_t width = shape.dims[3], bands = width / 2, heads = shape.dims[1] * shape.dims[2];
    const int64_t channel = e % width, head = e / width % heads;
    att_random random = att_random_from(att_random_key(seed, name, (uint64_t)head));
    double angle = circle * (att_random_uniform(&random) + (channel < bands ? 0 : 0.25));
    double magnitude = pow(init.value, -(double)(channel % bands) / (double)bands);
    return magnitude * (e / width < heads ? cos(angle) : sin(angle));
}

/* Element e of the identity, see ATT_INIT_NEAR_IDENTITY. */
static double identity(att_shape shape, int64_t e)
{
    const int64_t columns = shape.dims[shape.rank - 1];
    return shape.rank < 2 || e / columns % shape.dims[shape.rank - 2] == e % columns;
}

/* Element e of a parameter. random: the parameter's, from which elements are drawn in order. */
static double draw(const att_parameter_info *parameter, int64_t e, uint64_t seed, uint64_t name, att_random *random)
{
    const att_init init = parameter->init;
    switch (init.rule) {
    case ATT_INIT_NORMAL:
        return init.value * att_random_normal(random);
    case ATT_INIT_NEAR_IDENTITY:
        return init.value * att_random_normal(random) + identity(parameter->shape, e);
    case ATT_INIT_CENTERED:
        return init.value * ((double)e - 0.5 * (double)(att_shape_count(parameter->shape) - 1));
    case ATT_INIT_TRUNC_NORMAL:
        return truncated_normal(random, init.value);
    case ATT_INIT_UNIFORM:
        return init.value * (2 * att_random_uniform(random) - 1);
    case ATT_INIT_ROTARY:
        return draw_frequency(init, parameter->shape, seed, name, e);
    case ATT_INIT_CONSTANT:
        break;
    }
    return init.value;
}

static void initialise(att_weights *weights, int index, uint64_t seed)
{
    const att_parameter_info *parameter = &weights->parameters[index];
    int64_t count = att_shape_count(parameter->shape);
    size_t size = att_dtype_size(weights->dtype);
    att_block *block = weights->blocks[weights->places[index].block];
    char *to = (char *)block->values + (size_t)weights->places[index].offset * size;
    const uint64_t name = att_random_hash(parameter->name);
    att_random random = att_random_from(att_random_key(seed, name, 0));
    for (int64_t first = 0; first < count; first += DRAW_CHUNK) {
        int64_t end = count - first < DRAW_CHUNK ? count - first : DRAW_CHUNK;
        double wide[DRAW_CHUNK];
        float narrow[DRAW_CHUNK];
        for (int64_t i = 0; i < end; i++) {
            wide[i] = draw(parameter, first + i, seed, name, &random);
            narrow[i] = (float)wide[i];
        }
        const void *drawn = weights->dtype == ATT_F64 ? (const void *)wide : narrow;
        weights->memory->copy_in(to + (size_t)first * size, drawn, (size_t)end * size);
    }
    block->version++;
}

static void clear_slots(att_weights *weights, const att_block *block)
{
    for (int i = 0; i < block->slot_count; i++)
        if (block->slots[i].layout->elements > 0)
            weights->memory->clear(block->slots[i].values, layout_bytes(weights, block->slots[i].layout));
}

/* As att_weights_make_fn. */
static att_status initialise_again(void *user, att_weights *weights)
{
    (void)user;
    for (int i = 0; i < weights->count; i++)
        initialise(weights, i, weights->own.seed);
    return ATT_OK;
}

att_status att_weights_initialise(att_weights *weights, uint64_t seed)
{
    for (int i = 0; i < weights->block_count; i++)
        weights->blocks[i]->given_back_by = NULL;
    for (int i = 0; i < weights->count; i++)
        initialise(weights, i, seed);
    for (int i = 0; i < weights->block_count; i++)
        clear_slots(weights, weights->blocks[i]);
    weights->own.seed = seed;
    if (!weights->overlaid)
        att_weights_set_source(weights, initialise_again, NULL);
    return ATT_OK;
}
