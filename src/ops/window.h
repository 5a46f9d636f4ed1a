/* ops/window.h - what convolutions and pools share: windows that move over a map [h, w, C]. */
#ifndef ATT_OPS_WINDOW_H
#define ATT_OPS_WINDOW_H

#include "graph/op.h"

/* How many windows of `extent` elements, `stride` apart, fit along `size` elements with `padding` on both sides; 0
 * where none does. All at most INT32_MAX, stride at least 1. */
int64_t att_window_count(int64_t size, int64_t extent, int64_t stride, int64_t padding);

/* What a convolution of a map [height, width, ..] by kernels of kernel_h x kernel_w yields: *to [oh, ow]. Errors, in
 * the op's name: an attribute or a size out of range; a kernel that is larger than the padded map. */
att_status att_conv_size(const att_infer *infer, const char *op, const int64_t size[2], const int64_t kernel[2],
                         int64_t to[2]);

/* What a pool of a map [height, width, ..] yields: *to [oh, ow]. Errors as above; every window has an element of x. */
att_status att_pool_size(const att_infer *infer, const char *op, const int64_t size[2], int64_t to[2]);

#endif
