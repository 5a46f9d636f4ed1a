/* kernels/ref/list.h - the reference kernels: one for every op, in f64 arithmetic, never optimised. */
#ifndef ATT_KERNELS_REF_LIST_H
#define ATT_KERNELS_REF_LIST_H

#include "graph/kernel.h"

#define ATT_REF_LIST(X)             \
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
    X(context_broadcast)            \
    X(context_broadcast_scale_grad) \
    X(dropout)                      \
    X(drop_path)                    \
    X(cross_entropy)                \
    X(cross_entropy_grad)           \
    X(attention_summary)            \
    X(step_norms)                   \
    X(residual_norms)               \
    X(cast)                         \
    X(loss_seed)                    \
    X(sum_lanes)                    \
    X(adamw)                        \
    X(sgd)                          \
    X(ema)

#define ATT_REF_DECLARE(name) extern const att_kernel att_ref_##name;
ATT_REF_LIST(ATT_REF_DECLARE)
#undef ATT_REF_DECLARE

/* NULL-terminated. */
extern const att_kernel *const att_kernels_ref[];

#endif
