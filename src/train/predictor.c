#include <math.h>

#include <attscope/evaluate.h>

#include "core/error.h"
#include "core/memory.h"
#include "train/network.h"

struct att_predictor {
    att_context *context;
    att_network network;
    att_transform_options transform;
    float *pixels; /* one transformed image */
};

static att_status fill(att_predictor *predictor, const att_model *model, att_weights *weights, const char *backend,
                       att_precision precision)
{
    const att_transform_options *transform = &predictor->transform;
    ATT_TRY(att_network_check_images(model, transform));
    att_network_options network = {.backend = backend, .precision = precision, .max_batch = 1};
    ATT_TRY(att_network_create(model, weights, &network, &predictor->network));
    size_t count = (size_t)transform->height * (size_t)transform->width * (size_t)transform->channels;
    predictor->pixels = att_allocate_array(predictor->context, count, sizeof *predictor->pixels);
    return predictor->pixels
               ? ATT_OK
               : att_fail_memory(predictor->context, count * sizeof *predictor->pixels, "the transformed image");
}

att_status att_predictor_create(const att_model *model, att_weights *weights, const att_transform_options *transform,
                                const char *backend, att_precision precision, att_predictor **predictor)
{
    att_context *context = att_graph_context(att_model_graph(model));
    att_predictor *made = att_allocate(context, sizeof *made);
    if (!made)
        return att_fail_memory(context, sizeof *made, "the predictor");
    made->context = context;
    made->transform = *transform;
    att_status status = fill(made, model, weights, backend, precision);
    if (status == ATT_OK)
        *predictor = made;
    else
        att_predictor_destroy(&made);
    return status;
}

void att_predictor_destroy(att_predictor **predictor)
{
    if (!predictor || !*predictor)
        return;
    att_context *context = (*predictor)->context;
    att_network_free(&(*predictor)->network);
    att_free(context, (*predictor)->pixels);
    att_free(context, *predictor);
    *predictor = NULL;
}

att_status att_predictor_image(att_predictor *predictor, const att_image *image, att_batch *answer)
{
    ATT_TRY(att_transform_image(predictor->context, &predictor->transform, image, 0, 0, 0, predictor->pixels));
    ATT_TRY(att_network_run(&predictor->network, predictor->pixels, 1, answer));
    return att_network_is_finite(answer, 0)
               ? ATT_OK
               : att_fail(predictor->context, ATT_ERR_NONFINITE, "the network answers with NaN or infinity");
}

att_status att_predictor_file(att_predictor *predictor, const char *path, att_batch *answer)
{
    att_image image = {0};
    ATT_TRY(att_image_read(predictor->context, path, predictor->transform.channels, NULL, &image));
    att_status status = att_predictor_image(predictor, &image, answer);
    att_image_free(predictor->context, &image);
    return status;
}
