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

typedef enum att_activation { ATT_ACT_NONE, ATT_ACT_GELU } att_activation;

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

/* mean over tokens [first, N): out [C]; its gradient spreads over `total`. */
typedef struct att_mean_attrs {
    int32_t first, total;
} att_mean_attrs;

/* dropout, drop_path: rate, and the stream that makes draws of different nodes differ; a gradient node has the stream
 * of its forward node. */
typedef struct att_drop_attrs {
    double rate;
    uint32_t stream;
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

/* residual_norms: what is taken from every token, the median of each channel or the mean. */
typedef struct att_centre_attrs {
    bool median;
} att_centre_attrs;

/* sgd, adamw: whether weight decay applies to the range. */
typedef struct att_update_attrs {
    bool decay;
} att_update_attrs;

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
    att_update_attrs update;
    att_centre_attrs centre;
} att_attrs;

#endif
