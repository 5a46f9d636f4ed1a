/* data/transform.h - what the loader needs of the transforms besides the public functions. */
#ifndef ATT_DATA_TRANSFORM_H
#define ATT_DATA_TRANSFORM_H

#include <attscope/data.h>

#include "io/image_codec.h"

/* ERR_ARGUMENT where an option is outside its range. */
att_status att_transform_check(att_context *context, const att_transform_options *options);

/* What the random choices of att_transform_image() are drawn from. */
typedef struct att_transform_key {
    uint64_t seed;
    int64_t epoch, index;
    int repeat; /* of the image in the epoch, from 0 */
} att_transform_key;
/* att_transform_image() with such a key; *geometry is how the pixels moved. */
att_status att_transform_keyed(att_context *context, const att_transform_options *options, const att_image *image,
                               const att_transform_key *key, float *out, att_geometry *geometry);
/* The part of an image of this size that att_transform_image() reads. */
att_box att_transform_needs(const att_transform_options *options, int width, int height, const att_transform_key *key);

#endif
