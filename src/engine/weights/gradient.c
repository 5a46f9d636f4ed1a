#include "engine/weights/gradient.h"

#include "base/core/error.h"

size_t att_gradient_block_bytes(const att_weights *weights, const att_block *block)
{
    return (size_t)block->layout.trained * att_dtype_size(weights->dtype);
}

size_t att_gradient_bytes(const att_weights *weights)
{
    size_t bytes = 0;
    for (int i = 0; i < weights->block_count; i++)
        bytes += att_gradient_block_bytes(weights, weights->blocks[i]);
    return bytes;
}

static att_status allocate_blocks(att_gradient *gradient)
{
    const att_weights *weights = gradient->weights;
    gradient->blocks = att_allocate_array(gradient->context, (size_t)weights->block_count, sizeof *gradient->blocks);
    if (!gradient->blocks)
        return att_fail_memory(gradient->context, sizeof *gradient->blocks, "a gradient");
    for (int i = 0; i < weights->block_count; i++) {
        size_t bytes = att_gradient_block_bytes(weights, weights->blocks[i]);
        if (bytes > 0)
            gradient->blocks[i] = weights->memory->allocate(gradient->context, bytes);
        if (bytes > 0 && !gradient->blocks[i])
            return att_fail_memory(gradient->context, bytes, "a gradient");
    }
    return ATT_OK;
}

att_status att_gradient_create(att_weights *weights, att_gradient **out)
{
    if (weights->overlaid)
        return att_fail(weights->context, ATT_ERR_ARGUMENT,
                        "overlaid weights cannot have a gradient, because they hide parameters");
    att_gradient *gradient;
    ATT_TRY(att_new(weights->context, &gradient, 1, "a gradient"));
    gradient->context = weights->context;
    gradient->weights = weights;
    att_status status = allocate_blocks(gradient);
    if (status != ATT_OK)
        att_gradient_destroy(&gradient);
    else
        *out = gradient;
    return status;
}

void att_gradient_destroy(att_gradient **out)
{
    if (!out || !*out)
        return;
    att_gradient *gradient = *out;
    const att_weights *weights = gradient->weights;
    for (int i = 0; gradient->blocks && i < weights->block_count; i++)
        if (gradient->blocks[i])
            weights->memory->release(gradient->context, gradient->blocks[i],
                                     att_gradient_block_bytes(weights, weights->blocks[i]));
    att_free(gradient->context, gradient->blocks);
    att_free(gradient->context, gradient);
    *out = NULL;
}

void att_gradient_begin(att_gradient *gradient)
{
    const att_weights *weights = gradient->weights;
    for (int i = 0; i < weights->block_count; i++)
        if (gradient->blocks[i])
            weights->memory->clear(gradient->blocks[i], att_gradient_block_bytes(weights, weights->blocks[i]));
    gradient->filled = false;
    gradient->changes++;
}

void att_gradient_changed(att_gradient *gradient)
{
    gradient->filled = true;
    gradient->changes++;
}

char *att_gradient_at(const att_gradient *gradient, int index)
{
    const att_parameter_place *place = &gradient->weights->places[index];
    return gradient->blocks[place->block] + (size_t)place->offset * att_dtype_size(gradient->weights->dtype);
}

att_status att_gradient_get(const att_gradient *gradient, int index, void *host, int64_t count)
{
    const att_weights *weights = gradient->weights;
    if (index < 0 || index >= weights->count || weights->parameters[index].buffer ||
        att_shape_count(weights->parameters[index].shape) != count)
        return att_fail(gradient->context, ATT_ERR_ARGUMENT, "there is no trained parameter %d of %lld elements", index,
                        (long long)count);
    weights->memory->copy_out(host, att_gradient_at(gradient, index), (size_t)count * att_dtype_size(weights->dtype));
    return ATT_OK;
}
