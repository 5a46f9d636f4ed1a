/* attscope/ops.h - the operations that graphs are built from.
 *
 * Each function adds a node and returns its value, ATT_NONE after a failure (errors are sticky: attscope/graph.h). A
 * failure is ERR_ARGUMENT for an option outside its range, and ERR_MISMATCH for values whose shapes, types or kinds do
 * not fit. Shapes are per sample. [.., C] is any shape whose last axis is C; "rows" are the elements of all axes but
 * the last. Gradients follow from the formulas; a gradient is described only where its formula leaves a choice.
 *
 * Most operations accept shared operands: if all operands are shared, the result is a derived value (attscope/graph.h).
 * Drop path, batch norm and the targets of cross entropies need sample values. A gate and the value that it
 * multiplies must be of one kind, sample or shared; so must both operands of a concatenation.
 */
#ifndef ATTSCOPE_OPS_H
#define ATTSCOPE_OPS_H

#include <attscope/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = x W' + b. x [.., I]; weight [O, I] shared (further axes count as part of I, as in a convolution's weight); bias
 * [O] shared, or ATT_NONE. y [.., O]. */
ATT_API att_value att_linear(att_graph *graph, att_value x, att_value weight, att_value bias);

/* y = (x - mean) / sqrt(var + eps) * gamma + beta, mean and (biased) variance over the last axis of x [.., C]; gamma,
 * beta [C] shared. (Ba, Kiros, Hinton 2016) */
ATT_API att_value att_layer_norm(att_graph *graph, att_value x, att_value gamma, att_value beta, double eps);

/* y = x / sqrt(mean(x^2) + eps) * gamma, with the mean over the last axis of x [.., C]; gamma [C] shared. As PyTorch's
 * rms_norm, but eps must be given and positive; PyTorch's default is the type's machine epsilon. (Zhang, Sennrich 2019)
 */
ATT_API att_value att_rms_norm(att_graph *graph, att_value x, att_value gamma, double eps);

/* A norm whose statistics are those of another pass, a linear map of x: y = (x - mean(x)) s gamma, where gamma and s, 1
 * / sqrt(var + eps) of each row, are those of `norm`, the result of att_layer_norm(). If `norm` is that of
 * att_rms_norm(), s = 1 / sqrt(mean(x^2) + eps) and mean(x) is not subtracted. x [.., C] has as many rows as the input
 * of `norm`. shift: adds the beta of `norm`, if it has one. For probes: it has no gradient. Errors: ERR_ARGUMENT for
 * another `norm`. */
ATT_API att_value att_frozen_norm(att_graph *graph, att_value x, att_value norm, bool shift);

/* y = (x - mean) / sqrt(var + eps) * gamma + beta. Mean and (biased) variance are taken of each sample and group, over
 * all rows of x [.., C] and the C / groups channels of the group; channel c belongs to group floor(c groups / C).
 * gamma, beta [C] shared, or ATT_NONE for 1 and 0. As torch.nn.GroupNorm, but channels last. One group gives
 * GroupNorm(1, C), the norm of PoolFormer; groups = C gives instance norm. eps must be positive (PyTorch's default is
 * 1e-5). Errors: ERR_ARGUMENT if groups does not divide C. (Wu, He, ECCV 2018) */
ATT_API att_value att_group_norm(att_graph *graph, att_value x, int groups, att_value gamma, att_value beta,
                                 double eps);

/* y = x / max(|x|, eps), |x| the Euclidean norm over the last axis of x [.., C]. eps must be positive (the default of
 * PyTorch's normalize is 1e-12). In rows with |x| <= eps the gradient takes the divisor as constant. */
ATT_API att_value att_l2_norm(att_graph *graph, att_value x, double eps);

/* y = exp(x - max(x)) / sum(exp(x - max(x))), maximum and sum over the last axis of x [.., C]. Elements of minus
 * infinity, such as masked ones, give 0 and have gradient 0. As in PyTorch, a row becomes NaN if all its elements are
 * minus infinity, or if one is plus infinity or NaN. */
ATT_API att_value att_softmax(att_graph *graph, att_value x);

/* y = x Phi(x) = x/2 (1 + erf(x / sqrt 2)), the exact form. (Hendrycks, Gimpel 2016) */
ATT_API att_value att_gelu(att_graph *graph, att_value x);

/* y = x / (1 + exp(-x)), also called swish. (Elfwing, Uchibe, Doya 2018) */
ATT_API att_value att_silu(att_graph *graph, att_value x);

/* Approximations of the GELU: y = x / (1 + exp(-1.702 x)), as in CLIP; y = x/2 (1 + tanh(sqrt(2 / pi) (x + 0.044715
 * x^3))), PyTorch's approximate="tanh". (Hendrycks, Gimpel 2016) */
ATT_API att_value att_quick_gelu(att_graph *graph, att_value x);
ATT_API att_value att_gelu_tanh(att_graph *graph, att_value x);

/* y = silu(a) (.) b, elementwise; a and b have the same shape. If b is ATT_NONE, a [.., 2 C] holds both operands side
 * by side: y [.., C] = silu(a[.., :C]) (.) a[.., C:]. (Shazeer 2020) */
ATT_API att_value att_swiglu(att_graph *graph, att_value a, att_value b);

/* y = tanh(x), elementwise; y = e^x. */
ATT_API att_value att_tanh(att_graph *graph, att_value x);
ATT_API att_value att_exp(att_graph *graph, att_value x);

/* y = a + b. Both have the same shape, or b is shared and has the shape of a's last axes (leading axes of size 1 are
 * allowed): position embedding [1, N, C], bias [C]. */
ATT_API att_value att_add(att_graph *graph, att_value a, att_value b);

/* y = a x + b z, elementwise, with numbers a and b; x and z have the same shape. z may be ATT_NONE: y = a x. Mixed
 * precision computes it in f32. */
ATT_API att_value att_combine(att_graph *graph, double a, att_value x, double b, att_value z);

/* y = x (.) gamma, elementwise with gamma [C] shared, broadcast over the rows of x [.., C]: LayerScale. (Touvron et
 * al., ICCV 2021) */
ATT_API att_value att_scale(att_graph *graph, att_value x, att_value gamma);

/* Divides an image [height, width, channels] into patches of P x Q pixels, P = patch_h, Q = patch_w: y [N, channels P
 * Q], N = floor(height / P) floor(width / Q), at least 1. Pixels below and to the right of the last whole patches are
 * left out, as by a convolution without padding. Patches are ordered row by row; the elements of a patch are ordered
 * (channel, row, column), as in a convolution's weight [C, channels, P, Q]. */
ATT_API att_value att_patchify(att_graph *graph, att_value image, int patch_h, int patch_w);

/* Prepends shared tokens to x [N, C]: y [T + N, C]. tokens: T C elements in any shape. */
ATT_API att_value att_prepend_tokens(att_graph *graph, att_value tokens, att_value x);
/* Tokens [first, first + count) of x [N, C]: y [count, C]. */
ATT_API att_value att_slice_tokens(att_graph *graph, att_value x, int first, int count);
/* Mean over the tokens first..N-1 of x [N, C]: y [C]. */
ATT_API att_value att_token_mean(att_graph *graph, att_value x, int first);
/* y [count, C]: factor x in every row; x [C] is a sample value. */
ATT_API att_value att_repeat_tokens(att_graph *graph, att_value x, int count, double factor);
/* Multi-head softmax attention: o_i = sum_j a_ij v_j, a_i = softmax_j(scale q_i . k_j + t_ij), for each of H heads. The
 * map a is never stored. q [N, H d], k [M, G d], v [M, U e] with the heads in order; o [N, H e]. Keys may have fewer
 * heads than queries, G, and values U: H is a multiple of G and of U, and H / G neighbouring heads share keys (grouped
 * queries; one value head shared by all). If several of them are the result of one linear layer, they are given as one
 * value: v ATT_NONE, k [M, G d + U e] holds k and v side by side; k ATT_NONE, q [N, (H + G) d] holds q and k; k and v
 * ATT_NONE, q [N, (H + G + U) d] holds q, k and v.
 *
 * If N = M, query i and key i are the same token. The tokens prefix..N-1 then form a grid of grid_h rows and grid_w
 * columns, row by row (0 x 0: no grid). The token in row y and column x has the position p = (y step_h, x step_w). Only
 * the expected distance uses the steps.
 *
 * Windows (Liu et al., ICCV 2021): if window_h > 0, the grid is rolled up by shift_h and left by shift_w and divided
 * into windows of window_h x window_w tokens, and a query attends to the tokens of its own window. Tokens that share a
 * window only because the grid was rolled get t_ij - 100. Windows must divide the grid, shifts be less than the window,
 * and there are no prefix tokens. causal: a query attends to keys 0..i only (N = M, no windows).
 *
 * The terms t_ij are all optional. All but keys need a grid. With windows, grid and places are those of the window. For
 * tokens at (y, x) and (y', x') of an h x w grid, head m:
 * - relative [S, H], shared: a number for each shift, relative[(y - y' + h - 1) (2w - 1) + x - x' + w - 1, m], S = (2h
 * - 1) (2w - 1). With prefix tokens S may be greater by 3: the last three rows are for a prefix token as query, as key,
 *   as both; without them prefix tokens have t = 0. The layout of relative_position_bias_table in Swin and BEiT. (Liu
 *   et al., ICCV 2021; Bao et al., ICLR 2022)
 * - rows [N, H h] and columns [N, H w], both or none, samples: numbers of a query i for each row and each column of
 *   keys, rows[i, m h + y'] + columns[i, m w + x']; 0 for keys that are prefix tokens. No windows. A term that depends
 *   on the query and, on each axis, on the shift. (Bello et al., ICCV 2019)
 * - row_shifts [2h - 1, H] and column_shifts [2w - 1, H], both or none, shared: row_shifts[y - y' + h - 1, m] +
 *   column_shifts[x - x' + w - 1, m]; 0 for prefix tokens. A term for each axis, such as those of
 *   att_isotropic_shifts().
 * - keys [M], a sample value: keys[j] for every query and head. Minus infinity excludes the key, such as one that pads
 *   a sample; the output and the statistics of a query without any key are 0, and so is its row of the map. No windows.
 *   No gradient: a training run in which keys depends on a parameter is refused (ERR_UNSUPPORTED).
 *
 * Scores without content: if q and k are ATT_NONE and v is given, the scores are the shared terms alone (relative,
 * row_shifts and column_shifts, of which some must be given). The map is then the same for all images: it is a derived
 * value, computed once, and a sample only costs the products of maps and values. If row_shifts and column_shifts are
 * the only terms and there are no prefix tokens, a map is the product of one map of rows [h, h] and one of columns [w,
 * w], each with its own softmax; the products take N (h + w) instead of N N multiplications per channel. Key heads and
 * scale have no meaning. Windows, causality and the terms of samples are refused. (Cordonnier et al., ICLR 2020)
 *
 * (Vaswani et al. 2017; computed in tiles with a running maximum and sum, Milakov and Gimelshein 2018; grouped queries:
 * Ainslie et al. 2023) */
typedef struct att_attention_terms {
    att_value relative, rows, columns; /* ATT_NONE: absent */
    att_value row_shifts, column_shifts;
    att_value keys;
} att_attention_terms;

/* Terms that are all absent. */
ATT_API att_attention_terms att_attention_no_terms(void);

typedef struct att_attention_options {
    int heads;                  /* H */
    int key_heads, value_heads; /* G, U; 0: H */
    double scale;               /* 0: 1 / sqrt(d) */
    int prefix, grid_h, grid_w;
    double step_h, step_w; /* distances between rows and between columns: height and width of a patch; 0: 1 */
    int window_h, window_w, shift_h, shift_w; /* 0: no windows */
    bool causal;
    const att_attention_terms *terms; /* NULL: none */
    /* Dropout of the map, in training only: a_ij becomes 0 with this probability, else a_ij / (1 - drop_rate). 0 <=
     * drop_rate < 1. Statistics and maps for probes are those without dropout. Without q and k the map of all images of
     * an update is dropped once; the product of maps of rows and columns is then computed as one map. */
    double drop_rate;
} att_attention_options;
ATT_API att_value att_attention(att_graph *graph, att_value q, att_value k, att_value v,
                                const att_attention_options *options);

/* Terms of scores that depend on the query and, for each axis, on the shift: for query i at (y, x) of the grid and each
 * head, rows_iy' = scale q_i . R_(y - y' + h - 1) and columns_ix' = scale q_i . C_(x - x' + w - 1). q [N, ..]: the
 * heads of the queries, `width` channels each, are its first columns; more columns, such as keys and values in the same
 * rows, are ignored. row_table R [2h - 1, a] and column_table C [2w - 1, b] are shared by the heads. Either a = b =
 * width, or the first a channels of a head belong to R and the other b to C. The terms of prefix tokens as queries are
 * 0. Sets terms->rows [N, H h] and terms->columns [N, H w], ATT_NONE after a failure, and no other member. (Shaw et
 * al., NAACL 2018; for each axis: Bello et al., ICCV 2019; with half of the channels for each axis: Cordonnier et al.,
 * ICLR 2020) */
typedef struct att_axis_terms_options {
    int heads, width, prefix, grid_h, grid_w;
    double scale; /* 0: 1 */
} att_axis_terms_options;
ATT_API void att_axis_terms(att_graph *graph, att_value q, att_value row_table, att_value column_table,
                            const att_axis_terms_options *options, att_attention_terms *terms);

/* Terms of a quadratic encoding: each of H heads prefers the keys around a center, the shift from query to key with the
 * highest score. For a grid of height x width and the shift d = (y' - y, x' - x) from the query at (y, x) to the key at
 * (y', x'), with learned centers c [H, 2], shared, rows first:
 * - att_isotropic_shifts(): -1/2 |s_m (d - c_m)|^2, sharpness s [H], shared. Sets terms->row_shifts and
 *   terms->column_shifts, the two squares of the sum, ATT_NONE after a failure, and no other member.
 * - att_quadratic_shifts(): -1/2 (d - c_m)' S_m S_m' (d - c_m), factors S [H, 2, 2], shared. Returns a table for
 *   att_attention_terms.relative, without numbers of prefix tokens.
 * An encoding by learned vectors for the shifts on each axis needs no function of its own: row_shifts and column_shifts
 * are att_linear() of the vectors [2h - 1, D] and [2w - 1, D] with weights [H, D]. (Cordonnier et al., ICLR 2020) */
ATT_API void att_isotropic_shifts(att_graph *graph, int height, int width, att_value centers, att_value sharpness,
                                  att_attention_terms *terms);
ATT_API att_value att_quadratic_shifts(att_graph *graph, int height, int width, att_value centers, att_value factors);

/* Attention without content on a map x [h, w, C], whose scores are sums of a score of the row and one of the column.
 * Each pair of one of R row scores and one of S column scores is a head, H = R S. The keys are the pixels of the map
 * and `ring` tokens that are zero on each side of both axes. The queries are a grid of h' x w' pixels, of which (y, x)
 * lies on the pixel (stride y, stride x). row_scores [R, h', h + 2 ring] and column_scores [S, w', w + 2 ring] are
 * shared; the softmax of each row gives the factors of the map. y [h', w', H C]: all heads read all channels as values.
 * A token has its channels in the order (group, row score, column score, channel of the group), as a convolution of 1 x
 * 1 with `groups` groups reads them. Keys whose factors are 0 before the first and after the last other one of a query
 * are not read.
 *
 * A convolution of K x K is such an attention with K row and K column scores, a center for each row and column of the
 * kernel, and with the kernel's C x O matrices as projections of the heads. (Cordonnier et al., ICLR 2020) */
typedef struct att_pair_attention_options {
    int ring;
    int stride, groups;    /* 0: 1 */
    double step_h, step_w; /* distances between rows and between columns of the map; 0: 1 */
} att_pair_attention_options;
ATT_API att_value att_pair_attention(att_graph *graph, att_value x, att_value row_scores, att_value column_scores,
                                     const att_pair_attention_options *options);

/* Scores of a quadratic encoding on one axis, for att_pair_attention(): y [K, queries, keys + 2 ring] = -1/2 (s_k (d -
 * c_k))^2, where d = j - ring - stride i is the shift from query i to key j, with centers c [K] and sharpness s [K],
 * shared. With alpha = s^2 / 2 this is -alpha (d - c)^2. */
ATT_API att_value att_axis_scores(att_graph *graph, int queries, int keys, int ring, int stride, att_value centers,
                                  att_value sharpness);

/* y [H, N, N]: a score for each pair of tokens, y[m, i, j] = the number in `table` [S, H] or [S + 3, H] of query i, key
 * j and head m, as att_attention_terms.relative has it, with the same tokens and grid; 0 for prefix tokens if the table
 * has none of their numbers. N = prefix + height width. */
ATT_API att_value att_shift_scores(att_graph *graph, att_value table, int prefix, int height, int width);

/* Add probes to the attention nodes whose scope matches one of the patterns in `pattern`, separated by commas ('*' and
 * '?' allowed: "blocks.*.attn"):
 * "<scope>.stats" [H, N, ATT_ATTENTION_STATS], "<scope>.map" [H, N, M] or "<scope>.summary" [H, ATT_ATTENTION_SUMMARY],
 * in the graph's type. With windows a map is [H, N, window_h window_w]: the keys of the query's window, row by row. A
 * probe that exists already is not added again. Scores without content have the same probes, computed once for all
 * samples. The keys of att_pair_attention(), M = (h + 2 ring) (w + 2 ring), include the ring; the query's own key is
 * the pixel on which it lies. Errors: ERR_NOT_FOUND if no node matches.
 * Statistics of a query i with the row a = a_i of the map, in this order: entropy -sum a ln a (nats); sums of a, a^2
 * and a^3 over all keys except the first that has the largest a (they keep their digits in a sharp row); expected
 * distance sum_{j != i} a_j |p_i - p_j| over the tokens of the grid, in the unit of step_h and step_w (0 if the query
 * is a prefix token); sum of a over the prefix tokens; a_ii (0 if N differs from M); the largest a_j; the first j that
 * has it; sums over the grid's tokens j of a_j y and a_j x, with the shift (y, x) from i to j in rows and columns of
 * the grid, or of the window, and of a_j (y - m)^2, a_j (x - n)^2 and a_j (y - m) (x - n), with the row's own mean
 * shift (m, n) = sum a_j (y, x) / sum a_j (0 if the query is a prefix token). */
enum { ATT_ATTENTION_STATS = 14 };
ATT_API att_status att_graph_probe_attention_stats(att_graph *graph, const char *pattern);
ATT_API att_status att_graph_probe_attention_map(att_graph *graph, const char *pattern);
/* Means of the statistics over the queries, see att_attention_summary(). */
ATT_API att_status att_graph_probe_attention_summary(att_graph *graph, const char *pattern);

/* --- for probes (attscope/graph.h): these operations have no gradient -------------------------------------------- */

/* Means over the queries of an attention's statistics [H, N, ATT_ATTENTION_STATS]: y [H, ATT_ATTENTION_SUMMARY]. In
 * this order: entropy; nuclear norm 1 - sum a^2 and Frobenius norm sqrt(sum a^2 - 2 sum a^3 + (sum a^2)^2) of the
 * softmax's Jacobian diag(a) - a a'; expected distance; expected distance divided by the weight on other tokens of the
 * grid (0 for a row where that weight is less than 1e-6); weight on prefix tokens; weight on the query itself; largest
 * weight; the five moments of the shift, each divided by the weight on the grid (0 for a row where that weight is less
 * than 1e-6): the mean shift (m, n) of a row, and variances and covariance about it; then the variances of m and of n,
 * and their covariance, over rows. The two distances and the figures of shifts are over the tokens prefix..N-1, all
 * others over all tokens. */
enum { ATT_ATTENTION_SUMMARY = 16 };
ATT_API att_value att_attention_summary(att_graph *graph, att_value stats, int prefix);

/* Figures of a row a of an attention map, whose weights add up to 1. A weight below 0 counts as 0. */
typedef enum att_map_statistic_kind {
    /* The share of keys with a_j > parameter / M, by more than ATT_MAP_DENSITY_MARGIN of it. */
    ATT_MAP_DENSITY,
    /* The largest eigenvalue of the softmax's Jacobian diag(a) - a a'. It lies between the two largest weights, where
       sum_j a_j / (a_j - x) = 0. */
    ATT_MAP_SPECTRAL,
    /* What the entropy H = -sum_j a_j ln a_j loses in one gradient step on the scores: H(a) - H(softmax(ln a + d)). The
       loss is -a_k, k the first key of the largest weight; its gradient is -a_k g with g = e_k - a. The step has the
       length `parameter`: d = parameter g / |g|. 0 if g is 0. */
    ATT_MAP_STEP_LENGTH,
    /* The same for the learning rate `parameter`: d = parameter a_k g. */
    ATT_MAP_STEP_RATE,
    ATT_MAP_STATISTICS
} att_map_statistic_kind;
/* So that rounding does not decide on a uniform row. */
#define ATT_MAP_DENSITY_MARGIN 1e-5
/* The mean of a figure over the N queries of an attention map [H, N, M]: y [H]. A row with weights that are not finite
 * makes the mean NaN. */
ATT_API att_value att_map_statistic(att_graph *graph, att_value map, att_map_statistic_kind kind, double parameter);

/* Two ways to follow attention from the last layer back to the tokens of the first: y [N], one number for each token.
 * maps [L, N, N]: a map for each layer, the first layer first, such as the mean over its heads. Half of each token
 * comes from the skip connection: A_l = maps_l / 2 + I / 2. The way begins at token 0: s = e_0; with from_mean at all
 * tokens: s_i = 1/N. (Abnar and Zuidema, ACL 2020)
 *
 * att_rollout(): y = s A_L .. A_1, which adds up to 1 if the rows of the maps do.
 *
 * att_attention_flow(): y_j is the maximum flow from the last layer to token j of the first. A_l[i, j] is the capacity
 * from token i above layer l to token j below it, and s_i that of token i above the last layer. Weights below 0 count
 * as 0. The flow is the largest one up to about 1e-9; its time grows with L N^3 or faster. */
ATT_API att_value att_rollout(att_graph *graph, att_value maps, bool from_mean);
ATT_API att_value att_attention_flow(att_graph *graph, att_value maps, bool from_mean);

/* Norms of a residual step: |before|, |after - before|, |branch|, |added|, Euclidean over all elements of a sample: y
 * [ATT_STEP_NORMS]. added is what is added to `before`: the branch after its gates. If branch is ATT_NONE, after -
 * before takes its place; use this where both are equal except for rounding. If added is ATT_NONE, it is the branch. */
enum { ATT_STEP_NORMS = 4 };
ATT_API att_value att_step_norms(att_graph *graph, att_value before, att_value after, att_value branch,
                                 att_value added);

/* Norms of tokens X [N, C]: |X|_1 (largest absolute column sum), |X|_inf (largest absolute row sum), |X|_F, and the
 * same three norms of X - 1 m': y [ATT_RESIDUAL_NORMS]. m is the mean token or, with `median`, the median of each
 * channel (of an even number of tokens the mean of the two middle ones). (Dong et al., ICML 2021) */
enum { ATT_RESIDUAL_NORMS = 6 };
ATT_API att_value att_residual_norms(att_graph *graph, att_value x, bool median);

/* Singular values of the tokens X [N, C], divided by |X|_F, in descending order: y [min(N, C)]. Computed in f64 from X
 * itself, not from its Gram matrix. All are NaN if X is 0 or not finite. Runs on one thread for each sample and takes
 * about 4 N C min(N, C) operations; for inference only. */
ATT_API att_value att_singular_values(att_graph *graph, att_value x);

/* Distance of a matrix X [M, N] from the nearest matrix of rank 1, in the Frobenius norm: y [1] = |X - s u v'|_F /
 * |X|_F, where s is the largest singular value and u and v are its vectors. NaN if X is 0. */
ATT_API att_value att_rank_one_residual(att_graph *graph, att_value x);

/* Context broadcasting: y = keep x + share mean(x), with the mean over the tokens of x [N, C]. CB has keep = share =
 * 1/2. If `scale` [C] (shared) is not ATT_NONE it replaces share, by channel: CB_S has keep = 1. (Hyeon-Woo et al.,
 * ICCV 2023) */
ATT_API att_value att_context_broadcast(att_graph *graph, att_value x, double keep, double share, att_value scale);

/* Dropout, dropout of channels and drop path. Active in training only; inference plans drop them. Each element
 * (dropout), each channel of a sample x [.., C] (channel dropout, PyTorch's Dropout2d) or each sample (drop path) is
 * zeroed with probability `rate`, else divided by 1 - rate. 0 <= rate < 1; rate 0 adds no node. Dropout of a derived
 * value is the same for all samples of an update; the others need a sample value. */
ATT_API att_value att_dropout(att_graph *graph, att_value x, double rate);
ATT_API att_value att_channel_dropout(att_graph *graph, att_value x, double rate);
ATT_API att_value att_drop_path(att_graph *graph, att_value x, double rate);

/* loss = -sum_c t_c ln softmax(logits)_c, a scalar per sample. logits [C]. target: either an I32 scalar, the class,
 * which gives t = (1 - smoothing) onehot + smoothing / C; or t itself, [C] of the graph's type (smoothing must be 0). A
 * class outside [0, C) makes the loss NaN. */
ATT_API att_value att_cross_entropy(att_graph *graph, att_value logits, att_value target, double smoothing);

/* loss = -sum over the tokens n of ln softmax(logits_n)_target_n, a scalar per sample. logits [N, C]; target [N]: the
 * class of each token, I32. A token of class ATT_NO_CLASS, such as one that pads a sample, adds nothing to the loss and
 * has gradient 0. Any other class outside [0, C) makes the loss NaN. The loss is a sum, so that
 * att_session_accumulate() can be given 1 / (number of tokens of the update) as its scale: the mean over tokens, as
 * PyTorch's cross_entropy() with ignore_index computes it. */
enum { ATT_NO_CLASS = -1 };
ATT_API att_value att_token_cross_entropy(att_graph *graph, att_value logits, att_value target);

/* Binary cross entropy: every class is a yes-or-no question of its own. loss = mean_c of -(w t_c ln s_c + (1 - t_c)
 * ln(1 - s_c)), with s = 1 / (1 + exp(-logits)), a scalar per sample. logits, target and smoothing: as for
 * att_cross_entropy(); a smoothed class gives the same t. Or target [C] is I32: t_c is 1 or 0, and a class with
 * ATT_NO_CLASS adds 0; any other number makes the loss NaN. options NULL: 0 and false, w 1. (Wightman et al. 2021;
 * timm's BinaryCrossEntropy) */
typedef struct att_binary_cross_entropy_options {
    double smoothing;
    bool binary;            /* t becomes 1 where it is above `threshold`, else 0 */
    double threshold;       /* compared in the graph's type */
    double positive_weight; /* w, finite and at least 0 */
    bool sum;               /* the sum over the classes instead of their mean */
} att_binary_cross_entropy_options;
ATT_API att_value att_binary_cross_entropy(att_graph *graph, att_value logits, att_value target,
                                           const att_binary_cross_entropy_options *options);

/* --- queries and keys, between their linear layer and attention -------------------------------------------------- */

/* Rotary positions: turns pairs of channels by angles. x [N, C] holds heads of d channels side by side, for example
 * queries, keys and values; the first `heads` of them are turned, and the other channels are copied. So are the first
 * `prefix` tokens. table [N - prefix, d] or [N - prefix, K, d], shared, holds d / 2 cosines and then d / 2 sines for
 * each of the other tokens; head h reads entry h mod K, and heads is a multiple of K. Pair i of a head is (a, b), its
 * channels 2i and 2i + 1 or, with `halves`, i and i + d / 2: it becomes (a cos_i - b sin_i, b cos_i + a sin_i). y [N,
 * C]. As timm's apply_rot_embed_cat(). (Su et al. 2021) */
typedef struct att_rotary_options {
    int heads, prefix;
    bool halves;
} att_rotary_options;
ATT_API att_value att_rotary(att_graph *graph, att_value x, att_value table, const att_rotary_options *options);

/* The positions of a grid of tokens on two axes. Token (i, j) has p = (i + offset, j + offset). With a reference it is
 * multiplied by (reference_h / height, reference_w / width), so that the grid covers the reference grid (EVA-02; the
 * Perception Encoder also has offset 1 and columns first). Centered positions go from -1 to 1: p = 2 (i + 1/2 + offset)
 * / height - 1, columns likewise (DINOv3); then there is no reference. columns_first: the first axis is that of the
 * columns (timm's grid_indexing "xy"), else that of the rows ("ij"). */
typedef struct att_rotary_grid {
    int height, width;
    double offset;
    int reference_h, reference_w; /* 0: none */
    bool centered, columns_first;
} att_rotary_grid;

/* Constant table [height width, d] for att_rotary(), d = channels, a multiple of 4. Angle i < d / 4 is p_0 f_i, and
 * angle d / 4 + i is p_1 f_i, where f_i = temperature^(-4i / d), times 2 pi for centered positions. As timm's
 * RotaryEmbeddingCat with in_pixels false, and RotaryEmbeddingDinoV3 with normalize_coords "separate"; its `halves` is
 * timm's rotate_half. Blocks share one table. Errors: ERR_ARGUMENT. */
ATT_API att_value att_rotary_table(att_graph *graph, const att_rotary_grid *grid, int channels, double temperature);

/* Table [height width, H, d] for att_rotary() of block `block`, from learned frequencies [2, depth, H, d / 2], shared:
 * angle i of head h is p_0 frequencies[0, block, h, i] + p_1 frequencies[1, block, h, i]. As timm's
 * RotaryEmbeddingMixed, whose grid has neither offset nor reference. (Heo et al., ECCV 2024) */
ATT_API att_value att_rotary_mixed(att_graph *graph, const att_rotary_grid *grid, att_value frequencies, int block);

/* y [.., 2 C]: the cosines of x [.., C], then their sines. */
ATT_API att_value att_cos_sin(att_graph *graph, att_value x);

/* Divides heads by their norms, for cosine attention. x [N, C] holds heads of `width` channels side by side: `heads` of
 * queries, `key_heads` of keys (either may be 0), then other channels, which are copied. A head becomes f x / max(|x|,
 * eps), with its Euclidean norm. f = exp(min(s_h, ln 100)) for head h of the queries, with a logit for each of them in
 * logits s (any shape, shared; ATT_NONE: f = 1), and f = 1 for keys. Attention with scale 1 then has the scores of Swin
 * V2. eps must be positive (PyTorch: 1e-12). In heads with |x| <= eps the gradient takes the divisor as constant.
 * (Liu et al., CVPR 2022) */
typedef struct att_cosine_options {
    int heads, key_heads, width;
    double eps;
} att_cosine_options;
ATT_API att_value att_cosine_heads(att_graph *graph, att_value x, att_value logits, const att_cosine_options *options);

/* Constant [S, 2], S = (2 height - 1) (2 width - 1): the shifts between the tokens of a window of height x width, on a
 * logarithmic scale, in the order of att_attention_terms.relative. The first column is sign(t) log2(|t| + 1) / 3 with t
 * = 8 (y - y') / max(reference_h - 1, 1), the second likewise for x - x'. reference_h x reference_w is the window of
 * the pretraining, 0: height x width. Input of Swin V2's cpb_mlp. (Liu et al., CVPR 2022) */
ATT_API att_value att_log_shifts(att_graph *graph, int height, int width, int reference_h, int reference_w);

/* --- feature maps, channels last: x [h, w, C] -------------------------------------------------------------------- */

/* x of att_conv2d() may also be R maps [R, h, w, C], which are convolved one by one: y [R, oh, ow, O].
 *
 * y[i, j, o] = bias[o] + sum over (u, v, c) of x[stride i + dilation u - padding, stride j + dilation v - padding, c]
 * weight[o, c, u, v], with zeros outside x. weight [O, C / groups, kernel_h, kernel_w] shared; output channel o reads
 * only the C / groups input channels of its group; bias [O] shared or ATT_NONE. y [oh, ow, O], oh = floor((h + 2
 * padding - dilation (kernel_h - 1) - 1) / stride) + 1, ow likewise. Options: 0 means 1 for stride, dilation and
 * groups. */
typedef struct att_conv_options {
    int stride, padding, dilation, groups;
} att_conv_options;
ATT_API att_value att_conv2d(att_graph *graph, att_value x, att_value weight, att_value bias,
                             const att_conv_options *options);

/* A transposed convolution: y[stride i + dilation u - padding, stride j + dilation v - padding, o] is bias[o] + the sum
 * over all such (i, j), (u, v) and c of x[i, j, c] weight[c, o, u, v]. weight [C, O / groups, kernel_h, kernel_w]
 * shared; the C / groups input channels of a group add to its O / groups output channels; bias [O] shared or ATT_NONE.
 * y [oh, ow, O], oh = stride (h - 1) + dilation (kernel_h - 1) + 1 - 2 padding + output_padding, ow likewise. Options:
 * 0 means 1 for stride, dilation and groups; output_padding < stride. As PyTorch's ConvTranspose2d. With the weight of
 * a convolution, it is the gradient of that convolution with respect to its input. */
typedef struct att_conv_transpose_options {
    int stride, padding, output_padding, dilation, groups;
} att_conv_transpose_options;
ATT_API att_value att_conv_transpose2d(att_graph *graph, att_value x, att_value weight, att_value bias,
                                       const att_conv_transpose_options *options);

/* y = (x - m) / sqrt(v + eps) * gamma + beta over x [.., C]; gamma, beta [C] shared. In inference m and v are the
 * buffers mean and variance [C]. In training they are the mean and the biased variance over all rows of all samples of
 * the run, and the buffers become (1 - momentum) old + momentum new, with the unbiased variance; a run with a single
 * row fails with ERR_ARGUMENT. frozen: training uses the buffers too. (Ioffe, Szegedy 2015) */
typedef struct att_batch_norm_options {
    double eps, momentum; /* 0: 1e-5, 0.1 */
    bool frozen;
} att_batch_norm_options;
ATT_API att_value att_batch_norm(att_graph *graph, att_value x, att_value gamma, att_value beta, att_value mean,
                                 att_value variance, const att_batch_norm_options *options);

/* y = max(x, 0), with gradient 0 at 0; y = 1 / (1 + exp(-x)). */
ATT_API att_value att_relu(att_graph *graph, att_value x);
ATT_API att_value att_sigmoid(att_graph *graph, att_value x);

/* Maximum and mean over windows of kernel x kernel. Maximum: padding counts as minus infinity; of several equal maxima
 * the first receives the gradient. Mean: over the elements inside x, or, with count_padding, also over the zeros of the
 * padding. ceil: output sizes are rounded up, but no window begins in the padding after x. padding is at most kernel /
 * 2. stride 0 means kernel. As PyTorch's MaxPool2d and AvgPool2d. */
typedef struct att_pool_options {
    int kernel, stride, padding;
    bool ceil, count_padding;
} att_pool_options;
ATT_API att_value att_max_pool(att_graph *graph, att_value x, const att_pool_options *options);
ATT_API att_value att_avg_pool(att_graph *graph, att_value x, const att_pool_options *options);
/* y [height, width, C]: means of x [h, w, C] over the rows floor(i h / height) .. ceil((i + 1) h / height) - 1, and
 * columns likewise. */
ATT_API att_value att_adaptive_avg_pool(att_graph *graph, att_value x, int height, int width);
/* Option-A shortcut: y[i, j] = x[stride i, stride j], with (channels - C) / 2 zero channels before the channels of x
 * and the remaining zero channels after them: y [ceil(h / stride), ceil(w / stride), channels]. (He et al. 2016,
 * networks for CIFAR) */
ATT_API att_value att_shortcut_pad(att_graph *graph, att_value x, int stride, int channels);

/* Reductions over all rows of x [.., C], for each channel: mean, y [C]; maximum, y [C] (of several equal maxima the
 * first receives the gradient); mean and standard deviation sqrt(unbiased variance + eps), y [C, 2]. */
ATT_API att_value att_global_mean(att_graph *graph, att_value x);
ATT_API att_value att_global_max(att_graph *graph, att_value x);
ATT_API att_value att_global_style(att_graph *graph, att_value x, double eps);
/* Mean and maximum over the channels of x [.., C]: y [.., 2]. */
ATT_API att_value att_channel_pool(att_graph *graph, att_value x);
/* Frequency pooling of x [h, w, C]: y [C]. The channels form `count` equal groups in order, each with one cosine basis:
 * y[c] = sum over (i, j) of x[i, j, c] B(i, rows[g], H) B(j, columns[g], W), where B(i, k, L) = cos(pi k (i + 1/2) / L)
 * / sqrt L, times sqrt 2 for k > 0. If the map does not have the size H x W, it is first brought to it by adaptive
 * average pooling. (Qin et al., ICCV 2021) */
typedef struct att_dct_pool_options {
    int count;                 /* 1..32; divides C */
    int rows[32], columns[32]; /* k of each group */
    int height, width;         /* H, W */
} att_dct_pool_options;
ATT_API att_value att_dct_pool(att_graph *graph, att_value x, const att_dct_pool_options *options);

/* y = x (.) gate. att_gate(): x [.., C] with gate [C] of the same sample, one factor per channel. att_pixel_gate(): x
 * [.., C] with gate [.., 1], one factor per pixel. */
ATT_API att_value att_gate(att_graph *graph, att_value x, att_value gate);
ATT_API att_value att_pixel_gate(att_graph *graph, att_value x, att_value gate);
/* Convolution along the channels: y[c] = sum_j x[c + j - (k - 1) / 2] weight[j], with zeros outside x; x, y [C]; weight
 * [1, 1, k], k odd. */
ATT_API att_value att_channel_conv(att_graph *graph, att_value x, att_value weight);
/* y[c] = sum_k x[c, k] weight[c, k]; x, weight [C, K]; y [C]. */
ATT_API att_value att_channel_linear(att_graph *graph, att_value x, att_value weight);
/* Concatenates a [.., A] and b [.., B] along the last axis: y [.., A + B]. */
ATT_API att_value att_concat(att_graph *graph, att_value a, att_value b);
/* Puts the channels of `count` maps (1 to 8) side by side: y [h, w, C1 + C2 + ..]. maps[0] is [h, w, C1]; maps of other
 * sizes are resized to h x w, as by att_upsample_bilinear(). */
ATT_API att_value att_concat_maps(att_graph *graph, const att_value *maps, int count);
/* Channels [first, first + count) of x [.., C]: y [.., count]. */
ATT_API att_value att_slice_channels(att_graph *graph, att_value x, int64_t first, int64_t count);

/* --- axes, rows and positions: x has any shape unless stated otherwise ------------------------------------------- */

/* Permutes the axes: axis i of y is axis axes[i] of x. `axes` holds each of 0 .. count - 1 once; `count` is the rank of
 * x. As torch.permute. Errors: ERR_ARGUMENT for any other list. */
ATT_API att_value att_transpose(att_graph *graph, att_value x, const int *axes, int count);
/* Copies the elements of x, in order, into another shape with as many elements. Errors: ERR_MISMATCH for another number
 * of elements. */
ATT_API att_value att_reshape(att_graph *graph, att_value x, att_shape shape);

/* Batched matrix product: y = scale a b, or with `transposed` y = scale a b'. a [.., M, K]; b [.., K, N], or with
 * `transposed` [.., N, K]; y [.., M, N]. The leading axes of a and b are equal. */
ATT_API att_value att_matmul(att_graph *graph, att_value a, att_value b, bool transposed, double scale);

/* Divides a map x [H, W, C] into windows of height x width pixels: y [H W / (height width), height width, C], windows
 * row by row, pixels of a window row by row. The map is first shifted cyclically: pixel (i, j) of window (m, n) is x[(m
 * height + i + shift_y) mod H, (n width + j + shift_x) mod W]. As Swin's torch.roll by (-shift_y, -shift_x) and
 * window_partition. height must divide H, and width W; 0 <= shift_y < H, 0 <= shift_x < W. (Liu et al., ICCV 2021) */
typedef struct att_window_options {
    int height, width;
    int shift_y, shift_x;
} att_window_options;
ATT_API att_value att_windows(att_graph *graph, att_value x, const att_window_options *options);
/* The inverse of att_windows(): windows [H W / (height width), height width, C] become the map y [H, W, C]. The
 * parameters height and width are H and W. As window_reverse and torch.roll by (shift_y, shift_x). */
ATT_API att_value att_windows_reverse(att_graph *graph, att_value windows, int height, int width,
                                      const att_window_options *options);
/* Adds rows and columns of zeros to a grid of tokens x [grid_h grid_w, C], as few as make both sides multiples of the
 * window's: y [P, C]. Attention in shifted windows of the padded grid (att_attention()) then computes what timm's Swin
 * does, which rolls the grid, then pads it at the bottom and the right: the zeros lie so that att_attention()'s roll
 * takes them there. */
typedef struct att_window_pad_options {
    int grid_h, grid_w, window_h, window_w, shift_h, shift_w;
} att_window_pad_options;
ATT_API att_value att_window_pad(att_graph *graph, att_value x, const att_window_pad_options *options);
/* The inverse: y [P, C] -> x [grid_h grid_w, C]. */
ATT_API att_value att_window_crop(att_graph *graph, att_value x, const att_window_pad_options *options);
/* Merges each block of 2 x 2 pixels of a map x [H, W, C] into one pixel: y [ceil(H / 2), ceil(W / 2), 4 C]; y[i, j] is
 * the concatenation of x[2i, 2j], x[2i + 1, 2j], x[2i, 2j + 1] and x[2i + 1, 2j + 1], with zeros outside x. timm's
 * PatchMerging has the same order. */
ATT_API att_value att_merge_patches(att_graph *graph, att_value x);

/* Looks up rows of a shared table [V, C]: y[.., c] = table[indices[..], c]. indices [..]: a sample value or a constant,
 * I32, of rank at most ATT_MAX_RANK - 1; y [.., C]. An index outside [0, V) gives a row of NaN and adds nothing to the
 * table's gradient. */
ATT_API att_value att_embed(att_graph *graph, att_value table, att_value indices);

/* Resizes a map x [H, W, C] to y [height, width, C] by bilinear interpolation. Row i of y lies at s = max((i + 1/2) H /
 * height - 1/2, 0) in x; with r = floor(s), it is (1 - s + r) times row r plus (s - r) times row min(r + 1, H - 1).
 * Columns likewise. As torch.nn.functional.interpolate(size=(height, width), mode="bilinear", align_corners=False),
 * without antialiasing when y is smaller. */
ATT_API att_value att_upsample_bilinear(att_graph *graph, att_value x, int height, int width);

/* The loss of a class for each pixel, a scalar per sample. logits [h, w, C] are of a smaller map than mask [H, W], I32,
 * the class of each pixel. loss = -(1 / n) sum_ij ln softmax(y_ij)_mask_ij with y = att_upsample_bilinear(logits, H,
 * W), which is interpolated pixel by pixel and never stored. A pixel of class `ignored`, such as ATT_NO_CLASS, adds
 * nothing to the sum and has gradient 0, also if `ignored` is in [0, C). Any other class outside [0,
 * C) makes the loss NaN. n depends on the mask only:
 * - ATT_MEAN_OF_LABELED: n is the number of the sample's pixels that are not ignored. As
 *   torch.nn.functional.cross_entropy(y, mask, ignore_index=ignored) for one sample, but if all pixels are ignored, the
 *   loss and its gradient are 0, not NaN.
 * - ATT_MEAN_OF_ALL: n = H W. As the cross entropy of mmsegmentation, whose default is avg_non_ignore=False. */
typedef enum att_pixel_mean { ATT_MEAN_OF_LABELED, ATT_MEAN_OF_ALL } att_pixel_mean;
ATT_API att_value att_upsampled_cross_entropy(att_graph *graph, att_value logits, att_value mask, int ignored,
                                              att_pixel_mean mean);

/* The class map of logits [h, w, C]: y [height, width], I32, holds the class with the largest of the C numbers of each
 * pixel of att_upsample_bilinear(logits, height, width), which is never stored. Of equal numbers, that of the lowest
 * class counts; NaN never counts, and a pixel of nothing else gets class 0. y has no gradient. */
ATT_API att_value att_upsampled_argmax(att_graph *graph, att_value logits, int height, int width);

/* --- detection ----------------------------------------------------------------------------------------------------
 *
 * A box [4] is left, top, right and bottom in pixels of the network's input. image_size [2] is height and width of the
 * part of the input that shows the image; what lies to the right and below fills it up. Boxes are clipped to it. Deltas
 * d [4] change a box with centre (x, y), width w and height h into one with centre (x + w d0 / v0, y + h d1 / v1),
 * width w exp(min(d2 / v2, l)) and height h exp(min(d3 / v3, l)), with l = ln(1000 / 16) and weights v.
 * "bounded", as in mmdetection: also at least -l. (Girshick et al., CVPR 2014;
 * Ren et al., NeurIPS 2015)
 *
 * Non-maximum suppression takes boxes in the order of their scores, and leaves out each one whose overlap (intersection
 * over union) with one that was taken is larger than `overlap`.
 *
 * The results of att_box_proposals(), att_box_detections(), att_anchor_sample() and att_box_sample() are constants for
 * differentiation. They do not depend on the number of threads. Numbers beyond `count` are 0. If a score or a delta
 * that decides is NaN, all numbers of proposals and detections are NaN. */
enum { ATT_BOX_LEVELS = 5, ATT_BOX_RATIOS = 3 };

/* Anchors. Place (i, j) of level l has ATT_BOX_RATIOS anchors with the ratios height / width 1/2, 1 and 2, with centre
 * (j stride[l][1], i stride[l][0]) and the area (size 2^l)^2. */
typedef struct att_anchors {
    double size; /* > 0 */
    int stride[ATT_BOX_LEVELS][2];
    bool rounded; /* sides, relative to the centre, are rounded, half to even, as in torchvision */
} att_anchors;

typedef struct att_box_proposals_options {
    att_anchors anchors;
    int per_level;  /* boxes of a level before the suppression */
    int most;       /* R */
    double overlap; /* in [0, 1] */
    double least;   /* boxes with a shorter side are left out */
    bool bounded;
} att_box_proposals_options;
typedef struct att_proposals {
    att_value boxes;  /* [R, 4] */
    att_value scores; /* [R] */
    att_value count;  /* I32 */
} att_proposals;
/* Proposals of a region proposal network. objectness[l] [h, w, ATT_BOX_RATIOS], deltas[l] [h, w, 4 ATT_BOX_RATIOS] for
 * each of `levels` levels, 1..ATT_BOX_LEVELS. Of each level the per_level anchors with the largest objectness are
 * decoded with weights 1 and clipped, small ones left out, and the rest suppressed within their level; the R with the
 * largest objectness of all levels are the result, in this order. Equal ones go by level, then by place. Returns
 * out->boxes. */
ATT_API att_value att_box_proposals(att_graph *graph, const att_value *objectness, const att_value *deltas, int levels,
                                    att_value image_size, const att_box_proposals_options *options, att_proposals *out);

/* How candidates, which are anchors or proposals, are compared with the true boxes of an image, and which of them a
 * training sees. true_boxes [G, 5], as att_boxes_move() writes them: a box, then its class, or ATT_BOX_IGNORED for a
 * crowd. Rows without an area are no boxes.
 *
 * Matching. The true box of a candidate is the one that it overlaps most, of equal ones the first. A candidate is
 * positive if this overlap is at least `positive`, negative if it is less than `negative`, and neither in between.
 * Positive are further, with ATT_BEST_OF_CANDIDATE or ATT_BEST_OF_BOX, the candidates that overlap a true box as much
 * as any other candidate does, if this overlap is at least `least` and not 0. Their true box is the one that they
 * overlap most (ATT_BEST_OF_CANDIDATE, torchvision's allow_low_quality_matches), or the last of those that no other
 * candidate overlaps more (ATT_BEST_OF_BOX, mmdetection's gt_max_assign_all with min_pos_iou).
 *
 * Crowds are no true boxes. A candidate is neither positive nor negative if more than the share `crowd` of its area
 * lies in one of them, as by mmdetection's ignore_iof_thr; 1: crowds have no effect, as in torchvision.
 *
 * Sampling. Of the positive candidates at most floor(share samples) are taken, of the negative ones as many as are left
 * of `samples`. Where there are more, draws decide that depend on (seed, update, position of the sample in the batch of
 * all processes, node, index of the candidate). (Girshick, ICCV 2015; Ren et al., NeurIPS 2015) */
typedef enum att_best_match { ATT_BEST_NONE, ATT_BEST_OF_CANDIDATE, ATT_BEST_OF_BOX } att_best_match;
typedef struct att_box_sampling {
    double positive, negative; /* 0 < positive <= 1, 0 <= negative <= positive */
    att_best_match best;
    double least; /* in [0, 1] */
    double crowd; /* in [0, 1] */
    int samples;  /* S */
    double share; /* in [0, 1] */
} att_box_sampling;

/* Classes and deltas of the A anchors of all levels, those of the first level first, then by place and ratio. */
typedef struct att_anchor_targets {
    att_value classes; /* [A], I32: 1 for positive anchors, 0 for negative ones; ATT_NO_CLASS if not taken */
    att_value columns; /* [A], I32, for att_smooth_l1(): 0 for positive anchors that are taken, else ATT_NO_CLASS */
    att_value deltas;  /* [A, 4], with weights 1, which change these into their true box; 0 for the others */
} att_anchor_targets;
/* Samples anchors for the training of a region proposal network. maps: of each of `levels` levels a value [h, w, ..],
 * whose sides alone count. Anchors beyond the image take part, as in torchvision. Returns targets->classes. */
ATT_API att_value att_anchor_sample(att_graph *graph, att_value true_boxes, const att_value *maps, int levels,
                                    const att_anchors *anchors, const att_box_sampling *sampling,
                                    att_anchor_targets *targets);

typedef struct att_box_targets_options {
    att_box_sampling sampling;
    double weights[4]; /* of the deltas */
    int classes;       /* K */
    bool background_first;
} att_box_targets_options;
typedef struct att_box_targets {
    att_value boxes;   /* [S, 4], in the order of the candidates */
    att_value classes; /* [S], I32: 0..K of K classes and of the background, which is the first or the last */
    att_value columns; /* [S], I32, for att_smooth_l1(): the class of a positive box, else ATT_NO_CLASS */
    att_value deltas;  /* [S, 4], which change a positive box into its true box; 0 for the others */
    att_value count;   /* I32: S; 0 if there is no candidate, and all boxes are 0 */
} att_box_targets;
/* Samples boxes for the training of a box head: candidates are the first `count` of the proposals [R, 4], then the true
 * boxes. If they are fewer than S, further rows repeat the samples, without a class. Returns targets->boxes. */
ATT_API att_value att_box_sample(att_graph *graph, att_value proposals, att_value count, att_value true_boxes,
                                 const att_box_targets_options *options, att_box_targets *targets);

/* loss = sum_nd l(x_n,(Dc + d) - target_nd), a scalar per sample, with c = columns_n, l(e) = e^2 / (2 beta) if |e| <
 * beta, else |e| - beta / 2. x [N, K D]; target [N, D]; columns [N], I32: which D of the columns of x are compared;
 * ATT_NO_CLASS: none, the row adds nothing. Any other number outside [0, K) makes the loss NaN. beta 0: the sum of |e|,
 * whose derivative at 0 is 0. (Girshick, ICCV 2015; PyTorch's smooth_l1_loss()) */
ATT_API att_value att_smooth_l1(att_graph *graph, att_value x, att_value target, att_value columns, double beta);

/* RoIAlign (He et al., ICCV 2017) of boxes [R, 4], of which the first `count` (I32) are read, in one of `levels` maps
 * [h, w, C]: y [R, side, side, C]. A place of map l has the size of stride 2^l pixels; a box of area s^2 is read in map
 * floor(log2(s / finest) + 1e-6), or the nearest that exists (Lin et al., CVPR 2017, eq. 1: finest is 56 pixels). Each
 * of side x side equal parts of the box gets the mean over a grid of points, bilinearly interpolated: samples x
 * samples points, or, with samples 0, a point for each place. Rows beyond `count` are 0.
 *
 * aligned: coordinates are shifted by half a place, so that the first place has its centre at 1/2; otherwise a box is
 * at least one place wide and high. torchvision: samples 2, not aligned; mmdetection: samples 0, aligned. The gradient
 * flows to the maps only; a box with NaN gives NaN. */
typedef struct att_roi_align_options {
    int side, samples, stride;
    double finest;
    bool aligned;
} att_roi_align_options;
ATT_API att_value att_roi_align(att_graph *graph, const att_value *maps, int levels, att_value boxes, att_value count,
                                const att_roi_align_options *options);

typedef struct att_box_detections_options {
    double weights[4]; /* of the deltas */
    double score;      /* boxes with a score of at most this are left out; in [0, 1) */
    double overlap;    /* in [0, 1] */
    double least;      /* boxes with a shorter side are left out */
    int most;          /* D */
    bool background_first;
    bool bounded;
} att_box_detections_options;
typedef struct att_detections {
    att_value boxes;   /* [D, 4] */
    att_value scores;  /* [D] */
    att_value classes; /* [D], I32: 0..K - 1 */
    att_value count;   /* I32 */
} att_detections;
/* Detections from the answers of a box head to proposals [R, 4], of which the first `count` are read. logits [R, K + 1]
 * of K classes and of the background, which is the first or the last; deltas [R, 4 (K + 1)] in the same order, or [R, 4
 * K] without those of the background. Each box of each class, with its softmax as score, is decoded and clipped; small
 * ones and those of low score are left out, and the rest suppressed within their class. The D with the largest scores
 * are the result, in this order; equal ones go by class, then by proposal. Returns out->boxes. */
ATT_API att_value att_box_detections(att_graph *graph, att_value logits, att_value deltas, att_value proposals,
                                     att_value count, att_value image_size, const att_box_detections_options *options,
                                     att_detections *out);

#ifdef __cplusplus
}
#endif
#endif
