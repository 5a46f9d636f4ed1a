/* models/parallel_block.h - blocks of token networks whose branches are computed side by side. */
#ifndef ATT_MODELS_PARALLEL_BLOCK_H
#define ATT_MODELS_PARALLEL_BLOCK_H

#include "networks/models/token_block.h"

/* Attention and MLP of one norm, x + drop_path(layer_scale(attention(y) + mlp(y))), y = norm(x): timm's
 * ParallelScalingBlock, or with differential attention its DiffParallelScalingBlock. Tensors in_norm, in_proj (hidden
 * channels of the MLP, then queries, keys, values), mlp_bias without a bias in in_proj, attn_out_proj and mlp_out_proj
 * or, if differential, out_proj. (Dehghani et al., ICML 2023) */
att_value att_parallel_scaling(const att_token_block *block, att_value x);

/* Two attention branches whose sum is added to the stream, then two MLPs: timm's ParallelThingsBlock. Tensors attns.K.*
 * and ffns.K.*. (Touvron et al., ECCV 2022) */
att_value att_parallel_things(const att_token_block *block, att_value x);

#endif
