/* data/erase.h - random erasing (Zhong et al. 2017), as timm's RandomErasing does it. */
#ifndef ATT_DATA_ERASE_H
#define ATT_DATA_ERASE_H

#include <attscope/data.h>

#include "base/core/random.h"
#include "base/io/image_codec.h"

/* Draws one of the `count` boxes of an image. Returns false if each attempted box was at least as wide or as high as
 * the image. */
bool att_erase_draw(const att_transform_options *options, att_random *random, int count, att_box *box);

/* Erases random boxes of a normalised image [height][width][channels], with the probability and mode in the options. */
void att_erase(const att_transform_options *options, att_random *random, float *image);

#endif
