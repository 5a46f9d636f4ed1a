/* kernels/cuda/list.h - the kernels of the backend "cuda". */
#ifndef ATT_KERNELS_CUDA_LIST_H
#define ATT_KERNELS_CUDA_LIST_H

/* X(name) for each descriptor att_cuda_<name>, by file. */
#define ATT_CUDA_KERNELS(X)         \
    /* add.cu */                    \
    X(add)                          \
    /* attention.cu */              \
    X(attention)                    \
    /* attention_grad.cu */         \
    X(attention_grad)               \
    /* batch_norm.cu */             \
    X(batch_norm)                   \
    X(normalize)                    \
    X(batch_norm_grad)              \
    X(channel_moments)              \
    X(merge_moments)                \
    X(running_stats)                \
    X(batch_mean)                   \
    X(normalize_sums)               \
    X(normalize_grad)               \
    /* channel_filter.cu */         \
    X(channel_conv)                 \
    X(channel_conv_weight_grad)     \
    X(channel_linear)               \
    X(channel_linear_grad)          \
    X(channel_linear_weight_grad)   \
    /* context_broadcast.cu */      \
    X(context_broadcast)            \
    X(context_broadcast_scale_grad) \
    /* conv2d.cu */                 \
    X(conv2d_weight_grad)           \
    /* gate.cu */                   \
    X(gate)                         \
    X(pixel_gate)                   \
    X(channel_dot)                  \
    X(pixel_dot)                    \
    /* global_pool.cu */            \
    X(global_max)                   \
    X(global_max_grad)              \
    X(global_style)                 \
    X(global_style_grad)            \
    X(channel_pool)                 \
    X(channel_pool_grad)            \
    X(dct_pool)                     \
    X(dct_pool_grad)                \
    /* group_norm.cu */             \
    X(group_norm)                   \
    X(group_norm_sums)              \
    X(group_norm_grad)              \
    /* layer_norm.cu */             \
    X(layer_norm)                   \
    X(layer_norm_grad)              \
    X(rms_norm)                     \
    X(rms_norm_grad)                \
    X(l2_norm)                      \
    X(l2_norm_grad)                 \
    /* linear.cu */                 \
    X(linear_weight_grad)           \
    X(matmul)                       \
    /* shapes.cu */                 \
    X(slice_channels)               \
    X(slice_channels_grad)          \
    X(slice_tokens)                 \
    X(slice_tokens_grad)            \
    X(concat)                       \
    X(prepend_tokens)               \
    X(concat_grad)                  \
    X(patchify)                     \
    X(patchify_grad)                \
    X(merge_patches)                \
    X(merge_patches_grad)           \
    X(shortcut_pad)                 \
    X(shortcut_pad_grad)            \
    X(transpose)                    \
    X(windows)                      \
    X(windows_back)                 \
    X(embed)                        \
    X(embed_grad)                   \
    /* softmax.cu */                \
    X(softmax)                      \
    X(softmax_grad)                 \
    /* statistics.cu */             \
    X(attention_summary)            \
    X(step_norms)                   \
    X(residual_norms)               \
    X(map_statistic)

#endif
