#include "data/transform.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/random.h"
#include "data/resize.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* normalising rounds after each step, as torchvision does */
#endif

enum { MAX_SIDE = 16384, BOX_TRIES = 10 };

att_transform_options att_transform_options_defaults(int height, int width, int channels)
{
    return (att_transform_options){.height = height,
                                   .width = width,
                                   .channels = channels,
                                   .crop = ATT_CROP_CENTER,
                                   .interpolation = ATT_BICUBIC,
                                   .crop_pct = 1.0,
                                   .scale = {0.08, 1.0},
                                   .ratio = {3.0 / 4.0, 4.0 / 3.0},
                                   .pad = 4,
                                   .mean = {0.5f, 0.5f, 0.5f},
                                   .std = {0.5f, 0.5f, 0.5f}};
}

/* 0 < range[0] <= range[1] <= highest; false for NaN. */
static bool range_is_good(const double range[2], double highest)
{
    return range[0] > 0 && range[0] <= range[1] && range[1] <= highest;
}

att_status att_transform_check(att_context *context, const att_transform_options *options)
{
    const char *wrong = NULL;
    if (options->height < 1 || options->height > MAX_SIDE || options->width < 1 || options->width > MAX_SIDE)
        wrong = "height and width must lie in 1..16384";
    else if (options->channels != 1 && options->channels != 3)
        wrong = "channels must be 1 or 3";
    else if (options->crop < ATT_CROP_CENTER || options->crop > ATT_CROP_PAD)
        wrong = "unknown crop";
    else if (options->interpolation != ATT_BILINEAR && options->interpolation != ATT_BICUBIC)
        wrong = "unknown interpolation";
    else if (!(options->crop_pct >= 0.01 && options->crop_pct <= 1.0))
        wrong = "crop_pct must lie in 0.01..1";
    else if (!range_is_good(options->scale, 1.0))
        wrong = "scale must be a range in (0, 1]";
    else if (!range_is_good(options->ratio, 100.0))
        wrong = "ratio must be a range in (0, 100]";
    else if (options->pad < 0 || options->pad > MAX_SIDE)
        wrong = "pad must lie in 0..16384";
    else if (!(options->flip >= 0.0 && options->flip <= 1.0))
        wrong = "flip must be a probability";
    for (int c = 0; !wrong && c < options->channels; c++)
        if (!isfinite(options->mean[c]) || !(options->std[c] > 0.0f) || !isfinite(options->std[c]))
            wrong = "mean must be finite and std positive";
    return wrong ? att_fail(context, ATT_ERR_ARGUMENT, "transform: %s", wrong) : ATT_OK;
}

/* --- where the pixels come from ---------------------------------------------------------------------------------- */

/* Cut `from` out, resize it to width x height, cut `window` out of that. */
typedef struct geometry {
    att_box from;
    int64_t width, height;
    att_box window;
} geometry;

/* (long - short) / 2, rounded half to even. */
static int middle(int64_t larger, int smaller)
{
    int64_t half = (larger - smaller) / 2;
    bool up = (larger - smaller) % 2 != 0 && half % 2 != 0;
    return (int)(half + up);
}

static geometry center_crop(const att_transform_options *options, int width, int height)
{
    int64_t tall = (int64_t)floor(options->height / options->crop_pct);
    int64_t wide = (int64_t)floor(options->width / options->crop_pct);
    geometry plan = {.from = {0, 0, width, height}};
    if (tall == wide && width <= height) {
        plan.width = wide;
        plan.height = wide * height / width;
    } else if (tall == wide) {
        plan.height = tall;
        plan.width = tall * width / height;
    } else {
        double ratio = fmin((double)height / (double)tall, (double)width / (double)wide);
        plan.width = (int64_t)rint(width / ratio);
        plan.height = (int64_t)rint(height / ratio);
    }
    plan.window = (att_box){0, 0, options->width, options->height};
    if (plan.width <= INT_MAX && plan.height <= INT_MAX) {
        plan.window.x = middle(plan.width, options->width);
        plan.window.y = middle(plan.height, options->height);
    }
    return plan;
}

static double uniform_between(att_random *random, double low, double high)
{
    return low + (high - low) * att_random_uniform(random);
}

/* The largest box in the middle whose aspect lies in the range. */
static att_box central_box(const double ratio[2], int width, int height)
{
    double aspect = (double)width / height;
    att_box box = {0, 0, width, height};
    if (aspect < ratio[0])
        box.height = (int)rint(width / ratio[0]);
    else if (aspect > ratio[1])
        box.width = (int)rint(height * ratio[1]);
    box.width = box.width < 1 ? 1 : box.width;
    box.height = box.height < 1 ? 1 : box.height;
    box.x = (width - box.width) / 2;
    box.y = (height - box.height) / 2;
    return box;
}

static att_box random_box(const att_transform_options *options, int width, int height, att_random *random)
{
    for (int attempt = 0; attempt < BOX_TRIES; attempt++) {
        double area = uniform_between(random, options->scale[0], options->scale[1]) * width * height;
        double aspect = exp(uniform_between(random, log(options->ratio[0]), log(options->ratio[1])));
        double wide = rint(sqrt(area * aspect)), tall = rint(sqrt(area / aspect));
        if (!(wide >= 1 && wide <= width && tall >= 1 && tall <= height))
            continue;
        att_box box = {.width = (int)wide, .height = (int)tall};
        box.y = (int)att_random_below(random, height - box.height + 1);
        box.x = (int)att_random_below(random, width - box.width + 1);
        return box;
    }
    return central_box(options->ratio, width, height);
}

static geometry random_resized_crop(const att_transform_options *options, int width, int height, att_random *random)
{
    return (geometry){.from = random_box(options, width, height, random),
                      .width = options->width,
                      .height = options->height,
                      .window = {0, 0, options->width, options->height}};
}

/* A picture of the result's size, read `right` and `down` pixels off with black outside, and mirrored or not. */
typedef struct placing {
    int right, down;
    bool mirrored;
} placing;

typedef struct layout {
    geometry plan;
    placing place;
} layout;

static layout lay_out(const att_transform_options *options, int width, int height, const att_transform_key *key)
{
    att_random random = att_random_from(att_random_key(key->seed, (uint64_t)key->epoch, (uint64_t)key->index));
    layout made = {.plan = options->crop == ATT_CROP_RANDOM_RESIZED
                               ? random_resized_crop(options, width, height, &random)
                               : center_crop(options, width, height)};
    if (options->crop == ATT_CROP_PAD) {
        made.place.down = (int)att_random_below(&random, 2 * (int64_t)options->pad + 1) - options->pad;
        made.place.right = (int)att_random_below(&random, 2 * (int64_t)options->pad + 1) - options->pad;
    }
    made.place.mirrored = options->flip > 0 && att_random_uniform(&random) < options->flip;
    return made;
}

static bool can_be_resized(const geometry *plan)
{
    return plan->width <= INT_MAX && plan->height <= INT_MAX;
}

att_box att_transform_needs(const att_transform_options *options, int width, int height, const att_transform_key *key)
{
    geometry plan = lay_out(options, width, height, key).plan;
    if (!can_be_resized(&plan))
        return plan.from;
    return att_resize_needs(plan.from, options->interpolation, (int)plan.width, (int)plan.height, plan.window);
}

/* --- bytes to floats --------------------------------------------------------------------------------------------- */

/* What each byte of each channel becomes. */
typedef struct value_table {
    float of[3][256];
} value_table;

static void fill_tables(const att_transform_options *options, value_table *values)
{
    for (int c = 0; c < options->channels; c++)
        for (int value = 0; value < 256; value++)
            values->of[c][value] = ((float)value / 255.0f - options->mean[c]) / options->std[c];
}

/* Pixels that lie `step` bytes apart. */
static void write_pixels(const value_table *values, const uint8_t *from, int step, int channels, int count, float *out)
{
    if (channels == 1)
        for (int i = 0; i < count; i++)
            out[i] = values->of[0][from[i * step]];
    else
        for (int i = 0; i < count; i++)
            for (int c = 0; c < 3; c++)
                out[3 * i + c] = values->of[c][from[i * step + c]];
}

static void write_black(const value_table *values, int channels, int count, float *out)
{
    static const uint8_t black[3] = {0};
    write_pixels(values, black, 0, channels, count, out);
}

static int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

static void write_row(const value_table *values, placing place, const uint8_t *row, int channels, int width, float *out)
{
    int shift = place.mirrored ? place.right : -place.right;
    int begin = clamp(shift, 0, width), end = clamp(width + shift, 0, width);
    int from = place.mirrored ? width - 1 - begin + place.right : begin + place.right;
    write_black(values, channels, begin, out);
    if (begin < end)
        write_pixels(values, row + (ptrdiff_t)from * channels, place.mirrored ? -channels : channels, channels,
                     end - begin, out + (size_t)begin * (size_t)channels);
    write_black(values, channels, width - end, out + (size_t)end * (size_t)channels);
}

static void write_rows(const att_transform_options *options, placing place, const uint8_t *pixels, float *out)
{
    size_t stride = (size_t)options->width * (size_t)options->channels;
    value_table values;
    fill_tables(options, &values);
    for (int y = 0; y < options->height; y++) {
        int from = y + place.down;
        float *to = out + (size_t)y * stride;
        if (from < 0 || from >= options->height)
            write_black(&values, options->channels, options->width, to);
        else
            write_row(&values, place, pixels + (size_t)from * stride, options->channels, options->width, to);
    }
}

static att_status write_floats(att_context *context, const att_transform_options *options, const att_image *image,
                               const layout *made, float *out)
{
    const geometry *plan = &made->plan;
    if (!can_be_resized(plan))
        return att_fail(context, ATT_ERR_UNSUPPORTED, "an image of %d x %d pixels is too narrow to be resized",
                        image->width, image->height);
    size_t bytes = (size_t)options->height * (size_t)options->width * (size_t)options->channels;
    uint8_t *pixels = att_reallocate(context, NULL, bytes);
    if (!pixels)
        return att_fail_memory(context, bytes, "a transformed image");
    att_status status = att_resize(context, image, plan->from, options->interpolation, (int)plan->width,
                                   (int)plan->height, plan->window, pixels);
    if (status == ATT_OK)
        write_rows(options, made->place, pixels, out);
    att_free(context, pixels);
    return status;
}

att_status att_transform_image(att_context *context, const att_transform_options *options, const att_image *image,
                               uint64_t seed, int64_t epoch, int64_t index, float *out)
{
    ATT_TRY(att_transform_check(context, options));
    if (image->channels != options->channels || image->width < 1 || image->height < 1)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "transform: an image of %d x %d x %d where %d channels were expected", image->height,
                        image->width, image->channels, options->channels);
    att_transform_key key = {seed, epoch, index};
    layout made = lay_out(options, image->width, image->height, &key);
    return write_floats(context, options, image, &made, out);
}
