/* data/transform.h - functions of the transforms that the loader needs in addition to the public ones. */
#ifndef ATT_DATA_TRANSFORM_H
#define ATT_DATA_TRANSFORM_H

#include <attscope/data.h>

#include "base/io/image_codec.h"

/* Returns ERR_ARGUMENT if an option is out of range. */
att_status att_transform_check(att_context *context, const att_transform_options *options);

/* How many different results the transform of one image can have: 1, 2 or 4 if only flips are drawn; 0: any number. */
int att_transform_variants(const att_transform_options *options);

/* Identifies the random stream of a sample's transform. */
typedef struct att_transform_key {
    uint64_t seed;
    int64_t epoch, index;
    int repeat; /* number of the repetition of the image in the epoch, from 0 */
    int crop;   /* ATT_CROP_SCALED: which of the random crops is taken, 0..ATT_CROP_CHOICES - 1 */
} att_transform_key;
/* As att_transform_image(), with a key. *geometry: the map from pixels of the image to pixels of the result. */
att_status att_transform_keyed(att_context *context, const att_transform_options *options, const att_image *image,
                               const att_transform_key *key, float *out, att_geometry *geometry);
/* As att_transform_geometry(), with a key, without RandAugment and for checked options. */
att_status att_transform_place(att_context *context, const att_transform_options *options, int width, int height,
                               const att_transform_key *key, att_geometry *geometry);
/* Whether the sides of the result depend on the image. */
bool att_transform_varies(const att_transform_options *options);
/* Whether one of several random crops is chosen, by att_target_rules.choose_crop. */
bool att_transform_chooses(const att_transform_options *options);
/* A part of a resized image. */
typedef struct att_transform_window {
    int height, width; /* sides to which the whole image is resized */
    bool mirrored;     /* left to right, before the part is taken */
    att_box box;       /* within these sides, or beyond them to the right and below, where the result is 0 */
} att_transform_window;
/* Sets the sides to which ATT_CROP_KEEP would resize an image of width x height pixels with the sides options->longer
 * and options->shorter. Errors: ERR_UNSUPPORTED as for att_transform_image(). */
att_status att_transform_fit(att_context *context, const att_transform_options *options, int width, int height,
                             att_transform_window *window);
/* Writes [box.height][box.width][channels] normalised numbers. Of the options, which are checked, only channels,
 * interpolation, mean and std are used. Errors: ERR_MEMORY. */
att_status att_transform_window_image(att_context *context, const att_transform_options *options,
                                      const att_image *image, const att_transform_window *window, float *out);
/* The part of an image of width x height pixels that the transform with this key reads. */
att_box att_transform_needs(const att_transform_options *options, int width, int height, const att_transform_key *key);

#endif
