/* data/mix.h - Mixup and CutMix of a batch. */
#ifndef ATT_DATA_MIX_H
#define ATT_DATA_MIX_H

#include <attscope/data.h>

#include "core/random.h"

/* ERR_ARGUMENT where an option is outside its range. */
att_status att_mix_check(att_context *context, const att_mix_options *options);
/* Whether a batch has targets. */
bool att_mix_has_targets(const att_mix_options *options);

/* Beta(alpha, alpha). */
double att_mix_draw_beta(att_random *random, double alpha);

/* How an image is mixed with its partner: weight of its own, or the box that the partner fills. */
typedef struct att_mix_plan {
    double lambda; /* of its own label */
    bool cuts;
    int top, bottom, left, right; /* where it cuts, the partner's part */
} att_mix_plan;
/* The box of CutMix around (center_x, center_y), cut to the image, with the lambda of what is left. */
att_mix_plan att_mix_plan_box(int height, int width, double lambda, int center_y, int center_x);
/* Mixes image a, in place, with b by the one plan and b with a by the other. */
void att_mix_images(const att_mix_plan *of_a, const att_mix_plan *of_b, int height, int width, int channels, float *a,
                    float *b);

/* lambda own + (1 - lambda) other, smoothed: target[classes]. */
void att_mix_target(const att_mix_options *options, double lambda, int own, int other, float *target);

/* Mixes image i of the batch with image count - 1 - i where the options and the epoch say so, and fills targets
 * [count][classes]. */
void att_mix_batch(const att_mix_options *options, const att_transform_options *shape, uint64_t seed,
                   const att_batch *batch, float *images, float *targets);

#endif
