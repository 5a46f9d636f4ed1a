#include "base/core/error.h"
#include "study/relevance/list.h"

enum { STEPS };
static const att_detail options[] = {
    {"steps", "images on the way from the mean colour to the image", 32, 1, 1024, NULL, true},
};

/* Adds the gradient at the image (step - 1/2) x / steps to the map, times x / steps. */
static att_status add_step(const att_relevance_job *job, int step, int steps, double *map)
{
    const att_relevance *r = job->relevance;
    const int64_t pixels = (int64_t)r->height * r->width;
    for (int64_t e = 0; e < pixels * r->channels; e++)
        r->image[e] = (float)((step - 0.5) / steps * (double)job->image[e]);
    ATT_TRY(att_relevance_differentiate(job, r->image));
    ATT_TRY(att_relevance_read_image(r));
    for (int64_t e = 0; e < pixels * r->channels; e++)
        map[e / r->channels] += (double)job->image[e] * (double)r->gradient[e] / steps;
    return ATT_OK;
}

static att_status compute(att_relevance_job *job)
{
    const att_relevance *r = job->relevance;
    const int steps = (int)job->options[STEPS];
    double *map = att_relevance_begin_map(job, r->height, r->width);
    for (int64_t p = 0; p < (int64_t)r->height * r->width; p++)
        map[p] = 0;
    for (int s = 1; s <= steps; s++)
        ATT_TRY(add_step(job, s, steps, map));
    return ATT_OK;
}

const att_relevance_method att_relevance_integrated_gradients = {
    .info = {.name = "integrated_gradients",
             .title = "Integrated gradients",
             .summary = "gradients of pixels, integrated from the mean colour to the image",
             .source = "Sundararajan, Taly and Yan, ICML 2017",
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .needs_image = true},
    .compute = compute};
