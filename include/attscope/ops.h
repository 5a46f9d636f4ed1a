/* attscope/ops.h - the operations a graph is built from.
 *
 * Each returns the value it makes, ATT_NONE after a failure (see attscope/graph.h: building is sticky). Shapes are per
 * sample; "rows" are all axes but the last. Gradients of every operation follow from its formula; those that are not
 * plain are stated.
 *
 * Where all operands are shared, most operations make a derived value (attscope/graph.h). Dropout, drop path, batch
 * norm and the target of cross entropy need sample values. A gate and what it multiplies are of one kind, sample or
 * shared, and so are both operands of a concatenation.
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

/* y = x / sqrt(mean(x^2) + eps) * gamma, the mean over the last axis of x [.., C]; gamma [C] shared. As PyTorch's
 * rms_norm, which takes the graph type's machine epsilon for eps where it is given none; here it must be positive.
 * (Zhang, Sennrich 2019) */
ATT_API att_value att_rms_norm(att_graph *graph, att_value x, att_value gamma, double eps);

/* y = (x - mean) / sqrt(var + eps) * gamma + beta, mean and (biased) variance over all rows of x [.., C] and the C /
 * groups channels of a group, of each sample by itself; channel c is in group floor(c groups / C). gamma, beta [C]
 * shared, or ATT_NONE for 1 and 0. As torch.nn.GroupNorm, whose maps lie channels first. With one group this is the
 * norm of PoolFormer and of GroupNorm(1, C) elsewhere; with groups = C it is instance norm. eps must be positive;
 * PyTorch takes 1e-5. Errors: ERR_ARGUMENT where groups does not divide C. (Wu, He, ECCV 2018) */
ATT_API att_value att_group_norm(att_graph *graph, att_value x, int groups, att_value gamma, att_value beta,
                                 double eps);

/* y = x / max(|x|, eps), |x| the Euclidean norm over the last axis of x [.., C]. eps must be positive; PyTorch's
 * normalize takes 1e-12. The gradient treats the divisor of rows with |x| <= eps as the constant eps. */
ATT_API att_value att_l2_norm(att_graph *graph, att_value x, double eps);

/* y = exp(x - max(x)) / sum(exp(x - max(x))), maximum and sum over the last axis of x [.., C]. Elements of minus
 * infinity, as masks set them, become 0 and have the gradient 0. As in PyTorch, a row becomes NaN where all its
 * elements are minus infinity, where one is plus infinity, or where one is NaN. */
ATT_API att_value att_softmax(att_graph *graph, att_value x);

/* y = x Phi(x) = x/2 (1 + erf(x / sqrt 2)), the exact form. (Hendrycks, Gimpel 2016) */
ATT_API att_value att_gelu(att_graph *graph, att_value x);

/* y = x / (1 + exp(-x)), also called swish. (Elfwing, Uchibe, Doya 2018) */
ATT_API att_value att_silu(att_graph *graph, att_value x);

/* y = tanh(x), elementwise. */
ATT_API att_value att_tanh(att_graph *graph, att_value x);

/* y = a + b: equal shapes, or b shared with the shape of a's last axes, leading ones aside (position embedding
 * [1, N, C], bias [C]). */
ATT_API att_value att_add(att_graph *graph, att_value a, att_value b);

/* y = x (.) gamma, gamma [C] shared over the last axis: LayerScale. (Touvron et al., ICCV 2021) */
ATT_API att_value att_scale(att_graph *graph, att_value x, att_value gamma);

/* Cuts an image [height, width, channels] into patches of P x Q pixels, P = patch_h, Q = patch_w: y [N, channels P Q],
 * N row by row; a patch's elements are ordered (channel, row, column), as a convolution's weight [C, channels, P, Q].
 * height must be a multiple of P, width of Q. */
ATT_API att_value att_patchify(att_graph *graph, att_value image, int patch_h, int patch_w);

/* Puts shared tokens, T C elements of any shape, before x [N, C]: y [T + N, C]. */
ATT_API att_value att_prepend_tokens(att_graph *graph, att_value tokens, att_value x);
/* Rows [first, first + count) of x [N, C]: y [count, C]. */
ATT_API att_value att_slice_tokens(att_graph *graph, att_value x, int first, int count);
/* Mean over tokens first..N-1 of x [N, C]: y [C]. */
ATT_API att_value att_token_mean(att_graph *graph, att_value x, int first);
/* Softmax attention, all heads, never storing a map: o_i = sum_j a_ij v_j, a_i = softmax_j(scale q_i . k_j).
 * qkv [N, 3 H d] as one linear layer makes it: q, k, v in this order, heads in order within each. o [N, H d].
 * Tokens prefix..N-1 are a grid of grid_h rows and grid_w columns, row by row (0 x 0: no grid). The token in row y and
 * column x lies at p = (y step_h, x step_w). Only the expected distance reads the grid and its steps.
 * (Vaswani et al. 2017; computed in tiles with a running maximum and sum, Milakov and Gimelshein 2018) */
typedef struct att_attention_options {
    int heads;
    double scale; /* 0: 1 / sqrt(d) */
    int prefix, grid_h, grid_w;
    double step_h, step_w; /* from row to row and from column to column, the height and width of a patch; 0: 1 */
} att_attention_options;
ATT_API att_value att_attention(att_graph *graph, att_value qkv, const att_attention_options *options);

/* What an attention node can tell besides its output, asked for by the node's scope, '*' and '?' allowed
 * ("blocks.*.attn"). Adds a probe "<scope>.stats" [H, N, ATT_ATTENTION_STATS], "<scope>.map" [H, N, N] or
 * "<scope>.summary" [H, ATT_ATTENTION_SUMMARY] (f32 or f64 as the graph) to the graph for each node that matches;
 * ERR_NOT_FOUND where none does. Asked twice, it is there once.
 * Statistics of a query's row a, in this order: entropy -sum a ln a (nats); sum a^2; sum a^3; expected distance
 * sum_{j != i} a_j |p_i - p_j| over grid tokens, in the unit of step_h and step_w (0 for prefix queries); mass on
 * prefix tokens; mass on itself; maximum; its first index. */
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

/* --- feature maps, channels last: x [h, w, C] -------------------------------------------------------------------- */

/* y[i, j, o] = bias[o] + sum over (u, v, c) of x[stride i + dilation u - padding, stride j + dilation v - padding, c]
 * weight[o, c, u, v], zero outside x. weight [O, C / groups, kernel_h, kernel_w] shared; channel o sees the C / groups
 * channels of its group only; bias [O] shared or ATT_NONE. y [oh, ow, O], oh = (h + 2 padding - dilation (kernel_h -
 * 1) - 1) / stride + 1, rounded down. Zero options stand for stride, dilation and groups 1. */
typedef struct att_conv_options {
    int stride, padding, dilation, groups;
} att_conv_options;
ATT_API att_value att_conv2d(att_graph *graph, att_value x, att_value weight, att_value bias,
                             const att_conv_options *options);

/* y = (x - m) / sqrt(v + eps) * gamma + beta over x [.., C]; gamma, beta [C] shared. Inference: m, v are the buffers
 * mean, variance [C]. Training: the mean and the biased variance over all rows of all samples of a run; the buffers
 * become (1 - momentum) old + momentum new, with the unbiased variance; a run with one row in all is ERR_ARGUMENT.
 * frozen: as in inference in training, too. (Ioffe, Szegedy 2015) */
typedef struct att_batch_norm_options {
    double eps, momentum; /* 0: 1e-5, 0.1 */
    bool frozen;
} att_batch_norm_options;
ATT_API att_value att_batch_norm(att_graph *graph, att_value x, att_value gamma, att_value beta, att_value mean,
                                 att_value variance, const att_batch_norm_options *options);

/* max(x, 0); its gradient at 0 is 0. 1 / (1 + exp(-x)). */
ATT_API att_value att_relu(att_graph *graph, att_value x);
ATT_API att_value att_sigmoid(att_graph *graph, att_value x);

/* Windows of kernel x kernel. Maximum: padding counts as minus infinity; of equal elements the first gets the gradient.
 * Average: over the elements inside x where count_padding is false, else over those inside x and its padding. ceil:
 * sizes are rounded up, but no window begins in the padding behind x. padding at most kernel / 2. As PyTorch's
 * MaxPool2d and AvgPool2d. stride 0: kernel. */
typedef struct att_pool_options {
    int kernel, stride, padding;
    bool ceil, count_padding;
} att_pool_options;
ATT_API att_value att_max_pool(att_graph *graph, att_value x, const att_pool_options *options);
ATT_API att_value att_avg_pool(att_graph *graph, att_value x, const att_pool_options *options);
/* y [height, width, C]: means over rows floor(i h / height) .. ceil((i + 1) h / height) - 1, columns alike. */
ATT_API att_value att_adaptive_avg_pool(att_graph *graph, att_value x, int height, int width);
/* Option-A shortcut: y[i, j] = x[stride i, stride j] between (channels - C) / 2 zero channels before and the rest
 * behind: y [ceil(h / stride), ceil(w / stride), channels]. (He et al. 2016, as CIFAR networks have it) */
ATT_API att_value att_shortcut_pad(att_graph *graph, att_value x, int stride, int channels);

/* Over all rows of x [.., C], each channel by itself: the mean [C]; the maximum [C] (of equal rows the first gets the
 * gradient); mean and standard deviation sqrt(unbiased variance + eps) [C, 2]. */
ATT_API att_value att_global_mean(att_graph *graph, att_value x);
ATT_API att_value att_global_max(att_graph *graph, att_value x);
ATT_API att_value att_global_style(att_graph *graph, att_value x, double eps);
/* Mean and maximum over the channels of x [.., C]: [.., 2]. */
ATT_API att_value att_channel_pool(att_graph *graph, att_value x);
/* The channels of x [h, w, C] in `count` groups in order, each summed with its own cosine basis, over the map brought
 * to H x W by adaptive average pooling where it has another size: y[c] = sum over (i, j) of x[i, j, c] B(i, rows[g], H)
 * B(j, columns[g], W), B(i, k, L) = cos(pi k (i + 1/2) / L) / sqrt L, times sqrt 2 for k > 0. (Qin et al., ICCV 2021)
 */
typedef struct att_dct_pool_options {
    int count;                 /* at most 32; divides C */
    int rows[32], columns[32]; /* k of each group */
    int height, width;         /* H, W */
} att_dct_pool_options;
ATT_API att_value att_dct_pool(att_graph *graph, att_value x, const att_dct_pool_options *options);

/* y = x (.) gate: x [.., C] with gate [C] of the same sample (a step size per channel); x [.., C] with gate [.., 1]
 * (one per pixel). */
ATT_API att_value att_gate(att_graph *graph, att_value x, att_value gate);
ATT_API att_value att_pixel_gate(att_graph *graph, att_value x, att_value gate);
/* Along the channels: y[c] = sum_j x[c + j - (k - 1) / 2] weight[j], zero outside; x, y [C]; weight [1, 1, k], k odd.
 */
ATT_API att_value att_channel_conv(att_graph *graph, att_value x, att_value weight);
/* y[c] = sum_k x[c, k] weight[c, k]: x, weight [C, K]; y [C]. */
ATT_API att_value att_channel_linear(att_graph *graph, att_value x, att_value weight);
/* a [.., A] and b [.., B] side by side: [.., A + B]. */
ATT_API att_value att_concat(att_graph *graph, att_value a, att_value b);

/* --- axes, rows and places: x has any shape unless said otherwise ------------------------------------------------ */

/* The elements of x with its axes in another order: axis i of y is axis axes[i] of x. `axes` holds `count` numbers, as
 * many as x has axes: each of 0 .. count - 1 once. As torch.permute. Errors: ERR_ARGUMENT for any other list. */
ATT_API att_value att_transpose(att_graph *graph, att_value x, const int *axes, int count);
/* The elements of x, in their order, under another shape of as many elements, else ERR_MISMATCH. They are copied. */
ATT_API att_value att_reshape(att_graph *graph, att_value x, att_shape shape);

/* Products of matrices, one for each index of the leading axes, which a and b share: y = scale a b with a [.., M, K],
 * b [.., K, N], or with `transposed` y = scale a b' with b [.., N, K]. y [.., M, N]. */
ATT_API att_value att_matmul(att_graph *graph, att_value a, att_value b, bool transposed, double scale);

/* A map x [H, W, C] cut into windows of height x width pixels: y [H W / (height width), height width, C], windows row
 * by row and the pixels of each row by row. The map is first shifted cyclically: pixel (i, j) of window (m, n) is x[(m
 * height + i + shift_y) mod H, (n width + j + shift_x) mod W]. As Swin's torch.roll by (-shift_y, -shift_x) and
 * window_partition. height divides H, width divides W; 0 <= shift_y < H, 0 <= shift_x < W. (Liu et al., ICCV 2021) */
typedef struct att_window_options {
    int height, width;
    int shift_y, shift_x;
} att_window_options;
ATT_API att_value att_windows(att_graph *graph, att_value x, const att_window_options *options);
/* The inverse: windows [H W / (height width), height width, C] become the map y [H, W, C]. height, width: H and W. As
 * window_reverse and torch.roll by (shift_y, shift_x). */
ATT_API att_value att_windows_back(att_graph *graph, att_value windows, int height, int width,
                                   const att_window_options *options);
/* Each 2 x 2 pixels of a map x [H, W, C] become one: y [ceil(H / 2), ceil(W / 2), 4 C], y[i, j] = x[2i, 2j], x[2i + 1,
 * 2j], x[2i, 2j + 1], x[2i + 1, 2j + 1] one behind the other, zeros beyond the map. The order of timm's PatchMerging.
 */
ATT_API att_value att_merge_patches(att_graph *graph, att_value x);

/* Rows of a shared table [V, C]: y[.., c] = table[indices[..], c]. indices [..]: a sample value, or a constant, of
 * type I32 with at most ATT_MAX_RANK - 1 axes; y [.., C]. An index outside [0, V) makes its row NaN and adds nothing to
 * the table's gradient.
 */
ATT_API att_value att_embed(att_graph *graph, att_value table, att_value indices);

/* A map x [H, W, C] brought to y [height, width, C] by bilinear interpolation. Row i of y lies at row s = max((i + 1/2)
 * H / height - 1/2, 0) of x: with r = floor(s) it is (1 - s + r) of row r and s - r of row min(r + 1, H - 1); columns
 * alike. As torch.nn.functional.interpolate(size=(height, width), mode="bilinear", align_corners=False), without
 * antialiasing where y is smaller. */
ATT_API att_value att_upsample_bilinear(att_graph *graph, att_value x, int height, int width);

#ifdef __cplusplus
}
#endif
#endif
