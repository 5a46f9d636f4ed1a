/* attscope/ops.h - the operations a graph is built from.
 *
 * Each returns the value it makes, ATT_NONE after a failure (see attscope/graph.h: building is sticky). Shapes are per
 * sample; "rows" are all axes but the last. Gradients of every operation follow from its formula; those that are not
 * plain are stated.
 */
#ifndef ATTSCOPE_OPS_H
#define ATTSCOPE_OPS_H

#include <attscope/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = x W' + b. x [.., I]; weight [O, I] shared (axes after the first count together as I); bias [O] shared, or
 * ATT_NONE. y [.., O]. */
ATT_API att_value att_linear(att_graph *graph, att_value x, att_value weight, att_value bias);

/* y = (x - mean) / sqrt(var + eps) * gamma + beta, mean and (biased) variance over the last axis of x [.., C]; gamma,
 * beta [C] shared. (Ba, Kiros, Hinton 2016) */
ATT_API att_value att_layer_norm(att_graph *graph, att_value x, att_value gamma, att_value beta, double eps);

/* y = x Phi(x) = x/2 (1 + erf(x / sqrt 2)), the exact form. (Hendrycks, Gimpel 2016) */
ATT_API att_value att_gelu(att_graph *graph, att_value x);

/* y = a + b: equal shapes, or b shared with the shape of a's last axes, leading ones aside (position embedding
 * [1, N, C], bias [C]). */
ATT_API att_value att_add(att_graph *graph, att_value a, att_value b);

/* y = x (.) gamma, gamma [C] shared over the last axis: LayerScale. (Touvron et al., ICCV 2021) */
ATT_API att_value att_scale(att_graph *graph, att_value x, att_value gamma);

/* Cuts an image [height, width, channels] into P x P patches: y [N, channels P P], N row by row; a patch's elements are
 * ordered (channel, row, column), as a convolution's weight [C, channels, P, P]. height and width must be multiples of
 * P. */
ATT_API att_value att_patchify(att_graph *graph, att_value image, int patch);

/* Puts shared tokens, T C elements of any shape, before x [N, C]: y [T + N, C]. */
ATT_API att_value att_prepend_tokens(att_graph *graph, att_value tokens, att_value x);
/* Rows [first, first + count) of x [N, C]: y [count, C]. */
ATT_API att_value att_slice_tokens(att_graph *graph, att_value x, int first, int count);
/* Mean over tokens first..N-1 of x [N, C]: y [C]. */
ATT_API att_value att_token_mean(att_graph *graph, att_value x, int first);
/* Softmax attention, all heads, never storing a map: o_i = sum_j a_ij v_j, a_i = softmax_j(scale q_i . k_j).
 * qkv [N, 3 H d] as one linear layer makes it: q, k, v in this order, heads in order within each. o [N, H d].
 * grid: tokens prefix..N-1 are a grid_h x grid_w grid, row by row (for the expected distance; 0 x 0: no grid).
 * (Vaswani et al. 2017; computed in tiles with a running maximum and sum, Milakov and Gimelshein 2018) */
typedef struct att_attention_options {
    int heads;
    double scale; /* 0: 1 / sqrt(d) */
    int prefix, grid_h, grid_w;
} att_attention_options;
ATT_API att_value att_attention(att_graph *graph, att_value qkv, const att_attention_options *options);

/* What an attention node can tell besides its output, asked for by the node's scope, '*' and '?' allowed
 * ("blocks.*.attn"). Adds a probe "<scope>.stats" [H, N, ATT_ATTENTION_STATS], "<scope>.map" [H, N, N] or
 * "<scope>.summary" [H, ATT_ATTENTION_SUMMARY] (f32 or f64 as the graph) to the graph for each node that matches;
 * ERR_NOT_FOUND where none does. Asked twice, it is there once.
 * Statistics of a query's row a, in this order: entropy -sum a ln a (nats); sum a^2; sum a^3; expected distance
 * sum_{j != i} a_j |p_i - p_j| over grid tokens, in grid steps (0 for prefix queries); mass on prefix tokens; mass on
 * itself; maximum; its first index. */
enum { ATT_ATTENTION_STATS = 8 };
ATT_API att_status att_ask_attention_stats(att_graph *graph, const char *pattern);
ATT_API att_status att_ask_attention_map(att_graph *graph, const char *pattern);
/* Means over queries, as att_attention_summary() makes them. */
ATT_API att_status att_ask_attention_summary(att_graph *graph, const char *pattern);

/* --- for probes (attscope/graph.h): nothing comes of these but what they tell; none has a gradient ---------------- */

/* Means over queries of an attention's statistics [H, N, ATT_ATTENTION_STATS]: [H, ATT_ATTENTION_SUMMARY]. In this
 * order: entropy; nuclear norm 1 - sum a^2 and Frobenius norm sqrt(sum a^2 - 2 sum a^3 + (sum a^2)^2) of the softmax's
 * Jacobian diag(a) - a a'; expected distance; the same divided by the mass on other grid tokens (a row with less than
 * 1e-6 of it counts as 0); mass on prefix tokens; mass on itself; maximum. Distances are means over tokens prefix..N-1,
 * the rest over all. */
enum { ATT_ATTENTION_SUMMARY = 8 };
ATT_API att_value att_attention_summary(att_graph *graph, att_value stats, int prefix);

/* What a residual step did: |before|, |after - before|, |branch|, Euclidean over all elements of a sample. branch may
 * be ATT_NONE where nothing but rounding tells it from after - before, which then stands for it. [ATT_STEP_NORMS]. */
enum { ATT_STEP_NORMS = 3 };
ATT_API att_value att_step_norms(att_graph *graph, att_value before, att_value after, att_value branch);

/* Of tokens X [N, C]: |X|_1 (largest absolute column sum), |X|_inf (largest absolute row sum), |X|_F, and the same of
 * X - 1 m', m the mean token, or with `median` the median of each channel (of an even count the mean of the two in the
 * middle). [ATT_RESIDUAL_NORMS]. (Dong et al., ICML 2021) */
enum { ATT_RESIDUAL_NORMS = 6 };
ATT_API att_value att_residual_norms(att_graph *graph, att_value x, bool median);

/* Context broadcasting: y = keep x + share mean over tokens of x [N, C]. CB is keep = share = 1/2. With `scale` [C]
 * (shared, not ATT_NONE) share is that vector: CB_S is keep = 1. (Hyeon-Woo et al., ICCV 2023) */
ATT_API att_value att_context_broadcast(att_graph *graph, att_value x, double keep, double share, att_value scale);

/* Training only; inference plans leave them out. Each element (dropout) or each sample (drop path) is zeroed with
 * probability `rate` and otherwise divided by 1 - rate. 0 <= rate < 1; rate 0 adds no node. */
ATT_API att_value att_dropout(att_graph *graph, att_value x, double rate);
ATT_API att_value att_drop_path(att_graph *graph, att_value x, double rate);

/* loss = -sum_c t_c ln softmax(logits)_c, a scalar per sample. target: I32 scalar, the class, smoothed to
 * t = (1 - smoothing) onehot + smoothing / C; or [C] of the graph's type: t itself (smoothing must be 0). A class
 * outside [0, C) makes the loss NaN. */
ATT_API att_value att_cross_entropy(att_graph *graph, att_value logits, att_value target, double smoothing);

#ifdef __cplusplus
}
#endif
#endif
