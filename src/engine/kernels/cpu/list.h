/* kernels/cpu/list.h - the kernels of the CPU backend: oneDNN for products with weights, own SIMD code for the rest. */
#ifndef ATT_KERNELS_CPU_LIST_H
#define ATT_KERNELS_CPU_LIST_H

#include "engine/backend/kernel.h"

/* Kernels that are compiled once for all processors; for those of tier/ see tiered.h. X(name) */
#define ATT_CPU_KERNELS(X)        \
    X(linear)                     \
    X(linear_bf16)                \
    X(patchify_grad)              \
    X(prepend_tokens)             \
    X(slice_tokens)               \
    X(slice_tokens_grad)          \
    X(loss_seed)                  \
    X(gradient_norm)              \
    X(clip_factor)                \
    X(conv2d)                     \
    X(conv2d_bf16)                \
    X(conv2d_data_grad)           \
    X(conv2d_data_grad_bf16)      \
    X(conv_transpose2d)           \
    X(conv_transpose2d_bf16)      \
    X(conv2d_weight_grad_columns) \
    X(conv2d_weight_grad)         \
    X(conv2d_weight_grad_bf16)    \
    X(reshape)                    \
    X(combine)                    \
    X(exp)                        \
    X(exp_grad)                   \
    X(matmul)                     \
    X(windows)                    \
    X(windows_back)               \
    X(window_pad)                 \
    X(window_crop)                \
    X(merge_patches)              \
    X(merge_patches_grad)         \
    X(embed)                      \
    X(embed_grad)                 \
    X(shift_scores)               \
    X(shift_scores_grad)          \
    X(pair_maps)                  \
    X(rank_one_residual)          \
    X(map_statistic)              \
    X(score_norm)                 \
    X(rollout)                    \
    X(attention_flow)             \
    X(singular_values)            \
    X(concat)                     \
    X(concat_grad)                \
    X(slice_channels)             \
    X(slice_channels_grad)        \
    X(shortcut_pad)               \
    X(shortcut_pad_grad)          \
    X(cos_sin)                    \
    X(cos_sin_grad)               \
    X(merge_moments)              \
    X(running_stats)              \
    X(channel_conv)               \
    X(channel_conv_weight_grad)   \
    X(channel_linear)             \
    X(channel_linear_grad)        \
    X(channel_linear_weight_grad) \
    X(box_proposals)              \
    X(roi_align)                  \
    X(roi_align_grad)             \
    X(box_detections)             \
    X(anchor_sample)              \
    X(box_sample)                 \
    X(smooth_l1)                  \
    X(smooth_l1_grad)

/* Fallbacks for bf16 operands on processors without bf16 products; last in the list. */
#define ATT_CPU_WIDENED_KERNELS(X) \
    X(linear_widened)              \
    X(linear_weight_grad_widened)  \
    X(conv2d_widened)              \
    X(conv2d_data_grad_widened)    \
    X(conv_transpose2d_widened)    \
    X(conv2d_weight_grad_widened)

/* Defines att_cpu_<symbol>. ...: the other members of the descriptor. */
#define ATT_CPU_KERNEL(symbol, op_, name_, ...) \
    const att_kernel att_cpu_##symbol = {.op = (op_), .name = (name_), __VA_ARGS__}
/* The kernel of an op without SIMD of our own, for f32. */
#define ATT_PLAIN_KERNEL(op, ...) ATT_CPU_KERNEL(op, #op, "plain", .f32 = true, __VA_ARGS__)

#define ATT_CPU_DECLARE(name) extern const att_kernel att_cpu_##name;
ATT_CPU_KERNELS(ATT_CPU_DECLARE)
ATT_CPU_WIDENED_KERNELS(ATT_CPU_DECLARE)
#undef ATT_CPU_DECLARE

/* NULL-terminated; for each op the preferred tier first. */
extern const att_kernel *const att_kernels_cpu[];

/* The version of oneDNN, which determines the bits of results besides the tier: "onednn-2.6.3". */
extern const char att_cpu_version[];

#endif
