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
    /* channel_filter.cu */         \
    X(channel_conv)                 \
    X(channel_conv_weight_grad)     \
    X(channel_linear)               \
    X(channel_linear_grad)          \
    X(channel_linear_weight_grad)   \
    /* context_broadcast.cu */      \
    X(context_broadcast)            \
    X(context_broadcast_scale_grad) \
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
    /* softmax.cu */                \
    X(softmax)                      \
    X(softmax_grad)                 \
    /* statistics.cu */             \
    X(attention_summary)            \
    X(step_norms)                   \
    X(residual_norms)               \
    X(map_statistic)

#endif
