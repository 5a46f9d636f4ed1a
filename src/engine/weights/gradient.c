#include "engine/weights/gradient.h"

#include "base/core/error.h"

size_t att_gradient_bytes(const att_weights *weights)
{
    return (size_t)weights->own.layout.trained * att_dtype_size(weights->dtype);
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
    const size_t bytes = att_gradient_bytes(weights);
    if (bytes > 0)
        gradient->values = weights->memory->allocate(weights->context, bytes);
    if (bytes > 0 && !gradient->values) {
        att_gradient_destroy(&gradient);
        return att_fail_memory(weights->context, bytes, "a gradient");
    }
    *out = gradient;
    return ATT_OK;
}

void att_gradient_destroy(att_gradient **out)
{
    if (!out || !*out)
        return;
    att_gradient *gradient = *out;
    const att_weights *weights = gradient->weights;
    if (gradient->values)
        weights->memory->release(gradient->context, gradient->values, att_gradient_bytes(weights));
    att_free(gradient->context, gradient);
    *out = NULL;
}

void att_gradient_begin(att_gradient *gradient)
{
    const att_weights *weights = gradient->weights;
    if (gradient->values)
        weights->memory->clear(gradient->values, att_gradient_bytes(weights));
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
    return gradient->values + (size_t)weights->places[index].offset * att_dtype_size(weights->dtype);
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
