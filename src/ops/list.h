/* ops/list.h - the list of all operations. The declarations of operations and reference kernels, and their tests, are
 * derived from it. */
#ifndef ATT_OPS_LIST_H
#define ATT_OPS_LIST_H

#include "graph/op.h"

#define ATT_OP_LIST(X)              \
    X(linear)                       \
    X(linear_weight_grad)           \
    X(layer_norm)                   \
    X(layer_norm_grad)              \
    X(gelu)                         \
    X(gelu_grad)                    \
    X(add)                          \
    X(sum_samples)                  \
    X(scale)                        \
    X(scale_grad)                   \
    X(patchify)                     \
    X(patchify_grad)                \
    X(prepend_tokens)               \
    X(slice_tokens)                 \
    X(slice_tokens_grad)            \
    X(token_mean)                   \
    X(token_mean_grad)              \
    X(conv2d)                       \
    X(conv2d_data_grad)             \
    X(conv2d_weight_grad)           \
    X(max_pool)                     \
    X(max_pool_grad)                \
    X(avg_pool)                     \
    X(avg_pool_grad)                \
    X(adaptive_avg_pool)            \
    X(adaptive_avg_pool_grad)       \
    X(shortcut_pad)                 \
    X(shortcut_pad_grad)            \
    X(concat)                       \
    X(concat_grad)                  \
    X(attention)                    \
    X(attention_grad)               \
    X(rotary)                       \
    X(rotary_grad)                  \
    X(cos_sin)                      \
    X(cos_sin_grad)                 \
    X(cosine_heads)                 \
    X(cosine_heads_grad)            \
    X(axis_terms)                   \
    X(axis_terms_grad)              \
    X(context_broadcast)            \
    X(context_broadcast_scale_grad) \
    X(dropout)                      \
    X(drop_path)                    \
    X(cross_entropy)                \
    X(cross_entropy_grad)           \
    X(binary_cross_entropy)         \
    X(binary_cross_entropy_grad)    \
    X(attention_summary)            \
    X(step_norms)                   \
    X(residual_norms)               \
    X(batch_norm)                   \
    X(batch_norm_grad)              \
    X(channel_moments)              \
    X(merge_moments)                \
    X(running_stats)                \
    X(channel_gram)                 \
    X(merge_gram)                   \
    X(gram_norm)                    \
    X(gram_norm_grad)               \
    X(affine)                       \
    X(affine_data_grad)             \
    X(affine_sums)                  \
    X(batch_mean)                   \
    X(normalize)                    \
    X(normalize_sums)               \
    X(normalize_grad)               \
    X(relu)                         \
    X(relu_grad)                    \
    X(sigmoid)                      \
    X(sigmoid_grad)                 \
    X(softmax)                      \
    X(softmax_grad)                 \
    X(tanh)                         \
    X(tanh_grad)                    \
    X(silu)                         \
    X(silu_grad)                    \
    X(rms_norm)                     \
    X(rms_norm_grad)                \
    X(group_norm)                   \
    X(group_norm_sums)              \
    X(group_norm_grad)              \
    X(l2_norm)                      \
    X(l2_norm_grad)                 \
    X(global_max)                   \
    X(global_max_grad)              \
    X(global_style)                 \
    X(global_style_grad)            \
    X(channel_pool)                 \
    X(channel_pool_grad)            \
    X(gate)                         \
    X(channel_dot)                  \
    X(pixel_gate)                   \
    X(pixel_dot)                    \
    X(channel_conv)                 \
    X(channel_conv_weight_grad)     \
    X(channel_linear)               \
    X(channel_linear_grad)          \
    X(channel_linear_weight_grad)   \
    X(dct_pool)                     \
    X(dct_pool_grad)                \
    X(transpose)                    \
    X(reshape)                      \
    X(matmul)                       \
    X(windows)                      \
    X(windows_back)                 \
    X(window_pad)                   \
    X(window_crop)                  \
    X(merge_patches)                \
    X(merge_patches_grad)           \
    X(embed)                        \
    X(embed_grad)                   \
    X(upsample_bilinear)            \
    X(upsample_bilinear_grad)       \
    X(combine)                      \
    X(cast)                         \
    X(loss_seed)                    \
    X(sum_lanes)                    \
    X(sum_squares)                  \
    X(gradient_norm)                \
    X(clip_factor)                  \
    X(adamw)                        \
    X(sgd)                          \
    X(ema)

#define ATT_OP_DECLARE(name) extern const att_op att_op_##name;
ATT_OP_LIST(ATT_OP_DECLARE)
#undef ATT_OP_DECLARE

/* NULL-terminated. */
extern const att_op *const att_ops[];

#endif
