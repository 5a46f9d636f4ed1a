/* graph/attrs.h - what a node carries besides its inputs: ops write it, kernels read it. */
#ifndef ATT_GRAPH_ATTRS_H
#define ATT_GRAPH_ATTRS_H

#include <stdbool.h>
#include <stdint.h>

/* Columns of attention statistics, one row per (head, query). a = the query's row of the attention map. */
typedef enum att_attention_stat {
    ATT_STAT_ENTROPY,  /* -sum_j a_j ln a_j, nats */
    ATT_STAT_SUM2,     /* sum_j a_j^2 */
    ATT_STAT_SUM3,     /* sum_j a_j^3 */
    ATT_STAT_DISTANCE, /* sum over spatial j != i of a_j ||p_i - p_j||, in grid steps; 0 for prefix queries */
    ATT_STAT_PREFIX,   /* sum over prefix tokens (class token, registers) of a_j */
    ATT_STAT_SELF,     /* a_i */
    ATT_STAT_MAX,      /* max_j a_j */
    ATT_STAT_ARGMAX,   /* the smallest j that reaches it */
    ATT_STAT_COUNT
} att_attention_stat;

/* Columns of an attention's summary, one row per head: means over queries of what a row's statistics say; the distances
 * over grid queries only. */
typedef enum att_attention_summary_column {
    ATT_SUMMARY_ENTROPY,
    ATT_SUMMARY_NUCLEAR,         /* 1 - sum a^2 */
    ATT_SUMMARY_FROBENIUS,       /* sqrt(sum a^2 - 2 sum a^3 + (sum a^2)^2) */
    ATT_SUMMARY_DISTANCE,        /* as ATT_STAT_DISTANCE */
    ATT_SUMMARY_DISTANCE_OTHERS, /* that over the mass on other grid tokens; 0 where there is none */
    ATT_SUMMARY_PREFIX,
    ATT_SUMMARY_SELF,
    ATT_SUMMARY_MAX,
    ATT_SUMMARY_COUNT
} att_attention_summary_column;

/* Mass on other tokens that counts as none: f32 knows 1 - prefix - self to about this. */
#define ATT_SUMMARY_LEAST_MASS 1e-6

typedef enum att_activation { ATT_ACT_NONE, ATT_ACT_GELU, ATT_ACT_RELU } att_activation;

/* transposed: the weight is [I, O], used as it lies, instead of timm's [O, I]. */
typedef struct att_linear_attrs {
    att_activation activation;
    bool transposed;
} att_linear_attrs;

typedef struct att_layer_norm_attrs {
    double eps;
} att_layer_norm_attrs;

/* Tokens 0..prefix-1 are no grid tokens; the others fill grid_h x grid_w, row by row (0 x 0: no grid). */
typedef struct att_attention_attrs {
    int32_t heads, prefix, grid_h, grid_w;
    double scale; /* of q.k, usually 1/sqrt(d) */
} att_attention_attrs;

typedef struct att_attention_summary_attrs {
    int32_t prefix;
} att_attention_summary_attrs;

typedef struct att_patch_attrs {
    int32_t patch;
    int32_t height, width, channels; /* of the image: the backward pass needs them */
} att_patch_attrs;

/* slice_tokens: rows [first, first + count) of [N, C]; its gradient pads back to `total`. */
typedef struct att_slice_attrs {
    int32_t first, count, total;
} att_slice_attrs;

/* mean over rows [first, N): out [C]; its gradient spreads over `total`, which are rows of a map that is `width` wide,
 * or tokens where that is 0. */
typedef struct att_mean_attrs {
    int32_t first, total, width;
} att_mean_attrs;

/* dropout, drop_path: rate, and the stream that makes draws of different nodes differ; a gradient node has the stream
 * of its forward node. */
typedef struct att_drop_attrs {
    double rate;
    uint64_t stream;
} att_drop_attrs;

typedef struct att_cross_entropy_attrs {
    double smoothing;
} att_cross_entropy_attrs;

/* share is not read where the op has a scale vector. */
typedef struct att_broadcast_attrs {
    double keep, share;
} att_broadcast_attrs;

/* sum_samples: how many of the last axes stay. */
typedef struct att_sum_attrs {
    int32_t axes;
} att_sum_attrs;

/* add: how many of the last axes a shared operand spans; 0 where both are sample values. */
typedef struct att_add_attrs {
    int32_t axes;
    att_activation activation; /* of the sum */
} att_add_attrs;

/* batch_norm, and what it is in training: normalize and its gradients read eps and activation. */
typedef struct att_batch_norm_attrs {
    double eps, momentum;
    bool frozen;
    att_activation activation;
} att_batch_norm_attrs;

/* merge_moments, running_stats, batch_mean: rows of each sample. */
typedef struct att_moments_attrs {
    int64_t rows;
    double momentum; /* running_stats: the share of what is new */
} att_moments_attrs;

/* gram_norm and its gradient: rows of each sample. */
typedef struct att_gram_norm_attrs {
    double eps;
    int64_t rows;
} att_gram_norm_attrs;

typedef struct att_style_attrs {
    double eps;
} att_style_attrs;

/* gate, affine. activation: of the product, or of the sum with the residual where there is one. */
typedef struct att_gate_attrs {
    att_activation activation;
} att_gate_attrs;

/* flipped: the weight from its last element to its first, which is the gradient's way. */
typedef struct att_channel_conv_attrs {
    bool flipped;
} att_channel_conv_attrs;

enum { ATT_DCT_GROUPS = 32 };

/* `count` groups of channels with their frequencies, on a grid of height x width; the map is map_height x map_width. */
typedef struct att_dct_attrs {
    int32_t count, height, width, map_height, map_width;
    uint16_t rows[ATT_DCT_GROUPS], columns[ATT_DCT_GROUPS];
} att_dct_attrs;

/* residual_norms: what is taken from every token, the median of each channel or the mean. */
typedef struct att_centre_attrs {
    bool median;
} att_centre_attrs;

/* sgd, adamw: whether weight decay applies to the range. */
typedef struct att_update_attrs {
    bool decay;
} att_update_attrs;

/* conv2d and its gradients. height, width: of x, for the gradient of x; kernel_h, kernel_w: for that of the weight.
 * eps: of a batch norm that was absorbed. */
typedef struct att_conv_attrs {
    int32_t stride, padding, dilation, groups;
    int32_t height, width, kernel_h, kernel_w;
    att_activation activation; /* none or ReLU */
    double eps;
} att_conv_attrs;

/* max_pool, avg_pool. height, width: of x, for the gradient. */
typedef struct att_pool_attrs {
    int32_t kernel, stride, padding;
    int32_t height, width;
    bool ceil, count_padding;
} att_pool_attrs;

/* adaptive_avg_pool: to out_h x out_w; height, width: of x, for the gradient. */
typedef struct att_adaptive_attrs {
    int32_t out_h, out_w;
    int32_t height, width;
} att_adaptive_attrs;

/* shortcut_pad: channels in all, of which `before` are zeros in front; height, width, from: x [height, width, from],
 * for the gradient. */
typedef struct att_shortcut_attrs {
    int32_t stride, channels, before;
    int32_t height, width, from;
} att_shortcut_attrs;

typedef union att_attrs {
    att_linear_attrs linear;
    att_layer_norm_attrs layer_norm;
    att_attention_attrs attention;
    att_attention_summary_attrs attention_summary;
    att_patch_attrs patch;
    att_slice_attrs slice;
    att_mean_attrs mean;
    att_drop_attrs drop;
    att_cross_entropy_attrs cross_entropy;
    att_broadcast_attrs broadcast;
    att_sum_attrs sum;
    att_add_attrs add;
    att_batch_norm_attrs batch_norm;
    att_moments_attrs moments;
    att_gram_norm_attrs gram_norm;
    att_style_attrs style;
    att_gate_attrs gate;
    att_channel_conv_attrs channel_conv;
    att_dct_attrs dct;
    att_update_attrs update;
    att_conv_attrs conv;
    att_pool_attrs pool;
    att_adaptive_attrs adaptive;
    att_shortcut_attrs shortcut;
    att_centre_attrs centre;
} att_attrs;

#endif
