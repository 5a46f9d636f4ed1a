/* ops/conv2d.h - attributes of conv2d, its gradients, and conv_transpose2d. */
#ifndef ATT_OPS_CONV2D_H
#define ATT_OPS_CONV2D_H

#include <stdint.h>

#include "engine/ops/activation.h"

/* height, width: size of x, for the gradient of x. kernel_h, kernel_w: size of the kernel, for the gradient of the
 * weight. output_padding: of conv_transpose2d. eps: of an absorbed batch norm. */
typedef struct att_conv_attrs {
    int32_t stride, padding, dilation, groups;
    int32_t height, width, kernel_h, kernel_w;
    att_activation activation; /* none or ReLU */
    int32_t output_padding;
    double eps;
} att_conv_attrs;

#endif
