/* data/mix.h - Mixup and CutMix of a batch. */
#ifndef ATT_DATA_MIX_H
#define ATT_DATA_MIX_H

#include <attscope/data.h>

#include "base/core/random.h"
#include "data/share.h"

/* Returns ERR_ARGUMENT if an option is out of range. */
att_status att_mix_check(att_context *context, const att_mix_options *options);
/* Whether Mixup or CutMix is enabled. */
bool att_mix_is_on(const att_mix_options *options);

/* Draws from Beta(alpha, alpha). */
double att_mix_draw_beta(att_random *random, double alpha);

/* Draws how images of this size are mixed; lambda 1: not at all. */
att_mixing att_mix_draw(const att_mix_options *options, int height, int width, att_random *random);

/* CutMix with a box around (center_x, center_y), clipped to the image; lambda is adjusted to the clipped box. */
att_mixing att_mix_box(int height, int width, double lambda, int center_y, int center_x);
/* Mixes two images in place: a with the original b according to of_a, and b with the original a according to of_b. */
void att_mix_images(const att_mixing *of_a, const att_mixing *of_b, int height, int width, int channels, float *a,
                    float *b);

/* Mixes sample i of the batch with sample share->size - 1 - i, if the options enable mixing in this epoch. data[0]
 * holds the images, the others the targets, of the samples that this process makes; row_bytes[f] is the size of a
 * sample in data[f]. scratch[f]: scratch for target f of one sample. The sides of the images are those of
 * batch->fields. */
void att_mix_batch(const att_loader_options *options, const att_batch *batch, const att_share *share, void *const *data,
                   const size_t *row_bytes, void *const *scratch);

#endif
