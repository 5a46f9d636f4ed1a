/* kernels/cpu/conv_vectors.h - combines a convolution's bias and norm into one factor and one addend per channel.
 * Static functions only, so that tier objects can use it. */
#ifndef ATT_KERNELS_CPU_CONV_VECTORS_H
#define ATT_KERNELS_CPU_CONV_VECTORS_H

#include <math.h>
#include <string.h>

#include "base/core/random.h"
#include "engine/backend/kernel.h"
#include "engine/ops/conv2d.h"

/* Inputs of conv2d and conv_transpose2d. */
enum { ATT_CONV_X, ATT_CONV_WEIGHT, ATT_CONV_BIAS, ATT_CONV_RESIDUAL, ATT_CONV_GAMMA };

/* Computes the factors and addends in y = scale sum + shift from the norm and the bias, or from the bias alone. in: as
 * for pack(). */
static inline void att_conv_fill_vectors(const att_problem *problem, const void *const *in, float *scale, float *shift)
{
    const float *bias = in[ATT_CONV_BIAS], *gamma = in[ATT_CONV_GAMMA], *beta = in[ATT_CONV_GAMMA + 1];
    const float *mean = in[ATT_CONV_GAMMA + 2], *variance = in[ATT_CONV_GAMMA + 3];
    int64_t channels = problem->out[0].shape.dims[2];
    for (int64_t c = 0; c < channels; c++) {
        double factor = gamma ? gamma[c] / sqrt(variance[c] + ATT_ATTRS(problem, conv)->eps) : 1;
        double start = bias ? bias[c] : 0;
        scale[c] = (float)factor;
        shift[c] = (float)(gamma ? (start - mean[c]) * factor + beta[c] : start);
    }
}

/* The key contains eps, because two nodes may share a weight and its norm but differ in eps. */
static inline uint64_t att_conv_vectors_key(const att_problem *problem, uint64_t key, bool finishes)
{
    uint64_t eps;
    memcpy(&eps, &ATT_ATTRS(problem, conv)->eps, sizeof eps);
    return att_random_key(key, eps, finishes);
}

#endif
