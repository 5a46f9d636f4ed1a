/* kernels/cuda/list.h - the kernels of the backend "cuda". */
#ifndef ATT_KERNELS_CUDA_LIST_H
#define ATT_KERNELS_CUDA_LIST_H

/* X(name) for each descriptor att_cuda_<name>, by file. */
#define ATT_CUDA_KERNELS(X)         \
    /* activations.cu */            \
    X(cast)                         \
    X(reshape)                      \
    X(relu)                         \
    X(relu_grad)                    \
    X(gelu)                         \
    X(gelu_grad)                    \
    X(sigmoid)                      \
    X(sigmoid_grad)                 \
    X(silu)                         \
    X(silu_grad)                    \
    X(quick_gelu)                   \
    X(quick_gelu_grad)              \
    X(tanh)                         \
    X(tanh_grad)                    \
    X(exp)                          \
    X(exp_grad)                     \
    X(gelu_tanh)                    \
    X(gelu_tanh_grad)               \
    X(swiglu)                       \
    X(swiglu_grad)                  \
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
    X(conv2d)                       \
    X(conv2d_data_grad)             \
    X(conv_transpose2d)             \
    /* drop.cu */                   \
    X(dropout)                      \
    X(channel_dropout)              \
    X(drop_path)                    \
    /* frozen_norm.cu */            \
    X(frozen_norm)                  \
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
    /* gram.cu */                   \
    X(channel_gram)                 \
    X(merge_gram)                   \
    X(gram_norm)                    \
    X(gram_norm_grad)               \
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
    X(linear)                       \
    /* losses.cu */                 \
    X(cross_entropy)                \
    X(cross_entropy_grad)           \
    X(binary_cross_entropy)         \
    X(binary_cross_entropy_grad)    \
    /* mixing.cu */                 \
    X(mix_tokens)                   \
    X(mix_tokens_values_grad)       \
    X(mix_tokens_map_grad)          \
    X(mix_axes)                     \
    X(mix_axes_grad)                \
    X(mix_pairs)                    \
    X(mix_pairs_grad)               \
    X(pair_maps)                    \
    /* pools.cu */                  \
    X(max_pool)                     \
    X(avg_pool)                     \
    X(max_pool_grad)                \
    X(avg_pool_grad)                \
    X(adaptive_avg_pool)            \
    X(adaptive_avg_pool_grad)       \
    X(token_mean)                   \
    X(token_mean_grad)              \
    X(upsample_bilinear)            \
    X(upsample_bilinear_grad)       \
    X(concat_maps)                  \
    X(concat_maps_grad)             \
    /* positions.cu */              \
    X(rotary)                       \
    X(rotary_grad)                  \
    X(cos_sin)                      \
    X(cos_sin_grad)                 \
    X(cosine_heads)                 \
    X(cosine_heads_grad)            \
    X(shift_scores)                 \
    X(shift_scores_grad)            \
    X(axis_terms)                   \
    X(axis_terms_grad)              \
    X(window_pad)                   \
    X(window_crop)                  \
    /* score_terms.cu */            \
    X(score_terms)                  \
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
    /* spectra.cu */                \
    X(score_norm)                   \
    X(rank_one_residual)            \
    X(singular_values)              \
    X(rollout)                      \
    /* statistics.cu */             \
    X(attention_summary)            \
    X(step_norms)                   \
    X(residual_norms)               \
    X(map_statistic)                \
    /* sums.cu */                   \
    X(sum_samples)                  \
    X(scale)                        \
    X(scale_grad)                   \
    X(combine)                      \
    X(loss_seed)                    \
    /* updates.cu */                \
    X(sum_lanes)                    \
    X(sum_squares)                  \
    X(gradient_norm)                \
    X(clip_factor)                  \
    X(sgd)                          \
    X(adam)                         \
    X(adamw)                        \
    X(ema)

#endif
