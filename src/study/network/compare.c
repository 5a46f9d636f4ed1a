#include <attscope/convert.h>

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "study/train/inference.h"

/* Two networks that answer the same images. */
typedef struct comparison {
    att_context *context;
    att_inference inference[2];
    float *images;
    int count;
} comparison;

static att_status check_outputs(const comparison *c)
{
    const att_inference *first = &c->inference[0], *second = &c->inference[1];
    bool same = first->output_count == second->output_count;
    for (int i = 0; same && i < first->output_count; i++)
        same = strcmp(first->outputs[i].name, second->outputs[i].name) == 0 &&
               att_shape_equal(first->outputs[i].shape, second->outputs[i].shape);
    return same ? ATT_OK
                : att_fail(c->context, ATT_ERR_MISMATCH, "the networks to be compared have other outputs or shapes");
}

static att_status draw_images(comparison *c, const att_model *models[2], uint64_t seed)
{
    const att_preprocess of[2] = {att_model_preprocess(models[0]), att_model_preprocess(models[1])};
    size_t pixels = (size_t)of[0].height * (size_t)of[0].width * (size_t)of[0].in_chans * (size_t)c->count;
    if (of[0].height != of[1].height || of[0].width != of[1].width || of[0].in_chans != of[1].in_chans)
        return att_fail(c->context, ATT_ERR_MISMATCH, "the networks to be compared have images of other sizes");
    ATT_TRY(att_new(c->context, &c->images, pixels, "images"));
    att_random random = att_random_from(att_random_key(seed, 0, 0));
    for (size_t i = 0; i < pixels; i++)
        c->images[i] = (float)att_random_normal(&random);
    return ATT_OK;
}

static att_status compare(comparison *c, double *error)
{
    double largest = 0, difference = 0;
    att_batch answers[2];
    for (int n = 0; n < 2; n++)
        ATT_TRY(att_inference_run(&c->inference[n], c->images, c->count, &answers[n]));
    for (int i = 0; i < answers[0].field_count; i++) {
        const float *first = answers[0].data[i], *second = answers[1].data[i];
        int64_t count = att_shape_count(answers[0].fields[i].shape) * c->count;
        for (int64_t e = 0; e < count; e++) {
            if (!isfinite(first[e]) || !isfinite(second[e]))
                return att_fail(c->context, ATT_ERR_NONFINITE, "an output of the networks is NaN or infinite");
            largest = fmax(largest, fabs((double)first[e]));
            difference = fmax(difference, fabs((double)first[e] - (double)second[e]));
        }
    }
    if (largest == 0 && difference == 0)
        return att_fail(c->context, ATT_ERR_UNSUPPORTED,
                        "all outputs of the networks are 0 on %d random images, so that nothing was compared",
                        c->count);
    *error = difference / largest;
    return ATT_OK;
}

static att_status run(comparison *c, const att_model *models[2], att_weights *weights[2], uint64_t seed, double *error)
{
    const att_inference_options options = {.backend = "cpu", .precision = ATT_FULL, .max_batch = c->count};
    for (int n = 0; n < 2; n++)
        ATT_TRY(att_inference_create(att_model_graph(models[n]), weights[n], &options, &c->inference[n]));
    ATT_TRY(check_outputs(c));
    ATT_TRY(draw_images(c, models, seed));
    return compare(c, error);
}

att_status att_models_compare(const att_model *first, att_weights *first_weights, const att_model *second,
                              att_weights *second_weights, int count, uint64_t seed, double *error)
{
    const att_model *models[] = {first, second};
    att_weights *weights[] = {first_weights, second_weights};
    comparison c = {.context = att_graph_context(att_model_graph(first)), .count = count};
    if (count < 1)
        return att_fail(c.context, ATT_ERR_ARGUMENT, "%d images to compare networks, expected at least 1", count);
    att_status status = run(&c, models, weights, seed, error);
    for (int n = 0; n < 2; n++)
        att_inference_free(&c.inference[n]);
    att_free(c.context, c.images);
    return status;
}
