/* kernels/cpu/tiered.h - the kernels and functions of tier/, which are compiled once per processor tier under different
 * names. */
#ifndef ATT_KERNELS_CPU_TIERED_H
#define ATT_KERNELS_CPU_TIERED_H

#include "base/core/processor.h"
#include "engine/backend/kernel.h"

/* X(name) */
#define ATT_TIER_KERNELS(X)         \
    X(conv2d)                       \
    X(conv2d_planes)                \
    X(conv2d_data_grad_planes)      \
    X(conv2d_weight_grad_planes)    \
    X(linear)                       \
    X(linear_weight_grad)           \
    X(patchify)                     \
    X(layer_norm)                   \
    X(layer_norm_grad)              \
    X(cast)                         \
    X(gelu)                         \
    X(gelu_grad)                    \
    X(add)                          \
    X(sum_samples)                  \
    X(scale)                        \
    X(scale_grad)                   \
    X(token_mean)                   \
    X(token_mean_grad)              \
    X(max_pool)                     \
    X(max_pool_grad)                \
    X(avg_pool)                     \
    X(avg_pool_grad)                \
    X(adaptive_avg_pool)            \
    X(adaptive_avg_pool_grad)       \
    X(attention)                    \
    X(attention_grad)               \
    X(rotary)                       \
    X(rotary_grad)                  \
    X(cosine_heads)                 \
    X(cosine_heads_grad)            \
    X(axis_terms)                   \
    X(axis_terms_grad)              \
    X(mix_tokens)                   \
    X(mix_tokens_values_grad)       \
    X(mix_tokens_map_grad)          \
    X(mix_axes)                     \
    X(mix_axes_grad)                \
    X(mix_pairs)                    \
    X(mix_pairs_grad)               \
    X(context_broadcast)            \
    X(context_broadcast_scale_grad) \
    X(cross_entropy)                \
    X(cross_entropy_grad)           \
    X(binary_cross_entropy)         \
    X(binary_cross_entropy_grad)    \
    X(dropout)                      \
    X(channel_dropout)              \
    X(drop_path)                    \
    X(batch_norm)                   \
    X(batch_norm_grad)              \
    X(channel_moments)              \
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
    X(quick_gelu)                   \
    X(quick_gelu_grad)              \
    X(gelu_tanh)                    \
    X(gelu_tanh_grad)               \
    X(swiglu)                       \
    X(swiglu_grad)                  \
    X(rms_norm)                     \
    X(rms_norm_grad)                \
    X(frozen_norm)                  \
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
    X(dct_pool)                     \
    X(dct_pool_grad)                \
    X(transpose)                    \
    X(matmul)                       \
    X(upsample_bilinear)            \
    X(upsample_bilinear_grad)       \
    X(concat_maps)                  \
    X(concat_maps_grad)             \
    X(upsampled_cross_entropy)      \
    X(upsampled_cross_entropy_grad) \
    X(upsampled_argmax)             \
    X(attention_summary)            \
    X(score_terms)                  \
    X(step_norms)                   \
    X(residual_norms)               \
    X(sum_lanes)                    \
    X(sum_squares)                  \
    X(adamw)                        \
    X(adam)                         \
    X(sgd)                          \
    X(ema)

/* Defines att_cpu_<symbol> of the tier for which the file is compiled. ...: the other members of the descriptor. */
#define ATT_TIER_KERNEL(symbol, op_, name_, ...)      \
    const att_kernel ATT_TIERED(att_cpu_##symbol) = { \
        .op = (op_), .name = (name_), .features = ATT_TIER_FEATURES, __VA_ARGS__}
/* The kernel of an op, for f32 and where `bf16_in` and `bf16_out` say so, bf16. */
#define ATT_SIMD_KERNEL(op, ...) ATT_TIER_KERNEL(op, #op, "simd", .f32 = true, __VA_ARGS__)

/* Operands of finish_gradient(); pointers may be NULL. */
typedef struct att_gradient_form {
    const void *residual, *relu_output;
    bool residual_is_bf16, relu_output_is_bf16, is_bf16; /* is_bf16: type of dx */
    const float *pooled;
    float share;
} att_gradient_form;

/* Functions that kernels use before and after a matrix product. */
typedef struct att_tier_functions {
    /* y[i] = gelu(sum[i]) + residual[i] for i < count. residual may be NULL; without `gelu`, sum[i] + residual[i]. y is
     * bf16 if is_bf16; otherwise y may equal sum. */
    void (*finish)(const float *sum, const float *residual, bool gelu, int64_t count, void *y, bool is_bf16);
    /* dx[r][c] = sum[r][c] + residual[r][c] + share pooled[c] if relu_output[r][c] > 0, else 0, for r < rows, c <
     * columns. dx may equal sum if it is f32. */
    void (*finish_gradient)(const float *sum, const att_gradient_form *form, int64_t rows, int64_t columns, void *dx);
    /* y[r][c] = max(scale[c] sum[r][c] + shift[c] + residual[r][c], least) for r < rows, c < columns; NaN stays NaN.
     * residual may be NULL. y may equal sum if it is f32. */
    void (*finish_channels)(const float *sum, const float *scale, const float *shift, const void *residual,
                            bool residual_is_bf16, float least, int64_t rows, int64_t columns, void *y, bool is_bf16);
    /* y[i] = x[i], bf16 to f32, for i < count. */
    void (*widen)(const uint16_t *x, int64_t count, float *y);
} att_tier_functions;

#define ATT_TIER_DECLARE_(name, tier, features) extern const att_kernel att_cpu_##name##_##tier;
#define ATT_TIER_DECLARE(name) ATT_EACH_TIER(ATT_TIER_DECLARE_, name)
ATT_TIER_KERNELS(ATT_TIER_DECLARE)
#undef ATT_TIER_DECLARE
#undef ATT_TIER_DECLARE_

#define ATT_TIER_DECLARE(name, tier, features) extern const att_tier_functions att_cpu_##name##_##tier;
ATT_EACH_TIER(ATT_TIER_DECLARE, functions)
#undef ATT_TIER_DECLARE

/* The functions of the context's tier. */
const att_tier_functions *att_cpu_functions(const att_context *context);

#endif
