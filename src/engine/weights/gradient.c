#include "engine/weights/gradient.h"

#include "base/core/error.h"

size_t att_gradient_bytes(const att_weights *weights, const bool *frozen)
{
    int64_t elements = 0;
    for (int i = 0; i < weights->count; i++)
        if (!weights->parameters[i].buffer && !(frozen && frozen[i])) {
            const int64_t count = att_shape_count(weights->parameters[i].shape);
            elements += (count + ATT_WEIGHT_ALIGN - 1) / ATT_WEIGHT_ALIGN * ATT_WEIGHT_ALIGN;
        }
    return (size_t)elements * att_dtype_size(weights->dtype);
}

static size_t bytes_of(const att_gradient *gradient)
{
    return (size_t)gradient->layout->trained * att_dtype_size(gradient->weights->dtype);
}

static att_status allocate(att_gradient *gradient, const bool *frozen)
{
    att_weights *weights = gradient->weights;
    ATT_TRY(att_weights_layout(weights, frozen, &gradient->layout));
    const size_t bytes = bytes_of(gradient);
    if (bytes > 0)
        gradient->values = weights->memory->allocate(weights->context, bytes);
    return bytes == 0 || gradient->values ? ATT_OK : att_fail_memory(weights->context, bytes, "a gradient");
}

att_status att_gradient_create_for(att_weights *weights, const bool *frozen, att_gradient **out)
{
    if (weights->overlaid)
        return att_fail(weights->context, ATT_ERR_ARGUMENT,
                        "overlaid weights cannot have a gradient, because they hide parameters");
    att_gradient *gradient;
    ATT_TRY(att_new(weights->context, &gradient, 1, "a gradient"));
    gradient->context = weights->context;
    gradient->weights = weights;
    att_status status = att_weights_complete(weights);
    att_weights_keep(weights);
    if (status == ATT_OK)
        status = allocate(gradient, frozen);
    if (status != ATT_OK)
        att_gradient_destroy(&gradient);
    else
        *out = gradient;
    return status;
}

att_status att_gradient_create(att_weights *weights, att_gradient **out)
{
    return att_gradient_create_for(weights, NULL, out);
}

void att_gradient_destroy(att_gradient **out)
{
    if (!out || !*out)
        return;
    att_gradient *gradient = *out;
    if (gradient->values)
        gradient->weights->memory->release(gradient->context, gradient->values, bytes_of(gradient));
    att_free(gradient->context, gradient);
    *out = NULL;
}

void att_gradient_begin(att_gradient *gradient)
{
    if (gradient->values)
        gradient->weights->memory->clear(gradient->values, bytes_of(gradient));
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
    const att_weights *weights = gradient->weights;
    return gradient->values + (size_t)gradient->layout->offsets[index] * att_dtype_size(weights->dtype);
}

att_status att_gradient_get(const att_gradient *gradient, int index, void *host, int64_t count)
{
    const att_weights *weights = gradient->weights;
    if (index < 0 || index >= weights->count || weights->parameters[index].buffer ||
        gradient->layout->offsets[index] < 0 || att_shape_count(weights->parameters[index].shape) != count)
        return att_fail(gradient->context, ATT_ERR_ARGUMENT, "there is no trained parameter %d of %lld elements", index,
                        (long long)count);
    weights->memory->copy_out(host, att_gradient_at(gradient, index), (size_t)count * att_dtype_size(weights->dtype));
    return ATT_OK;
}
