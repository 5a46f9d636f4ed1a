/* nn/patch_layer.h - att_nn_patch_embed() for patches that were changed before the layer. */
#ifndef ATT_NN_PATCH_LAYER_H
#define ATT_NN_PATCH_LAYER_H

#include <attscope/nn.h>

/* patches: those of the image, as att_patchify() orders them; ATT_NONE: the image's own. Otherwise as
 * att_nn_patch_embed(). */
att_value att_nn_patch_layer(const att_scope *scope, att_value image, att_value patches, int patch_h, int patch_w,
                             int64_t width, bool bias);

#endif
