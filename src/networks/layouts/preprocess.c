/* The settings of transformers' image processors as those of attscope's preprocessing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "networks/layouts/layout.h"

/* What a class of image processors does where the file has no key for it. */
typedef struct processor {
    const char *name; /* of the class, before "ImageProcessor" or "FeatureExtractor" */
    int size, crop;   /* crop 0: do_center_crop is false */
    bool keeps_ratio; /* a number is the size of the shorter side */
    bool has_crop_pct;
    bool is_fixed;  /* does not read `size`: the layout has the sides */
    bool in_floats; /* resizes what it has rescaled, without rounding */
    const char *interpolation;
    double mean[3], std[3];
} processor;

#define STANDARD      \
    {0.5, 0.5, 0.5},  \
    {                 \
        0.5, 0.5, 0.5 \
    }
#define CLIP                               \
    {0.48145466, 0.4578275, 0.40821073},   \
    {                                      \
        0.26862954, 0.26130258, 0.27577711 \
    }
#define IMAGENET            \
    {0.485, 0.456, 0.406},  \
    {                       \
        0.229, 0.224, 0.225 \
    }

static const processor processors[] = {
    {"ViT", 224, 0, false, false, false, false, "bilinear", STANDARD},
    {"DeiT", 256, 224, false, false, false, false, "bicubic", STANDARD},
    {"Beit", 224, 0, false, false, false, false, "bicubic", STANDARD},
    {"CLIP", 224, 224, true, false, false, false, "bicubic", CLIP},
    {"Bit", 224, 224, true, false, false, false, "bicubic", CLIP},
    {"ConvNext", 384, 0, true, true, false, false, "bicubic", STANDARD},
    {"Siglip", 224, 0, false, false, false, false, "bicubic", STANDARD},
    {"Siglip2", 0, 0, false, false, true, false, "bilinear", STANDARD},
    {"Segformer", 512, 0, false, false, false, false, "bilinear", IMAGENET},
    {"DINOv3ViT", 224, 0, false, false, false, true, "bilinear", IMAGENET},
};

enum { CONVNEXT_WHOLE = 384 }; /* ConvNext's processor does not crop images of this side or more */
enum { MOST_SIDE = 16384, MOST_SHARE = 10 };

/* A file that is read, and what it says. */
typedef struct reading {
    att_context *context;
    const char *path;
    const json_t *root;
    const processor *processor;
    int resized[2];   /* height and width; those of the shorter side are equal */
    bool keeps_ratio; /* resized[] is the size of the shorter side */
    int crop[2];
} reading;

static att_status refuse(const reading *r, const char *key, const char *why)
{
    return att_fail(r->context, ATT_ERR_UNSUPPORTED, "%s: %s %s", r->path, key, why);
}

/* Returns NULL for a key with the value null, too. */
static const json_t *value_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

/* As Python takes values for conditions: null, 0 and what is empty are false. */
static bool is_on(const reading *r, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(r->root, key);
    if (!value)
        return otherwise;
    return json_is_true(value) || (json_is_number(value) && json_number_value(value) != 0) ||
           json_string_length(value) > 0 || json_array_size(value) > 0 || json_object_size(value) > 0;
}

/* --- the class ---------------------------------------------------------------------------------------------------- */

static const processor *find_processor(const char *type)
{
    for (size_t i = 0; i < sizeof processors / sizeof *processors; i++) {
        const char *rest = type + strlen(processors[i].name);
        if (strncmp(type, processors[i].name, strlen(processors[i].name)) == 0 &&
            (strncmp(rest, "ImageProcessor", 14) == 0 || strncmp(rest, "FeatureExtractor", 16) == 0))
            return &processors[i];
    }
    return NULL;
}

static att_status choose_processor(reading *r)
{
    const char *type = json_string_value(json_object_get(r->root, "image_processor_type"));
    if (!type)
        type = json_string_value(json_object_get(r->root, "feature_extractor_type"));
    r->processor = find_processor(type ? type : "ViTImageProcessor");
    if (!r->processor)
        return att_fail(r->context, ATT_ERR_UNSUPPORTED,
                        "%s: images are prepared by transformers' \"%.64s\", which attscope does not support", r->path,
                        type);
    return ATT_OK;
}

/* --- sides -------------------------------------------------------------------------------------------------------- */

static bool is_side(const json_t *value)
{
    const double number = json_number_value(value);
    return json_is_number(value) && number >= 1 && number <= MOST_SIDE && number == floor(number);
}

static bool read_sides(const json_t *height, const json_t *width, int sides[2])
{
    if (!is_side(height) || !is_side(width))
        return false;
    sides[0] = (int)json_number_value(height);
    sides[1] = (int)json_number_value(width);
    return true;
}

/* Reads a number, {height, width}, [height, width] or {shortest_edge}, for which *shorter becomes true. A number is
 * the shorter side if *shorter is true before. */
static att_status read_size(const reading *r, const char *key, int sides[2], bool *shorter)
{
    const json_t *value = value_of(r->root, key), *edge = value_of(value, "shortest_edge");
    if (!value || json_is_number(value))
        return !value || read_sides(value, value, sides) ? ATT_OK
                                                         : refuse(r, key, "is not a whole number from 1 to 16384");
    *shorter = edge;
    if (value_of(value, "longest_edge"))
        return refuse(r, key, "limits the longer side, which attscope does not support");
    if (edge ? read_sides(edge, edge, sides)
             : read_sides(value_of(value, "height"), value_of(value, "width"), sides) ||
                   (json_array_size(value) == 2 &&
                    read_sides(json_array_get(value, 0), json_array_get(value, 1), sides)))
        return ATT_OK;
    return refuse(r, key, "has neither the numbers \"height\" and \"width\" nor \"shortest_edge\", from 1 to 16384");
}

/* ConvNext's processor crops small images to `size` and squashes others. */
static att_status apply_crop_pct(reading *r)
{
    const json_t *value = value_of(r->root, "crop_pct");
    const double share = value ? json_number_value(value) : 224.0 / 256.0;
    if (!r->keeps_ratio)
        return refuse(r, "size", "has no \"shortest_edge\", which this image processor needs");
    if (!(share > 0.01 && share <= 1))
        return refuse(r, "crop_pct", "is not a number above 0.01 and up to 1");
    r->keeps_ratio = r->resized[0] < CONVNEXT_WHOLE;
    memcpy(r->crop, r->resized, sizeof r->crop);
    if (r->keeps_ratio)
        r->resized[0] = r->resized[1] = (int)(r->resized[0] / share);
    return ATT_OK;
}

static att_status read_sizes(reading *r)
{
    const processor *p = r->processor;
    bool shorter = false;
    r->keeps_ratio = p->keeps_ratio;
    r->resized[0] = r->resized[1] = p->size;
    if (!is_on(r, "do_resize", true))
        return refuse(r, "do_resize", "is false, but attscope needs images of one size");
    if (is_on(r, "do_pad", false))
        return refuse(r, "do_pad", "is true, which attscope does not support");
    ATT_TRY(read_size(r, "size", r->resized, &r->keeps_ratio));
    if (p->has_crop_pct)
        ATT_TRY(apply_crop_pct(r));
    else
        memcpy(r->crop, r->resized, sizeof r->crop);
    if (!is_on(r, "do_center_crop", p->crop > 0))
        return r->keeps_ratio && !p->has_crop_pct
                   ? refuse(r, "do_center_crop", "is false, but attscope needs images of one size")
                   : ATT_OK;
    if (p->has_crop_pct)
        return refuse(r, "do_center_crop", "is true besides crop_pct, which attscope does not support");
    r->crop[0] = r->crop[1] = p->crop > 0 ? p->crop : 224;
    ATT_TRY(read_size(r, "crop_size", r->crop, &shorter));
    return shorter ? refuse(r, "crop_size", "has no \"height\" and \"width\"") : ATT_OK;
}

/* Returns a ratio for which floor(crop / ratio) is exactly `resized`. */
static double share_of(int crop, int resized)
{
    double share = (double)crop / resized;
    while ((int)floor(crop / share) < resized)
        share = nextafter(share, 0);
    return share;
}

/* Whether the crop mode "squash" divides what is left over, or what is missing, in another way than the processor. */
static bool is_divided_otherwise(int rest)
{
    return rest < 0 ? rest % 2 != 0 : rest % 4 == 3;
}

static att_status set_sizes(const reading *r, att_config *config)
{
    const int rest = r->resized[0] - r->crop[0];
    const double share = share_of(r->crop[0], r->resized[0]);
    if (share > MOST_SHARE)
        return refuse(r, "crop_size", "is more than 10 times as large as size, which attscope does not support");
    if ((r->keeps_ratio && r->crop[0] != r->crop[1]) || (int)floor(r->crop[1] / share) != r->resized[1])
        return refuse(r, "crop_size", "has another shape than size, which attscope does not support");
    if (!r->keeps_ratio && (is_divided_otherwise(rest) || is_divided_otherwise(r->resized[1] - r->crop[1])))
        return refuse(r, "crop_size", "leaves an odd rest of size, which attscope divides in another way");
    const att_fact sides = {.kind = ATT_FACT_NUMBERS, .numbers = {r->crop[0], r->crop[1]}, .count = 2};
    config->crop_pct = share;
    snprintf(config->crop_mode, sizeof config->crop_mode, "%s", r->keeps_ratio ? "floor" : "squash");
    return att_config_note(r->context, r->path, "img_size", &sides, config);
}

/* --- interpolation and values ------------------------------------------------------------------------------------- */

/* Numbers are those of PIL. */
static att_status set_interpolation(const reading *r, att_config *config)
{
    static const char *const names[] = {"nearest", NULL, "bilinear", "bicubic"};
    const json_t *value = value_of(r->root, "resample");
    const json_int_t number = json_integer_value(value);
    const char *name = r->processor->interpolation;
    if (value)
        name = json_is_integer(value) && number >= 0 && number <= 3 ? names[number] : NULL;
    if (!name)
        return refuse(r, "resample", "is none of 0 (nearest), 2 (bilinear) and 3 (bicubic)");
    const bool in_floats = r->processor->in_floats && is_on(r, "do_rescale", true) && name != names[0];
    snprintf(config->interpolation, sizeof config->interpolation, "%s%s", name, in_floats ? "_float" : "");
    return ATT_OK;
}

/* Reads one number for all channels, or three. */
static att_status read_channels(const reading *r, const char *key, double low, double values[3])
{
    const json_t *value = value_of(r->root, key);
    const size_t count = json_array_size(value); /* 0 of a number */
    for (size_t c = 0; value && c < 3; c++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, count == 1 ? 0 : c) : value;
        values[c] = json_number_value(item);
        if (!json_is_number(item) || !(values[c] >= low && values[c] <= 1e3) ||
            (json_is_array(value) && count != 1 && count != 3))
            return att_fail(r->context, ATT_ERR_FORMAT, "%s: %s must be %s", r->path, key,
                            low > 0 ? "one or three positive numbers" : "one or three numbers");
    }
    return ATT_OK;
}

/* Sets mean and std for pixels in 0..1. Processors compute (pixel * factor - mean) / std of pixels in 0..255. */
static att_status set_values(const reading *r, att_config *config)
{
    const json_t *value = value_of(r->root, "rescale_factor");
    const double given = value ? json_number_value(value) : 1.0 / 255;
    const double factor = is_on(r, "do_rescale", true) ? given * 255 : 255;
    double mean[3], std[3];
    if (!(factor >= 1e-6 && factor <= 1e6))
        return refuse(r, "rescale_factor", "is not a positive number");
    memcpy(mean, r->processor->mean, sizeof mean);
    memcpy(std, r->processor->std, sizeof std);
    ATT_TRY(read_channels(r, "image_mean", -1e3, mean));
    ATT_TRY(read_channels(r, "image_std", 1e-6, std));
    const bool normalises = is_on(r, "do_normalize", true), changes = fabs(factor - 1) > 1e-12;
    for (int c = 0; c < 3; c++) {
        config->mean[c] = !normalises ? 0 : changes ? mean[c] / factor : mean[c];
        config->std[c] = !normalises ? 1 / factor : changes ? std[c] / factor : std[c];
    }
    config->has_mean = config->has_std = true;
    return ATT_OK;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static att_status refuse_others(const reading *r)
{
    static const char *const keys[] = {"do_flip_channel_order", "offset", "rescale_offset"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (is_on(r, keys[i], false))
            return refuse(r, keys[i], "is true, which attscope does not support");
    return ATT_OK;
}

att_status att_layout_preprocess(att_context *context, const char *path, const json_t *settings, att_config *config)
{
    reading r = {.context = context, .path = path, .root = settings};
    if (!json_is_object(settings))
        return att_fail(context, ATT_ERR_FORMAT, "%s: the settings of images must be an object", path);
    ATT_TRY(choose_processor(&r));
    ATT_TRY(refuse_others(&r));
    if (!r.processor->is_fixed) {
        ATT_TRY(read_sizes(&r));
        ATT_TRY(set_sizes(&r, config));
    }
    ATT_TRY(set_interpolation(&r, config));
    return set_values(&r, config);
}
