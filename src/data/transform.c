#include "data/transform.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "data/augment.h"
#include "data/erase.h"
#include "data/geometry.h"
#include "data/pixels.h"
#include "data/place.h"
#include "data/resize.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* rounds after each operation of the normalisation, as torchvision does */
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
                                   .longer = height > width ? height : width,
                                   .shorter = height < width ? height : width,
                                   .divisor = 32,
                                   .factor = {0.5, 2.0},
                                   .cat_max_ratio = 1.0,
                                   .erase_count = 1,
                                   .mean = {0.5, 0.5, 0.5},
                                   .std = {0.5, 0.5, 0.5}};
}

/* 0 < range[0] <= range[1] <= highest; false for NaN. */
static bool is_range(const double range[2], double highest)
{
    return range[0] > 0 && range[0] <= range[1] && range[1] <= highest;
}

/* Whether the whole image is resized with its aspect ratio. */
static bool keeps_all(const att_transform_options *options)
{
    return options->crop == ATT_CROP_KEEP || options->crop == ATT_CROP_WITHIN;
}

bool att_transform_varies(const att_transform_options *options)
{
    return keeps_all(options) && options->height == 0 && options->width == 0;
}

bool att_transform_chooses(const att_transform_options *options)
{
    return options->crop == ATT_CROP_SCALED && options->cat_max_ratio < 1;
}

/* Whether the crop lies in the middle of the resized image. */
static bool is_centred(const att_transform_options *options)
{
    return options->crop == ATT_CROP_CENTER || options->crop == ATT_CROP_FLOOR || options->crop == ATT_CROP_SQUASH ||
           options->crop == ATT_CROP_BORDER;
}

/* Whether the image can be smaller than the result, which is then filled up with 0. */
static bool is_filled_up(const att_transform_options *options)
{
    return keeps_all(options) || options->crop == ATT_CROP_SCALED;
}

static const char *filling_error(const att_transform_options *options)
{
    const char *wrong = NULL;
    if (options->shorter < 1 || options->shorter > options->longer || options->longer > MAX_SIDE)
        wrong = "shorter must lie in 1..longer, and longer in 1..16384";
    else if (options->divisor < 1 || options->divisor > MAX_SIDE)
        wrong = "divisor must lie in 1..16384";
    else if (!is_range(options->factor, 100.0))
        wrong = "factor must be a range in (0, 100]";
    else if (!(options->cat_max_ratio > 0 && options->cat_max_ratio <= 1))
        wrong = "cat_max_ratio must lie in (0, 1]";
    else if (options->occlude > 0)
        wrong = "an image that is filled up has no centre to occlude";
    return wrong;
}

att_status att_transform_check(att_context *context, const att_transform_options *options)
{
    const char *wrong = NULL;
    if (!att_transform_varies(options) &&
        (options->height < 1 || options->height > MAX_SIDE || options->width < 1 || options->width > MAX_SIDE))
        wrong = "height and width must lie in 1..16384";
    else if (options->channels != 1 && options->channels != 3)
        wrong = "channels must be 1 or 3";
    else if (options->crop < ATT_CROP_CENTER || options->crop > ATT_CROP_WITHIN)
        wrong = "unknown crop";
    else if (options->interpolation < ATT_BILINEAR || options->interpolation > ATT_BILINEAR_PLAIN)
        wrong = "unknown interpolation";
    else if (!(options->crop_pct >= 0.01 && options->crop_pct <= 10.0))
        wrong = "crop_pct must lie in 0.01..10";
    else if (options->crop == ATT_CROP_PAD && options->crop_pct > 1.0)
        wrong = "crop_pct must be at most 1 where the crop is shifted";
    else if (!is_range(options->scale, 1.0))
        wrong = "scale must be a range in (0, 1]";
    else if (!is_range(options->ratio, 100.0))
        wrong = "ratio must be a range in (0, 100]";
    else if (options->pad < 0 || options->pad > MAX_SIDE)
        wrong = "pad must lie in 0..16384";
    else if (options->crop == ATT_CROP_SIMPLE && (options->pad >= options->height || options->pad >= options->width))
        wrong = "pad must be less than height and width, as pixels are reflected";
    else if (!(options->flip >= 0.0 && options->flip <= 1.0))
        wrong = "flip must be a probability";
    else if (!(options->vertical_flip >= 0.0 && options->vertical_flip <= 1.0))
        wrong = "vertical_flip must be a probability";
    else if (!(options->erase >= 0.0 && options->erase <= 1.0))
        wrong = "erase must be a probability";
    else if (options->erase_mode < ATT_ERASE_CONST || options->erase_mode > ATT_ERASE_PIXEL)
        wrong = "unknown way of erasing";
    else if (options->erase > 0 && (options->erase_count < 1 || options->erase_count > 100))
        wrong = "erase_count must lie in 1..100";
    else if (options->occlude < 0 || options->occlude > options->height || options->occlude > options->width)
        wrong = "the occluded square must lie within the image";
    else
        wrong = att_augment_error(options);
    if (!wrong && is_filled_up(options))
        wrong = filling_error(options);
    for (int c = 0; !wrong && c < options->channels; c++)
        if (!isfinite((float)options->mean[c]) || !((float)options->std[c] > 0) || !isfinite((float)options->std[c]))
            wrong = "mean must be finite and std positive";
    return wrong ? att_fail(context, ATT_ERR_ARGUMENT, "transform: %s", wrong) : ATT_OK;
}

/* --- geometry ---------------------------------------------------------------------------------------------------- */

/* Crop `from`, resize it to width x height, crop `window` from the result. */
typedef struct crop_plan {
    att_box from;
    int64_t width, height;
    att_box window;
} crop_plan;

/* (larger - smaller) / 2, rounded down for ATT_CROP_FLOOR, else half to even. */
static int middle(att_crop crop, int64_t larger, int smaller)
{
    int64_t half = (larger - smaller) / 2;
    bool up = crop != ATT_CROP_FLOOR && (larger - smaller) % 2 != 0 && half % 2 != 0;
    return (int)(half + up);
}

static bool can_be_resized(const crop_plan *plan)
{
    return plan->width >= 1 && plan->height >= 1 && plan->width <= INT_MAX && plan->height <= INT_MAX;
}

static void resize_by(double ratio, int width, int height, crop_plan *plan)
{
    plan->width = (int64_t)rint(width / ratio);
    plan->height = (int64_t)rint(height / ratio);
}

/* Sets the size to which an image of width x height pixels is resized, so that it covers or fits into wide x tall
 * pixels. */
static void resize_for(att_crop crop, int64_t wide, int64_t tall, int width, int height, crop_plan *plan)
{
    double scale_x = (double)width / (double)wide, scale_y = (double)height / (double)tall;
    if (crop == ATT_CROP_SQUASH) {
        plan->width = wide;
        plan->height = tall;
    } else if (crop == ATT_CROP_BORDER) {
        resize_by(fmax(scale_x, scale_y), width, height, plan);
    } else if (tall != wide) {
        resize_by(fmin(scale_x, scale_y), width, height, plan);
    } else if (width <= height) {
        plan->width = wide;
        plan->height = wide * height / width;
    } else {
        plan->height = tall;
        plan->width = tall * width / height;
    }
}

static int at_most(int64_t value, int limit)
{
    return value < limit ? (int)value : limit;
}

static crop_plan evaluation_crop(const att_transform_options *options, int width, int height)
{
    double share = options->crop == ATT_CROP_SIMPLE ? 1 : options->crop_pct;
    int64_t tall = (int64_t)floor(options->height / share), wide = (int64_t)floor(options->width / share);
    crop_plan plan = {.from = {0, 0, width, height}};
    resize_for(options->crop, wide, tall, width, height, &plan);
    if (!can_be_resized(&plan))
        return plan;
    plan.window.width = at_most(plan.width, options->width);
    plan.window.height = at_most(plan.height, options->height);
    plan.window.x = middle(options->crop, plan.width, plan.window.width);
    plan.window.y = middle(options->crop, plan.height, plan.window.height);
    return plan;
}

/* The ratio by which sides are at most `longer` and `shorter`. */
static double ratio_of(int longer, int shorter, int width, int height)
{
    int most = width > height ? width : height, least = width > height ? height : width;
    return fmin((double)longer / most, (double)shorter / least);
}

/* Resizes the whole image by this ratio, sides to the nearest number or, for ATT_CROP_WITHIN, down. */
static crop_plan resized_by(att_crop crop, double ratio, int width, int height)
{
    const double half = crop == ATT_CROP_WITHIN ? 0 : 0.5;
    return (crop_plan){.from = {0, 0, width, height},
                       .width = (int64_t)(width * ratio + half),
                       .height = (int64_t)(height * ratio + half)};
}

static crop_plan whole_image(const att_transform_options *options, int width, int height)
{
    double ratio = ratio_of(options->longer, options->shorter, width, height);
    crop_plan plan = resized_by(options->crop, ratio, width, height);
    if (!att_transform_varies(options) && (plan.width > options->width || plan.height > options->height))
        plan = resized_by(options->crop, fmin((double)options->width / width, (double)options->height / height), width,
                          height);
    plan.window = (att_box){0, 0, (int)plan.width, (int)plan.height};
    return plan;
}

static double uniform_between(att_random *random, double low, double high)
{
    return low + (high - low) * att_random_uniform(random);
}

/* The largest centred box whose aspect ratio is within the range. */
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

static crop_plan random_resized_crop(const att_transform_options *options, int width, int height, att_random *random)
{
    return (crop_plan){.from = random_box(options, width, height, random),
                       .width = options->width,
                       .height = options->height,
                       .window = {0, 0, options->width, options->height}};
}

/* Draws the crops up to number `crop`; rows are drawn first, as by mmcv. */
static crop_plan scaled_crop(const att_transform_options *options, int width, int height, int crop, att_random *random)
{
    double factor = uniform_between(random, options->factor[0], options->factor[1]);
    double ratio = ratio_of((int)(options->longer * factor), (int)(options->shorter * factor), width, height);
    crop_plan plan = resized_by(options->crop, ratio, width, height);
    plan.window.width = at_most(plan.width, options->width);
    plan.window.height = at_most(plan.height, options->height);
    for (int i = 0; i <= crop; i++) {
        plan.window.y = (int)att_random_below(random, plan.height - plan.window.height + 1);
        plan.window.x = (int)att_random_below(random, plan.width - plan.window.width + 1);
    }
    return plan;
}

/* Along one axis of `size` pixels and `pad` reflected ones at each side: draws where the crop of `length` pixels
 * begins, and sets the window of pixels that it shows. Returns the begin, relative to the window. */
static int simple_crop(att_random *random, int64_t size, int length, int pad, int *from, int *count)
{
    int64_t begin = att_random_below(random, size + 2 * (int64_t)pad - length + 1) - pad, end = begin + length;
    int64_t first = begin < 0 ? 0 : begin, last = end > size ? size : end;
    if (begin < 0 && last < 1 - begin) /* the reflection of pixel begin */
        last = 1 - begin;
    if (end > size && first > 2 * size - 1 - end) /* the reflection of pixel end - 1 */
        first = 2 * size - 1 - end;
    *from = (int)first;
    *count = (int)(last - first);
    return (int)(begin - first);
}

typedef struct transform_layout {
    crop_plan plan;
    att_placement place;
} transform_layout;

/* The affine map from points of the image to points of the cropped and resized image. */
static att_affine crop_map(const crop_plan *plan)
{
    double scale_x = (double)plan->width / plan->from.width, scale_y = (double)plan->height / plan->from.height;
    return (att_affine){.a = scale_x,
                        .c = -scale_x * plan->from.x - plan->window.x,
                        .e = scale_y,
                        .f = -scale_y * plan->from.y - plan->window.y};
}

static att_geometry geometry_of(const att_transform_options *options, const transform_layout *layout, int width,
                                int height)
{
    att_affine crop = crop_map(&layout->plan),
               place = att_placement_map(&layout->place, options->width, options->height);
    att_geometry geometry = att_geometry_of(width, height);
    att_geometry_step(&geometry, &crop, layout->place.width, layout->place.height);
    att_geometry_step(&geometry, &place, options->width, options->height);
    return geometry;
}

int att_transform_variants(const att_transform_options *options)
{
    const double flips[] = {options->flip, options->vertical_flip};
    int variants = is_centred(options) && !att_augments(options) && options->erase == 0 &&
                   options->interpolation != ATT_RANDOM_INTERPOLATION;
    for (int i = 0; i < 2; i++)
        variants *= flips[i] > 0 && flips[i] < 1 ? 2 : 1;
    return variants;
}

static uint64_t image_key(const att_transform_key *key)
{
    uint64_t image = att_random_key(key->seed, (uint64_t)key->epoch, (uint64_t)key->index);
    return key->repeat ? att_random_key(image, (uint64_t)key->repeat, att_random_hash("repeat")) : image;
}

/* Each stage has a random stream of its own, so that the draws of a stage do not affect other stages. */
static att_random stage_random(const att_transform_key *key, const char *stage)
{
    return att_random_from(att_random_key(image_key(key), 0, att_random_hash(stage)));
}

/* Rows are drawn first, as by torchvision's RandomCrop. */
static void place_simple_crop(const att_transform_options *options, att_random *random, transform_layout *layout)
{
    crop_plan *plan = &layout->plan;
    layout->place.reflected = true;
    layout->place.offset_y =
        simple_crop(random, plan->height, options->height, options->pad, &plan->window.y, &plan->window.height);
    layout->place.offset_x =
        simple_crop(random, plan->width, options->width, options->pad, &plan->window.x, &plan->window.width);
}

/* How many of `rest` pixels are added before an image that is smaller than the result. */
static int before_image(att_crop crop, int rest)
{
    return (rest + (crop == ATT_CROP_FLOOR)) / 2;
}

/* Fills the rest with the mean. */
static void fill_with_mean(const att_transform_options *options, att_placement *place)
{
    uint8_t colour[3];
    att_pixels_mean_colour(options->mean, options->channels, colour);
    memcpy(place->fill, colour, sizeof colour);
    for (int c = 0; c < options->channels && att_resizes_in_floats(options->interpolation); c++)
        memcpy(place->fill + (size_t)c * sizeof(float), &(float){colour[c]}, sizeof(float));
}

/* Bytes of a resized pixel. */
static size_t pixel_bytes(const att_transform_options *options)
{
    return (size_t)options->channels * (att_resizes_in_floats(options->interpolation) ? sizeof(float) : 1);
}

static transform_layout plan_layout(const att_transform_options *options, int width, int height,
                                    const att_transform_key *key)
{
    att_random random = att_random_from(image_key(key));
    transform_layout layout = {
        .plan = options->crop == ATT_CROP_RANDOM_RESIZED ? random_resized_crop(options, width, height, &random)
                : keeps_all(options)                     ? whole_image(options, width, height)
                : options->crop == ATT_CROP_SCALED       ? scaled_crop(options, width, height, key->crop, &random)
                                                         : evaluation_crop(options, width, height)};
    if (options->crop == ATT_CROP_SIMPLE && can_be_resized(&layout.plan))
        place_simple_crop(options, &random, &layout);
    layout.place.pixel = pixel_bytes(options);
    layout.place.width = layout.plan.window.width;
    layout.place.height = layout.plan.window.height;
    if (is_centred(options)) {
        layout.place.offset_x = -before_image(options->crop, options->width - layout.place.width);
        layout.place.offset_y = -before_image(options->crop, options->height - layout.place.height);
    }
    if (options->crop == ATT_CROP_BORDER)
        fill_with_mean(options, &layout.place);
    if (options->crop == ATT_CROP_PAD) {
        layout.place.offset_y = (int)att_random_below(&random, 2 * (int64_t)options->pad + 1) - options->pad;
        layout.place.offset_x = (int)att_random_below(&random, 2 * (int64_t)options->pad + 1) - options->pad;
    }
    layout.place.mirrored = options->flip > 0 && att_random_uniform(&random) < options->flip;
    layout.place.upside_down = options->vertical_flip > 0 && att_random_uniform(&random) < options->vertical_flip;
    return layout;
}

static att_interpolation interpolation_of(const att_transform_options *options, const att_transform_key *key)
{
    if (att_augments(options) && att_resizes_in_floats(options->interpolation))
        return options->interpolation == ATT_BICUBIC_FLOAT ? ATT_BICUBIC : ATT_BILINEAR;
    if (options->interpolation != ATT_RANDOM_INTERPOLATION)
        return options->interpolation;
    att_random draws = stage_random(key, "interpolation");
    return att_random_uniform(&draws) < 0.5 ? ATT_BILINEAR : ATT_BICUBIC;
}

att_box att_transform_needs(const att_transform_options *options, int width, int height, const att_transform_key *key)
{
    crop_plan plan = plan_layout(options, width, height, key).plan;
    if (!can_be_resized(&plan))
        return plan.from;
    return att_resize_needs(plan.from, interpolation_of(options, key), (int)plan.width, (int)plan.height, plan.window);
}

/* --- pixels to pixels --------------------------------------------------------------------------------------------- */

/* Makes the centre square black. */
static void occlude(const att_transform_options *options, size_t pixel, uint8_t *pixels)
{
    int side = options->occlude, left = (options->width - side) / 2, top = (options->height - side) / 2;
    size_t stride = (size_t)options->width * pixel;
    for (int y = top; y < top + side; y++)
        memset(pixels + (size_t)y * stride + (size_t)left * pixel, 0, (size_t)side * pixel);
}

/* --- pixels to floats --------------------------------------------------------------------------------------------- */

static float normalised(const att_transform_options *options, size_t channel, float value)
{
    return (value / 255.0f - (float)options->mean[channel]) / (float)options->std[channel];
}

static void normalise_floats(const att_transform_options *options, const float *pixels, float *out)
{
    size_t count = (size_t)options->height * (size_t)options->width, channels = (size_t)options->channels;
    for (size_t i = 0; i < count * channels; i += channels)
        for (size_t c = 0; c < channels; c++)
            out[i + c] = normalised(options, c, pixels[i + c]);
}

static void normalise_bytes(const att_transform_options *options, const uint8_t *pixels, float *out)
{
    float table[3][256];
    size_t count = (size_t)options->height * (size_t)options->width, channels = (size_t)options->channels;
    for (size_t c = 0; c < channels; c++)
        for (int value = 0; value < 256; value++)
            table[c][value] = normalised(options, c, (float)value);
    if (channels == 1)
        for (size_t i = 0; i < count; i++)
            out[i] = table[0][pixels[i]];
    else
        for (size_t i = 0; i < 3 * count; i += 3)
            for (size_t c = 0; c < 3; c++)
                out[i + c] = table[c][pixels[i + c]];
}

static void normalise(const att_transform_options *options, const uint8_t *pixels, float *out)
{
    if (att_resizes_in_floats(options->interpolation))
        normalise_floats(options, (const float *)(const void *)pixels, out);
    else
        normalise_bytes(options, pixels, out);
}

/* `resized` and `placed` are buffers for the result; `resized` serves as scratch after att_place(). */
static void finish(const att_transform_options *options, const att_placement *place, const att_transform_key *key,
                   uint8_t *resized, uint8_t *placed, float *out, att_geometry *geometry)
{
    att_image image = {options->width, options->height, options->channels, placed};
    att_place(place, resized, options->width, options->height, placed);
    att_random draws = stage_random(key, "augment");
    att_augment(options, &image, &draws, resized, geometry);
    occlude(options, place->pixel, placed);
    normalise(options, placed, out);
    draws = stage_random(key, "erase");
    if (options->erase > 0)
        att_erase(options, &draws, out);
}

/* --- filling up --------------------------------------------------------------------------------------------------- */

static int multiple(int side, int divisor)
{
    return (side + divisor - 1) / divisor * divisor;
}

/* The options of the image alone, without what fills it up. */
static att_transform_options without_filling(const att_transform_options *options, const transform_layout *layout)
{
    att_transform_options inner = *options;
    if (is_filled_up(options)) {
        inner.width = layout->place.width;
        inner.height = layout->place.height;
    }
    return inner;
}

/* Moves the rows of the image, of the sides of `inner`, from the beginning of `out` to their places in the result, and
 * writes the rest. */
static void fill_up(const att_transform_options *inner, const att_geometry *geometry, float *out)
{
    const size_t channels = (size_t)inner->channels, rows = (size_t)inner->height, all = (size_t)geometry->height;
    const size_t row = (size_t)inner->width * channels, stride = (size_t)geometry->width * channels;
    for (size_t y = rows; y-- > 0 && stride > row;) {
        memmove(out + y * stride, out + y * row, row * sizeof *out);
        memset(out + y * stride + row, 0, (stride - row) * sizeof *out);
    }
    memset(out + rows * stride, 0, (all - rows) * stride * sizeof *out);
}

/* Returns the geometry of the result: the image at its upper left corner, and what fills it up. */
static att_geometry filled_up(const att_transform_options *options, const att_transform_options *inner,
                              const att_geometry *image)
{
    static const att_affine stays = {.a = 1, .e = 1};
    const bool varies = att_transform_varies(options);
    att_geometry geometry = *image;
    att_geometry_step(&geometry, &stays, varies ? multiple(inner->width, options->divisor) : options->width,
                      varies ? multiple(inner->height, options->divisor) : options->height);
    return geometry;
}

static att_status fail_narrow(att_context *context, int width, int height)
{
    return att_fail(context, ATT_ERR_UNSUPPORTED, "an image of %d x %d pixels is too narrow to be resized", width,
                    height);
}

/* *inner: the options of the image without what fills it up. *geometry: that of this image. */
static att_status lay_out(att_context *context, const att_transform_options *options, int width, int height,
                          const att_transform_key *key, transform_layout *layout, att_transform_options *inner,
                          att_geometry *geometry)
{
    *layout = plan_layout(options, width, height, key);
    if (!can_be_resized(&layout->plan))
        return fail_narrow(context, width, height);
    *inner = without_filling(options, layout);
    *geometry = geometry_of(inner, layout, width, height);
    return ATT_OK;
}

att_status att_transform_place(att_context *context, const att_transform_options *options, int width, int height,
                               const att_transform_key *key, att_geometry *geometry)
{
    transform_layout layout;
    att_transform_options inner;
    ATT_TRY(lay_out(context, options, width, height, key, &layout, &inner, geometry));
    *geometry = filled_up(options, &inner, geometry);
    return ATT_OK;
}

att_status att_transform_geometry(att_context *context, const att_transform_options *options, int width, int height,
                                  att_geometry *geometry)
{
    const att_transform_key key = {0};
    ATT_TRY(att_transform_check(context, options));
    if (width < 1 || height < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "transform: an image of %d x %d pixels (height x width)", height,
                        width);
    return att_transform_place(context, options, width, height, &key, geometry);
}

static att_status make_floats(att_context *context, const att_transform_options *options, const att_image *image,
                              const att_transform_key *key, float *out, att_geometry *geometry)
{
    transform_layout layout;
    att_transform_options inner;
    const crop_plan *plan = &layout.plan;
    ATT_TRY(lay_out(context, options, image->width, image->height, key, &layout, &inner, geometry));
    size_t bytes = (size_t)inner.height * (size_t)inner.width * layout.place.pixel;
    uint8_t *pixels = att_reallocate(context, NULL, 2 * bytes);
    if (!pixels)
        return att_fail_memory(context, 2 * bytes, "a transformed image");
    att_status status = att_resize(context, image, plan->from, inner.interpolation, (int)plan->width, (int)plan->height,
                                   plan->window, pixels);
    if (status == ATT_OK)
        finish(&inner, &layout.place, key, pixels, pixels + bytes, out, geometry);
    att_free(context, pixels);
    if (status == ATT_OK && is_filled_up(options)) {
        *geometry = filled_up(options, &inner, geometry);
        fill_up(&inner, geometry, out);
    }
    return status;
}

att_status att_transform_keyed(att_context *context, const att_transform_options *options, const att_image *image,
                               const att_transform_key *key, float *out, att_geometry *geometry)
{
    ATT_TRY(att_transform_check(context, options));
    if (att_transform_varies(options))
        return att_fail(
            context, ATT_ERR_ARGUMENT,
            "transform: height and width are 0, so that they depend on the image; only a loader knows them");
    if (image->channels != options->channels || image->width < 1 || image->height < 1)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "transform: an image of %d x %d x %d where %d channels were expected", image->height,
                        image->width, image->channels, options->channels);
    att_transform_options resolved = *options;
    resolved.interpolation = interpolation_of(options, key);
    return make_floats(context, &resolved, image, key, out, geometry);
}

att_status att_transform_image(att_context *context, const att_transform_options *options, const att_image *image,
                               uint64_t seed, int64_t epoch, int64_t index, float *out)
{
    att_transform_key key = {.seed = seed, .epoch = epoch, .index = index};
    att_geometry geometry;
    return att_transform_keyed(context, options, image, &key, out, &geometry);
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

att_status att_transform_fit(att_context *context, const att_transform_options *options, int width, int height,
                             att_transform_window *window)
{
    const double ratio = ratio_of(options->longer, options->shorter, width, height);
    const crop_plan plan = resized_by(options->crop, ratio, width, height);
    if (!can_be_resized(&plan))
        return fail_narrow(context, width, height);
    window->width = (int)plan.width;
    window->height = (int)plan.height;
    return ATT_OK;
}

att_status att_transform_window_image(att_context *context, const att_transform_options *options,
                                      const att_image *image, const att_transform_window *window, float *out)
{
    const att_box all = {0, 0, image->width, image->height}, *box = &window->box;
    const att_geometry result = {.width = box->width, .height = box->height};
    att_transform_options inner = *options;
    inner.width = at_most(window->width - box->x, box->width);
    inner.height = at_most(window->height - box->y, box->height);
    const att_placement place = {
        .width = inner.width, .height = inner.height, .pixel = pixel_bytes(&inner), .mirrored = window->mirrored};
    const att_box shown = {window->mirrored ? window->width - box->x - inner.width : box->x, box->y, inner.width,
                           inner.height};
    const size_t bytes = (size_t)inner.height * (size_t)inner.width * place.pixel;
    uint8_t *pixels = att_reallocate(context, NULL, 2 * bytes);
    if (!pixels)
        return att_fail_memory(context, 2 * bytes, "a window of an image");
    att_status status =
        att_resize(context, image, all, inner.interpolation, window->width, window->height, shown, pixels);
    if (status == ATT_OK) {
        att_place(&place, pixels, inner.width, inner.height, pixels + bytes);
        normalise(&inner, pixels + bytes, out);
        fill_up(&inner, &result, out);
    }
    att_free(context, pixels);
    return status;
}
