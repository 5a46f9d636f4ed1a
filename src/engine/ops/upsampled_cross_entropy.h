/* ops/upsampled_cross_entropy.h - attributes of upsampled_cross_entropy and its gradient. */
#ifndef ATT_OPS_UPSAMPLED_CROSS_ENTROPY_H
#define ATT_OPS_UPSAMPLED_CROSS_ENTROPY_H

#include <stdint.h>

typedef struct att_upsampled_cross_entropy_attrs {
    int32_t ignored;
    int32_t mean; /* an att_pixel_mean */
} att_upsampled_cross_entropy_attrs;

#endif
