/* attscope/lab/collapse.h - rank collapse: deep stacks of self-attention in f64, and the bounds of Dong et al.
 * ("Attention is not all you need", ICML 2021).
 *
 * Without skips, self-attention drives all tokens to the same vector, and does so doubly exponentially: after four
 * layers the tokens of an ordinary f64 program are equal up to rounding. The simulation here therefore never forms the
 * tokens. It carries
 *
 *     X = 1 m' + e^s R                m = e^t u, |u| = 1: mean of the tokens;  |R|_F = 1, columns of R have mean 0
 *
 * as u, t, R and s, and computes the residual e^s R of each layer from the last one without subtracting tokens:
 *
 *   attention   The scores of query i are, up to a number that softmax ignores, c_j + E_ij with c = e^s R W_K (m W_Q +
 *               b_Q)' / sqrt(d_k) and E = e^2s R W_Q (R W_K)' / sqrt(d_k). With q = softmax(c), the row that all
 *               queries share, E centred so that sum_j q_j E_ij = 0, and z_i = sum_j q_j expm1(E_ij),
 *                   P_ij - q_j = q_j (expm1(E_ij) - z_i) / (1 + z_i),
 *               where z_i >= 0. For small E the common factor e^2s is left out, so nothing underflows. The new residual
 *               is sum_h (P_h - 1 q_h') e^s R W_V,h W_O,h, of the order e^3s
 *   MLP         gelu(a + x) - gelu(a) = x (mean of gelu' between a and a + x): a Taylor polynomial for |x| <= 2e-4,
 *               Gauss's rule of 8 points for |x| <= 1, the difference itself beyond
 *   norm        of each token: 1 / sigma_i - 1 / sigma by expm1(-log1p((sigma_i^2 - sigma^2) / sigma^2) / 2), where
 *               sigma belongs to the mean m and the difference is a sum of products with R
 *   skip        means are added to means, residuals to residuals
 *
 * Each step has a relative error of about 1e-15 of the residual (docs/rank-collapse.md has measured figures). What the
 * error becomes later is a property of the stack: if each layer cubes the residual, the relative error of r triples
 * with every layer, as does ln r; so ln r is accurate to about 1e-15 of itself at any depth. If ln r itself leaves the
 * range of a double (after about 640 layers), ln(-ln r) is carried instead. An exception: norm of tokens of width 2
 * with eps far below the variance makes all tokens equal up to a sign, and the residual is then what rounding leaves:
 * with eps 1e-12, ln r is accurate to about 6e-4 of itself.
 *
 * res(X) = X - 1 x' with the mean of the tokens as x. The norm is |X|_{1,inf} = sqrt(|X|_1 |X|_inf): |X|_1 is the
 * largest sum of a column, |X|_inf that of a row, of absolute values. It is not a norm: the triangle inequality fails.
 *
 * All logarithms are natural.
 */
#ifndef ATTSCOPE_LAB_COLLAPSE_H
#define ATTSCOPE_LAB_COLLAPSE_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The logarithm of a number v >= 0, for v far beyond a double's range. */
typedef struct att_stack_log {
    double log;     /* ln v; -inf for 0; -inf or inf beyond a double's range too, see `log_log` */
    double log_log; /* ln |ln v|, which tells how far beyond: finite unless v is 0 (inf) or 1 (-inf); NaN: no value */
} att_stack_log;

/* The weights of one layer. Matrices are row-major [inputs, outputs], so that a layer computes X W + 1 b'. Biases are
 * NULL if absent. */
typedef struct att_stack_weights {
    const double *q, *k, *v, *o; /* [width, width]; head h has columns h d_k .. of q, k, v and these rows of o */
    const double *q_bias, *v_bias, *o_bias;        /* [width]. Softmax cancels a bias of the keys */
    const double *norm1_weight, *norm1_bias;       /* [width], of the norm of the attention; NULL: 1 and 0 */
    const double *norm2_weight, *norm2_bias;       /* likewise of the MLP */
    const double *fc1, *fc1_bias, *fc2, *fc2_bias; /* [width, hidden], [hidden], [hidden, width], [width] */
} att_stack_weights;

/* X(name, text) */
#define ATT_STACK_NORM_LIST(X) X(NONE, "none") X(TOKEN, "token") X(COLUMN, "column")
/* NONE; TOKEN: layer norm, which shifts and scales each token; COLUMN: (X - 1 b') D^-1, where b holds the mean and the
 * diagonal of D the standard deviation of each column over the tokens (the form for which Dong et al. say that layer
 * norm does not help, because W_O can absorb D^-1). */
typedef enum att_stack_norm {
#define ATT_STACK_NORM_ENUM(name, text) ATT_STACK_NORM_##name,
    ATT_STACK_NORM_LIST(ATT_STACK_NORM_ENUM)
#undef ATT_STACK_NORM_ENUM
} att_stack_norm;

typedef struct att_stack_options {
    int depth, heads, width, tokens; /* 1..100,000 layers; heads divides width; width 1..2048; 1..4096 tokens */
    bool skip;                       /* X + f(X) around attention, and around the MLP if there is one */
    bool mlp;                        /* a two-layer perceptron with GELU (erf) after the attention */
    int hidden;                      /* width of the MLP's hidden layer, 1..16,384; 0: 4 width */
    att_stack_norm norm;
    bool pre_norm;   /* the norm is in front of each branch, as in ViT; otherwise after the addition, as in the paper */
    double norm_eps; /* added to the variance, at least 0 */
    double init_std; /* random weights are N(0, init_std^2), 1e-50 to 1e6; 0: N(0, 1 / inputs). Without biases */
    double mlp_gain; /* factor of the MLP's random weights: 0, or 1e-50 to 1e6 */
    double input_std; /* random tokens are N(0, input_std^2) */
    bool shared;      /* random weights: all layers have those of the first */
    uint64_t seed;    /* Philox, with a stream for each matrix of each layer */
    /* Weights and tokens of the caller instead of random ones. layer() returns those of layer `index`, valid until its
     * next call; NULL after a failure, with the context's message set. tokens [tokens, width]; NULL: random. */
    const att_stack_weights *(*layer)(void *user, int index);
    void *user;
    const double *tokens_data;
    /* Called after each layer with its number, 1..depth. Return false to stop: ERR_STOPPED. NULL: none. */
    bool (*progress)(void *progress_user, int layer);
    void *progress_user;
} att_stack_options;
/* 12 layers of 4 heads, width 64, 64 tokens, attention only, norm_eps 1e-6 (column-wise: 0 is used), mlp_gain 1,
 * input_std 1, seed 42. */
ATT_API att_stack_options att_stack_options_defaults(void);

/* An upper bound of a residual, with the paper's constant and with the safe one. In the formulas W_QK = W_Q W_K' and
 * W = W_V W_O of a head, and D_ii = max_{j,j'} |E_ij - E_ij'|. A bound without a value (log_log is NaN) is not defined
 * for this stack. */
typedef struct att_stack_bound {
    att_stack_log paper, safe;
} att_stack_bound;

/* What is known after layer l: X_l, 1 <= l <= depth, or the tokens X_0, which have only the first five members. */
typedef struct att_stack_layer {
    att_stack_log residual; /* |res(X_l)|_{1,inf} */
    att_stack_log median;   /* the same with the medians of the columns in place of their means */
    att_stack_log relative; /* residual / |X_l|_{1,inf} */
    double norm;            /* ln |X_l|_{1,inf} */
    double rank; /* participation ratio (sum sigma^2)^2 / sum sigma^4 of the singular values of res(X_l), 1..width; 0 if
                    the residual is 0 */

    /* The attention branch alone, U -> SA(U), where U = X_{l-1}, or its norm with pre_norm. One layer of one head is
     * |res(SA(U))| <= (C gamma beta / sqrt(d_k)) |res(U)|^3 (lemma A.1), one of H heads the same with H beta (A.3). */
    double beta;         /* max over heads of |W_QK|_1 |W|_{1,inf} */
    double gamma;        /* max over heads of sqrt(sum_i D_ii / max_i D_ii), 1..sqrt(tokens); NaN if all are 0 */
    double condition;    /* share of rows, over heads, with D_ii <= 1.256, which the paper's proof assumes; for the rows
                            that violate it the paper's bound is not proved */
    att_stack_log input; /* |res(U)|_{1,inf} */
    att_stack_log branch; /* |res(SA(U))|_{1,inf} */
    att_stack_bound
        branch_bound; /* of `branch`, from the measured residual of U. paper: C = 4. safe: C = 2, and the sum
                         over heads is taken in |.|_1 and |.|_inf, for which the triangle inequality holds */
    double head_paper, head_safe; /* one head: the largest ln(residual / bound) over heads, at most 0 where the bound
                                     holds; -inf if all residuals are 0 */

    /* The whole stack from X_0. paper, with the largest beta, gamma and lambda of the layers so far (lemmas A.4, A.5):
     *   attention only  (4 gamma beta H / sqrt(d_k))^((3^l - 1) / 2) |res(X_0)|^(3^l)
     *   + MLP           the same with beta lambda (corollary A.2)
     *   + skip          max_k<=l (8 gamma beta H / sqrt(d_k))^((3^k - 1) / 2) (2 H)^(3^k (l - k)) |res(X_0)|^(3^k)
     * (A.1) safe carries bounds (x, y) of |.|_1 and |.|_inf from layer to layer with each layer's own weights:
     *   attention       x_a = 2 x^2 y sum_h gamma_h^2 |W_QK,h|_1 |W_h|_1 / sqrt(d_k),
     *                   y_a = 2 x y^2 sum_h |W_QK,h|_1 |W_h|_inf / sqrt(d_k); with a skip x + x_a, y + y_a
     *   MLP             lambda_1 x, lambda_inf y; with a skip (1 + 2 lambda_1) x, (1 + 2 lambda_inf) y
     * The factor 2 belongs to the mean of the tokens (it is 1 for the row q' X W); it is taken once in a layer without
     * skip. Column-wise norm after an attention without skip and MLP is absorbed: W_h D^-1 in place of W_h. With any
     * other norm there is no bound; with skip and MLP the paper has none. */
    att_stack_bound bound;
    double lambda; /* Lipschitz constant of the MLP in |.|_{1,inf}: 1.129 sqrt(|W1|_1 |W1|_inf |W2|_1 |W2|_inf), where
                      1.129 is that of GELU; NaN without MLP */
} att_stack_layer;

/* Runs the stack. layers: room for depth + 1 elements. output: receives the tokens X_depth [tokens, width] as doubles
 * (the residual is lost where it is below their rounding; entries beyond the range are infinite); NULL: not needed.
 * options: NULL means the defaults. After a failure the arrays have undefined content. Errors: ERR_ARGUMENT (an option
 * out of its range), ERR_NONFINITE (weights or tokens that are not finite), ERR_MEMORY, ERR_STOPPED; the failure of
 * `layer`. */
ATT_API att_status att_stack_run(att_context *context, const att_stack_options *options, att_stack_layer *layers,
                                 double *output);

/* The blocks of a trained ViT as the layers of a stack, and the tokens of an image in front of the first block as X_0.
 * The network's blocks must have layer norm in front of each branch: layer norm, linear (q, k, v together or apart),
 * attention, linear, addition, layer norm, linear, GELU, linear, addition; layer scale is multiplied into the weights.
 * With skip, mlp, ATT_STACK_NORM_TOKEN and pre_norm the stack is the network itself. */
typedef struct att_stack_network att_stack_network;
/* Reads the network `what` (att_network_open()). model: its name, if its file does not give it; NULL. On success the
 * caller owns *network, which the members depth, heads, width, hidden, tokens, norm_eps, layer, user and tokens_data of
 * *options then describe and point into; it frees it with att_stack_network_destroy(). On failure both are unchanged.
 * Errors: ERR_UNSUPPORTED (the network has other blocks), ERR_NONFINITE; those of att_network_open() and
 * att_network_run_file(). */
ATT_API ATT_MUST_CHECK att_status att_stack_network_read(att_context *context, const char *what, const char *model,
                                                         const char *image, att_stack_options *options,
                                                         att_stack_network **network);
ATT_API void att_stack_network_destroy(att_stack_network **network);

/* Whether the bound does not force a decrease: it is not below the residual from which it starts. */
ATT_API bool att_stack_is_vacuous(att_stack_log bound, att_stack_log start);
/* Compares two values: negative if a < b, 0 if they are equal, positive if a > b. Neither may be "no value". */
ATT_API int att_stack_compare(att_stack_log a, att_stack_log b);

/* Fit of ln r_{l+1} = slope ln r_l + intercept by least squares over consecutive layers, where both logarithms are
 * finite and at least `least`. The slope is 3 if each layer cubes the residual, 1 if it decays exponentially. */
typedef struct att_stack_fit {
    int pairs, first, last;  /* number of pairs (l, l + 1), smallest and largest l; pairs 0: none */
    double slope, intercept; /* NaN for fewer than two pairs or equal ln r_l */
} att_stack_fit;
ATT_API att_stack_fit att_stack_fit_rate(const att_stack_layer *layers, int depth, double least);

/* The absorption of column-wise norm (Dong et al.), for stacks without skip, MLP and pre_norm. Beside the stack with
 * column-wise norm, runs stacks without norm whose W_O is W_O D^-1 and whose bias is (b_O - b) D^-1, with the D and b
 * of each layer of the first stack. Both differences are |X - X'|_F / |X|_F after a layer. */
typedef struct att_stack_absorption {
    double layer; /* X' is one layer without norm applied to the same X: the argument itself, about 1e-15 */
    double stack; /* X' is the stack without norm from X_0: rounding errors grow with the depth */
} att_stack_absorption;
/* differences: room for options->depth elements. options->norm is ignored. Errors: as att_stack_run(); ERR_ARGUMENT for
 * stacks with skip, MLP or pre_norm. */
ATT_API att_status att_stack_absorb(att_context *context, const att_stack_options *options,
                                    att_stack_absorption *differences);

/* The price of a large Lipschitz constant of the MLP (Dong et al., section 3.2: it slows the collapse, but makes the
 * network sensitive to its input and the variance of gradients large). */
typedef struct att_stack_price {
    double lambda;        /* the largest of all layers, as att_stack_layer.lambda */
    double residual;      /* mean over samples of ln |res(X_L)|_{1,inf} */
    double sensitivity;   /* mean over samples of ln(|X_L(X_0 + D) - X_L(X_0)|_F / |D|_F), D random with |D|_F = 1e-3
                             |X_0|_F */
    double gradient_norm; /* root of the mean of |g|^2 over samples, where g is the gradient of <G, X_L> with respect
                             to all weights, in ordinary f64; G is random with |G|_F = 1 */
    double gradient_variance; /* mean of |g - mean g|^2 over samples */
} att_stack_price;
/* A stack with an MLP, without norm, of at most ATT_STACK_PRICE_DEPTH layers. Each of the `samples`, 2..1000, has
 * random tokens of its own; options->tokens_data is ignored. Figures that leave the range of a double are infinite or
 * NaN. Errors: as att_stack_run(); ERR_ARGUMENT for other stacks. */
enum { ATT_STACK_PRICE_DEPTH = 200 };
ATT_API att_status att_stack_price_mlp(att_context *context, const att_stack_options *options, int samples,
                                       att_stack_price *price);

#ifdef __cplusplus
}
#endif
#endif
