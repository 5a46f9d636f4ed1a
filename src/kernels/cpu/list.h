/* kernels/cpu/list.h - the kernels of the CPU backend: oneDNN for the products with weights, own SIMD elsewhere. */
#ifndef ATT_KERNELS_CPU_LIST_H
#define ATT_KERNELS_CPU_LIST_H

#include "backend/kernel.h"

/* One line each, for kernels that are the same on every processor; those of tier/ are in tiered.h. X(name) */
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
    X(conv2d_weight_grad_columns) \
    X(conv2d_weight_grad)         \
    X(conv2d_weight_grad_bf16)    \
    X(reshape)                    \
    X(matmul)                     \
    X(windows)                    \
    X(windows_back)               \
    X(merge_patches)              \
    X(merge_patches_grad)         \
    X(embed)                      \
    X(embed_grad)                 \
    X(concat)                     \
    X(concat_grad)                \
    X(shortcut_pad)               \
    X(shortcut_pad_grad)          \
    X(merge_moments)              \
    X(running_stats)              \
    X(channel_conv)               \
    X(channel_conv_weight_grad)   \
    X(channel_linear)             \
    X(channel_linear_grad)        \
    X(channel_linear_weight_grad)

/* For bf16 operands of products on processors that multiply none: they come last. */
#define ATT_CPU_WIDENED_KERNELS(X) \
    X(linear_widened)              \
    X(linear_weight_grad_widened)  \
    X(conv2d_widened)              \
    X(conv2d_data_grad_widened)    \
    X(conv2d_weight_grad_widened)

#define ATT_CPU_DECLARE(name) extern const att_kernel att_cpu_##name;
ATT_CPU_KERNELS(ATT_CPU_DECLARE)
ATT_CPU_WIDENED_KERNELS(ATT_CPU_DECLARE)
#undef ATT_CPU_DECLARE

/* NULL-terminated, each op's highest tier first. */
extern const att_kernel *const att_kernels_cpu[];

/* The first that takes the problem on its context's tier; NULL where none does. */
const att_kernel *att_cpu_kernel_for(const att_problem *problem);

/* What the bits depend on besides the tier: "onednn-2.6.3". */
extern const char att_cpu_version[];

#endif
