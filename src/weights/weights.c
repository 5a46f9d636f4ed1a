#include "weights/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "core/random.h"

enum { DRAWN = 4096 }; /* elements drawn at once */

enum { DECAYED, OTHERS, BUFFERS };

static int range_of(const att_parameter_info *parameter)
{
    return parameter->buffer ? BUFFERS : parameter->decay ? DECAYED : OTHERS;
}

static int64_t place(const att_graph *graph, int range, int64_t *offsets, int64_t at)
{
    for (int i = 0; i < graph->parameters.count; i++) {
        const att_parameter_info *parameter = &graph->parameters.items[i];
        if (range_of(parameter) != range)
            continue;
        offsets[i] = at;
        int64_t count = att_shape_count(parameter->shape);
        at += (count + ATT_WEIGHT_ALIGN - 1) / ATT_WEIGHT_ALIGN * ATT_WEIGHT_ALIGN;
    }
    return at;
}

att_status att_layout_make(const att_graph *graph, att_arena *arena, att_layout *layout)
{
    size_t bytes = (size_t)graph->parameters.count * sizeof *layout->offsets;
    layout->offsets = att_arena_allocate(arena, bytes);
    if (!layout->offsets)
        return att_fail_memory(graph->context, bytes, "the weights' layout");
    layout->decayed = place(graph, DECAYED, layout->offsets, 0);
    layout->trained = place(graph, OTHERS, layout->offsets, layout->decayed);
    layout->elements = place(graph, BUFFERS, layout->offsets, layout->trained);
    return ATT_OK;
}

size_t att_weights_bytes(const att_weights *weights)
{
    return (size_t)weights->layout.elements * att_dtype_size(weights->dtype);
}

static att_status copy_parameters(const att_graph *graph, att_weights *weights)
{
    size_t bytes = (size_t)graph->parameters.count * sizeof *weights->parameters;
    att_parameter_info *parameters = att_arena_allocate(&weights->arena, bytes);
    if (!parameters)
        return att_fail_memory(graph->context, bytes, "the weights");
    for (int i = 0; i < graph->parameters.count; i++) {
        parameters[i] = graph->parameters.items[i];
        parameters[i].name = att_arena_string(&weights->arena, parameters[i].name);
        if (!parameters[i].name)
            return att_fail_memory(graph->context, bytes, "the weights");
    }
    weights->parameters = parameters;
    weights->count = graph->parameters.count;
    return ATT_OK;
}

/* Names the parameter that takes most. */
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

static att_status allocate_block(att_weights *weights, void **block)
{
    size_t bytes = att_weights_bytes(weights);
    if (bytes == 0)
        return ATT_OK;
    *block = weights->memory->allocate(weights->context, bytes);
    return *block ? ATT_OK : fail_weights(weights, bytes);
}

static att_status fill(const att_graph *graph, att_weights *weights)
{
    weights->context = graph->context;
    weights->arena.context = graph->context;
    weights->memory = att_context_registry(graph->context)->backends[0]->memory;
    weights->dtype = graph->dtype;
    ATT_TRY(copy_parameters(graph, weights));
    ATT_TRY(att_layout_make(graph, &weights->arena, &weights->layout));
    return allocate_block(weights, &weights->values);
}

att_status att_weights_create(const att_graph *graph, att_weights **out)
{
    ATT_TRY(graph->status);
    att_weights *weights = att_allocate(graph->context, sizeof *weights);
    if (!weights)
        return att_fail_memory(graph->context, sizeof *weights, "the weights");
    att_status status = fill(graph, weights);
    if (status != ATT_OK)
        att_weights_destroy(&weights);
    else
        *out = weights;
    return status;
}

void att_weights_destroy(att_weights **out)
{
    if (!out || !*out)
        return;
    att_weights *weights = *out;
    size_t bytes = weights->layout.offsets ? att_weights_bytes(weights) : 0;
    if (weights->values)
        weights->memory->release(weights->context, weights->values, bytes);
    for (int i = 0; i < weights->slot_count; i++)
        weights->memory->release(weights->context, weights->slots[i].values, bytes);
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

static int find_slot(const att_weights *weights, const char *name)
{
    for (int i = 0; i < weights->slot_count; i++)
        if (strcmp(weights->slots[i].name, name) == 0)
            return i;
    return -1;
}

void *att_weights_slot(att_weights *weights, const char *name)
{
    int slot = find_slot(weights, name);
    return slot < 0 ? NULL : weights->slots[slot].values;
}

att_status att_weights_add_slot(att_weights *weights, const char *name)
{
    if (find_slot(weights, name) >= 0)
        return ATT_OK;
    if (weights->slot_count == ATT_MAX_SLOTS)
        return att_fail(weights->context, ATT_ERR_ARGUMENT, "weights keep at most %d slots; \"%s\" is one too many",
                        ATT_MAX_SLOTS, name);
    void *values = NULL;
    ATT_TRY(allocate_block(weights, &values));
    const char *copy = att_arena_string(&weights->arena, name);
    if (!copy) {
        weights->memory->release(weights->context, values, att_weights_bytes(weights));
        return att_fail_memory(weights->context, strlen(name), "the weights");
    }
    weights->slots[weights->slot_count].name = copy;
    weights->slots[weights->slot_count++].values = values;
    return ATT_OK;
}

int att_weights_slot_count(const att_weights *weights)
{
    return weights->slot_count;
}

const char *att_weights_slot_name(const att_weights *weights, int slot)
{
    return weights->slots[slot].name;
}

/* --- contents ---------------------------------------------------------------------------------------------------- */

static att_status locate(const att_weights *weights, int slot, int index, int64_t count, void **data, size_t *bytes)
{
    if (index < 0 || index >= weights->count || slot < -1 || slot >= weights->slot_count)
        return att_fail(weights->context, ATT_ERR_ARGUMENT, "there is no parameter %d in slot %d of these weights",
                        index, slot);
    const att_parameter_info *parameter = &weights->parameters[index];
    if (att_shape_count(parameter->shape) != count)
        return att_fail(weights->context, ATT_ERR_ARGUMENT, "\"%s\" has %lld elements, not %lld", parameter->name,
                        (long long)att_shape_count(parameter->shape), (long long)count);
    size_t size = att_dtype_size(weights->dtype);
    char *block = slot < 0 ? weights->values : weights->slots[slot].values;
    *data = block + (size_t)weights->layout.offsets[index] * size;
    *bytes = (size_t)count * size;
    return ATT_OK;
}

att_status att_weights_set(att_weights *weights, int slot, int index, const void *host, int64_t count)
{
    void *data;
    size_t bytes;
    ATT_TRY(locate(weights, slot, index, count, &data, &bytes));
    weights->memory->copy_in(data, host, bytes);
    if (slot < 0)
        weights->version++;
    return ATT_OK;
}

att_status att_weights_get(const att_weights *weights, int slot, int index, void *host, int64_t count)
{
    void *data;
    size_t bytes;
    ATT_TRY(locate(weights, slot, index, count, &data, &bytes));
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

static double draw(att_init init, att_random *random)
{
    switch (init.rule) {
    case ATT_INIT_NORMAL:
        return init.value * att_random_normal(random);
    case ATT_INIT_TRUNC_NORMAL:
        return truncated_normal(random, init.value);
    case ATT_INIT_UNIFORM:
        return init.value * (2 * att_random_uniform(random) - 1);
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
    char *to = (char *)weights->values + (size_t)weights->layout.offsets[index] * size;
    att_random random = att_random_from(att_random_key(seed, att_random_hash(parameter->name), 0));
    for (int64_t first = 0; first < count; first += DRAWN) {
        int64_t end = count - first < DRAWN ? count - first : DRAWN;
        double wide[DRAWN];
        float narrow[DRAWN];
        for (int64_t i = 0; i < end; i++) {
            wide[i] = draw(parameter->init, &random);
            narrow[i] = (float)wide[i];
        }
        const void *drawn = weights->dtype == ATT_F64 ? (const void *)wide : narrow;
        weights->memory->copy_in(to + (size_t)first * size, drawn, (size_t)end * size);
    }
    weights->version++;
}

att_status att_weights_initialise(att_weights *weights, uint64_t seed)
{
    for (int i = 0; i < weights->count; i++)
        initialise(weights, i, seed);
    for (int i = 0; i < weights->slot_count; i++)
        weights->memory->clear(weights->slots[i].values, att_weights_bytes(weights));
    return ATT_OK;
}
