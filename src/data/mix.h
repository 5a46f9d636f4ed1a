/* data/mix.h - Mixup and CutMix of a batch. */
#ifndef ATT_DATA_MIX_H
#define ATT_DATA_MIX_H

#include <attscope/data.h>

#include "core/random.h"

/* ERR_ARGUMENT where an option is outside its range. */
att_status att_mix_check(att_context *context, const att_mix_options *options);
/* Whether anything is mixed. */
bool att_mix_is_on(const att_mix_options *options);

/* Beta(alpha, alpha). */
double att_mix_draw_beta(att_random *random, double alpha);

/* The box of CutMix around (center_x, center_y), cut to the image, with the lambda of what is left. */
att_mixing att_mix_box(int height, int width, double lambda, int center_y, int center_x);
/* Mixes image a, in place, with b as of_a says and b with a as of_b says. */
void att_mix_images(const att_mixing *of_a, const att_mixing *of_b, int height, int width, int channels, float *a,
                    float *b);

/* Mixes sample i of the batch with sample count - 1 - i where the options and the epoch say so: the images in data[0]
 * and the targets in the rest, rows of row_bytes[0..]. spare: room for one sample's targets, each in a block of its
 * own. */
void att_mix_batch(const att_loader_options *options, const att_batch *batch, void *const *data,
                   const size_t *row_bytes, void *const *spare);

#endif
