#include <string.h>

#include <attscope/evaluate.h>

#include "core/error.h"
#include "core/memory.h"
#include "train/network.h"

struct att_classifier {
    att_context *context;
    att_network network;
    att_transform_options transform;
    float *pixels; /* one transformed image */
};

static att_status fill(att_classifier *classifier, const att_model *model, att_weights *weights, const char *backend,
                       att_precision precision)
{
    const att_transform_options *transform = &classifier->transform;
    if (att_model_options_of(model).num_classes == 0)
        return att_fail(classifier->context, ATT_ERR_ARGUMENT, "%s has no head and so no classes to tell",
                        att_model_name(model));
    ATT_TRY(att_network_check_images(model, transform));
    att_network_options network = {.backend = backend, .precision = precision, .max_batch = 1};
    ATT_TRY(att_network_create(model, weights, &network, &classifier->network));
    size_t count = (size_t)transform->height * (size_t)transform->width * (size_t)transform->channels;
    classifier->pixels = att_allocate_array(classifier->context, count, sizeof *classifier->pixels);
    return classifier->pixels
               ? ATT_OK
               : att_fail_memory(classifier->context, count * sizeof *classifier->pixels, "the transformed image");
}

att_status att_classifier_create(const att_model *model, att_weights *weights, const att_transform_options *transform,
                                 const char *backend, att_precision precision, att_classifier **classifier)
{
    att_context *context = att_graph_context(att_model_graph(model));
    att_classifier *made = att_allocate(context, sizeof *made);
    if (!made)
        return att_fail_memory(context, sizeof *made, "the classifier");
    made->context = context;
    made->transform = *transform;
    att_status status = fill(made, model, weights, backend, precision);
    if (status == ATT_OK)
        *classifier = made;
    else
        att_classifier_destroy(&made);
    return status;
}

void att_classifier_destroy(att_classifier **classifier)
{
    if (!classifier || !*classifier)
        return;
    att_context *context = (*classifier)->context;
    att_network_free(&(*classifier)->network);
    att_free(context, (*classifier)->pixels);
    att_free(context, *classifier);
    *classifier = NULL;
}

int att_classifier_classes(const att_classifier *classifier)
{
    return classifier->network.classes;
}

att_status att_classifier_image(att_classifier *classifier, const att_image *image, float *logits)
{
    ATT_TRY(att_transform_image(classifier->context, &classifier->transform, image, 0, 0, 0, classifier->pixels));
    att_batch answer;
    ATT_TRY(att_network_run(&classifier->network, classifier->pixels, 1, &answer));
    memcpy(logits, answer.data[0], (size_t)classifier->network.classes * sizeof *logits);
    return ATT_OK;
}

att_status att_classifier_file(att_classifier *classifier, const char *path, float *logits)
{
    att_image image = {0};
    ATT_TRY(att_image_read(classifier->context, path, classifier->transform.channels, NULL, &image));
    att_status status = att_classifier_image(classifier, &image, logits);
    att_image_free(classifier->context, &image);
    return status;
}
