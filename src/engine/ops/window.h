/* ops/window.h - window arithmetic of convolutions and pools over a map [h, w, C]. */
#ifndef ATT_OPS_WINDOW_H
#define ATT_OPS_WINDOW_H

#include "engine/graph/op.h"

/* Writes the output size of a convolution over a map of size[0] x size[1] to `to`. Fails, in the op's name, if an
 * attribute or size is out of range or the kernel is larger than the padded map. */
att_status att_conv_size(const att_infer *infer, const int64_t size[2], const int64_t kernel[2], int64_t to[2]);

/* The same for a transposed convolution: the largest map over which a convolution has `size` positions, if
 * output_padding is stride - 1. */
att_status att_conv_transpose_size(const att_infer *infer, const int64_t size[2], const int64_t kernel[2],
                                   int64_t to[2]);

/* Writes the output size of a pool over a map of size[0] x size[1] to `to`. Fails like att_conv_size(). Every window
 * contains at least one element of x. */
att_status att_pool_size(const att_infer *infer, const int64_t size[2], int64_t to[2]);

/* The last three axes of a map [h, w, C], or of maps [R, h, w, C]. */
static inline const int64_t *att_map_dims(const att_shape *shape)
{
    return shape->dims + shape->rank - 3;
}
/* The same map, or maps, of other sides and channels. */
static inline att_shape att_map_shape(att_shape like, int64_t height, int64_t width, int64_t channels)
{
    like.dims[like.rank - 3] = height;
    like.dims[like.rank - 2] = width;
    like.dims[like.rank - 1] = channels;
    return like;
}
/* For ops marked ATT_OP_MAPS: input i is a map, or maps. Maps of a derived node are single. */
att_status att_rule_require_maps(const att_infer *infer, int i, const char *name);

#endif
