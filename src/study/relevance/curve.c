/* Deletion and insertion curves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "study/relevance/method.h"

enum { BLUR = 11 };
#define BLUR_DEVIATION 5.0

/* --- resizing ----------------------------------------------------------------------------------------------------- */

/* The cell left of the centre `at` of a pixel, and the weight of the next one. */
static int cell_of(double at, int count, double *weight)
{
    const double last = count - 1, place = at < 0 ? 0 : at > last ? last : at;
    const int cell = place < last ? (int)place : count - 1;
    *weight = place - cell;
    return cell;
}

void att_relevance_resize(const att_relevance_map *map, int height, int width, double *pixels)
{
    for (int i = 0; i < height * width; i++) {
        double down, right;
        const int y = cell_of((i / width + 0.5) * map->height / height - 0.5, map->height, &down);
        const int x = cell_of((i % width + 0.5) * map->width / width - 0.5, map->width, &right);
        const int below = y + 1 < map->height ? y + 1 : y, beside = x + 1 < map->width ? x + 1 : x;
        const double *upper = map->values + (ptrdiff_t)y * map->width,
                     *lower = map->values + (ptrdiff_t)below * map->width;
        pixels[i] = (1 - down) * ((1 - right) * upper[x] + right * upper[beside]) +
                    down * ((1 - right) * lower[x] + right * lower[beside]);
    }
}

/* --- the images of a curve ---------------------------------------------------------------------------------------- */

/* A pixel and its relevance. */
typedef struct place {
    double value;
    int pixel;
} place;

/* The largest value first, equal ones by number; NaN last. */
static int compare(const void *a, const void *b)
{
    const place *x = a, *y = b;
    const bool x_nan = isnan(x->value), y_nan = isnan(y->value);
    if (x_nan != y_nan)
        return x_nan ? 1 : -1;
    if (!x_nan && x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return x->pixel < y->pixel ? -1 : x->pixel > y->pixel;
}

/* Blurs along one axis: `step` elements between neighbours of a line, of which there are `count`. */
static void blur_line(const float *from, int count, ptrdiff_t step, float *to)
{
    double weights[BLUR], total = 0;
    for (int k = 0; k < BLUR; k++)
        total += weights[k] = exp(-(k - BLUR / 2) * (k - BLUR / 2) / (2 * BLUR_DEVIATION * BLUR_DEVIATION));
    for (int i = 0; i < count; i++) {
        double sum = 0;
        for (int k = 0; k < BLUR; k++)
            if (i + k - BLUR / 2 >= 0 && i + k - BLUR / 2 < count)
                sum += weights[k] / total * (double)from[(i + k - BLUR / 2) * step];
        to[i * step] = (float)sum;
    }
}

/* scratch, to: as large as the image */
static void blur(const att_relevance *r, const float *image, float *scratch, float *to)
{
    const ptrdiff_t row = (ptrdiff_t)r->width * r->channels;
    for (int y = 0; y < r->height; y++)
        for (int c = 0; c < r->channels; c++)
            blur_line(image + y * row + c, r->width, r->channels, scratch + y * row + c);
    for (ptrdiff_t e = 0; e < row; e++)
        blur_line(scratch + e, r->height, row, to + e);
}

/* --- the curve ---------------------------------------------------------------------------------------------------- */

typedef struct curve {
    const att_relevance_job *job;
    place *places;       /* [pixels], in order */
    double *values;      /* [pixels]: the resized map */
    float *after;        /* [pixels, channels]: what the pixels become */
    int pixels, changed; /* changed: how many have become it */
} curve;

static att_status probability(const att_relevance_job *job, double *p)
{
    const att_relevance *r = job->relevance;
    att_replaced_batch replaced;
    att_batch answers;
    double sum = 0;
    ATT_TRY(
        att_explorer_run(r->explorer, att_batch_replace(job->inputs, r->image_name, r->image, &replaced), &answers));
    const float *logits = att_batch_field(&answers, r->logits_name);
    for (int c = 0; c < r->classes; c++)
        sum += exp((double)logits[c] - (double)logits[job->target]);
    *p = 1 / sum;
    return ATT_OK;
}

static void change_until(curve *c, int count)
{
    const att_relevance *r = c->job->relevance;
    for (; c->changed < count; c->changed++) {
        const ptrdiff_t at = (ptrdiff_t)c->places[c->changed].pixel * r->channels;
        memcpy(r->image + at, c->after + at, (size_t)r->channels * sizeof *r->image);
    }
}

static void prepare(curve *c, const att_relevance_map *map, att_curve kind)
{
    const att_relevance *r = c->job->relevance;
    const size_t bytes = (size_t)c->pixels * (size_t)r->channels * sizeof *r->image;
    att_relevance_resize(map, r->height, r->width, c->values);
    for (int i = 0; i < c->pixels; i++)
        c->places[i] = (place){c->values[i], i};
    qsort(c->places, (size_t)c->pixels, sizeof *c->places, compare);
    if (kind == ATT_DELETION) {
        memcpy(r->image, c->job->image, bytes);
        memset(c->after, 0, bytes);
    } else {
        blur(r, c->job->image, c->after, r->image);
        memcpy(c->after, c->job->image, bytes);
    }
}

static att_status follow(curve *c, int steps, double *probabilities, double *area)
{
    *area = 0;
    for (int s = 0; s <= steps; s++) {
        change_until(c, (int)lround((double)s * c->pixels / steps));
        ATT_TRY(probability(c->job, &probabilities[s]));
        *area += probabilities[s] / (s == 0 || s == steps ? 2.0 * steps : steps);
    }
    return ATT_OK;
}

static att_status check(const att_relevance *r, const att_relevance_map *map, int target, int steps)
{
    if (steps < 1 || steps > ATT_CURVE_MOST_STEPS)
        return att_fail(r->context, ATT_ERR_ARGUMENT, "a curve has 1 to %d steps, not %d", ATT_CURVE_MOST_STEPS, steps);
    if (target < 0 || target >= r->classes)
        return att_fail(r->context, ATT_ERR_ARGUMENT, "class %d does not exist: expected 0 to %d", target,
                        r->classes - 1);
    if (map->height < 1 || map->width < 1 || !map->values)
        return att_fail(r->context, ATT_ERR_ARGUMENT, "the map has no cells");
    return ATT_OK;
}

att_status att_relevance_curve(att_relevance *r, const att_batch *inputs, const att_relevance_map *map, int target,
                               att_curve kind, int steps, double *probabilities, double *area)
{
    att_batch answers;
    if (!r->image_name)
        return att_fail(r->context, ATT_ERR_UNSUPPORTED, "curves change pixels, and this network reads texts");
    ATT_TRY(check(r, map, target, steps));
    ATT_TRY(att_explorer_run(r->explorer, inputs, &answers)); /* checks the inputs */
    const att_relevance_job job = {
        .relevance = r, .inputs = inputs, .image = att_batch_field(inputs, r->image_name), .target = target};
    curve c = {.job = &job, .pixels = r->height * r->width};
    const size_t pixels = (size_t)c.pixels;
    c.places = att_allocate_array(r->context, pixels, sizeof *c.places);
    c.values = att_allocate_array(r->context, pixels, sizeof *c.values);
    c.after = att_allocate_array(r->context, pixels * (size_t)r->channels, sizeof *c.after);
    att_status status;
    if (c.places && c.values && c.after) {
        prepare(&c, map, kind);
        status = follow(&c, steps, probabilities, area);
    } else {
        status = att_fail_memory(r->context, pixels * sizeof *c.places, "a curve");
    }
    att_free(r->context, c.places);
    att_free(r->context, c.values);
    att_free(r->context, c.after);
    return status;
}
