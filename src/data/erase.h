/* data/erase.h - random erasing (Zhong et al. 2017), as timm's RandomErasing does it. */
#ifndef ATT_DATA_ERASE_H
#define ATT_DATA_ERASE_H

#include <attscope/data.h>

#include "core/random.h"

/* Erases random boxes of a normalised image [height][width][channels], with the probability and mode in the options. */
void att_erase(const att_transform_options *options, att_random *random, float *image);

#endif
