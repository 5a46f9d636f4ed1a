/* attscope/position_heads.h - reads attention heads that attend by position as a convolution, and removes degenerate
 * heads.
 *
 * Heads attend by position if their scores depend on the shift from query to key only: attention_cnn_isotropic,
 * _quadratic and _learned. Their layer computes Y = sum_h A_h X W_h + 1 b' on the tokens X [N, I] of a grid, with the
 * map A_h [N, N] of head h and its linear map W_h = W_V,h W_O [I, O], without the residual branch around it. Token q
 * receives x_k M(q, k) from token k, M(q, k) = sum_h A_h(q, k) W_h. A convolution has M(q, k) = kernel(k - q).
 * (Cordonnier et al., ICLR 2020)
 */
#ifndef ATTSCOPE_POSITION_HEADS_H
#define ATTSCOPE_POSITION_HEADS_H

#include <attscope/models.h>
#include <attscope/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The heads of one layer. */
typedef struct att_position_heads att_position_heads;

/* Returns the number of layers whose heads attend by position; 0 for other networks. */
ATT_API int att_position_layers(const att_model *model);

/* Reads the heads of layer 0..count-1. weights: those of the model's graph. On success the caller owns *heads, which
 * needs neither model nor weights any more, and frees it with att_position_heads_destroy(). Errors: ERR_ARGUMENT (no
 * such layer), ERR_NOT_FOUND (the weights lack a parameter), ERR_MISMATCH (it has another shape), ERR_NONFINITE (a
 * parameter is not finite), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_position_heads_read(const att_model *model, const att_weights *weights, int layer,
                                                          att_position_heads **heads);
ATT_API void att_position_heads_destroy(att_position_heads **heads);

typedef struct att_position_heads_info {
    const char *scope; /* "blocks.0.attn"; lives as long as the heads */
    int count, grid_h, grid_w;
    int64_t inputs, outputs; /* I, O */
} att_position_heads_info;
ATT_API att_position_heads_info att_position_heads_describe(const att_position_heads *heads);

/* A head with scores -1/2 (d - Delta)' P (d - Delta), P = S S', is degenerate if the largest eigenvalue of P is below
 * ATT_LEAST_PRECISION (for isotropic heads P = s^2, so: s^2 < 1e-5), or if the condition number of P is above
 * ATT_MOST_CONDITION: it then attends to everything, or to everything on a line. (The rule of the published program,
 * epfml/attention-cnn.) */
#define ATT_LEAST_PRECISION 1e-5
#define ATT_MOST_CONDITION 1000.0

/* What a head attends to, rows before columns, in tokens. */
typedef struct att_position_head {
    double shift[2]; /* mean of d under the attention a of the query in the middle of the grid, (grid_h / 2, grid_w / 2)
                        rounded down: sum_d a(d) d */
    double spread;   /* sqrt(sum_d a(d) |d - shift|^2) */
    double most;     /* the largest a(d) */
    int most_at[2];  /* its shift; of equal weights, that of the first key */
    bool quadratic;  /* the scores are a quadratic form; if not, the members below are 0 */
    double center[2];    /* Delta, which may lie outside the grid */
    double precision[2]; /* eigenvalues of P, the smaller one first */
    bool degenerate;
} att_position_head;
/* Describes head 0..count-1. Errors: ERR_MEMORY. */
ATT_API att_status att_position_heads_at(const att_position_heads *heads, int head, att_position_head *found);

/* The convolution that is nearest to a layer. */
typedef struct att_nearest_convolution {
    double error;      /* |M(q, .) - T(q, .)| / |M(q, .)| of the query q in the middle of the grid, Frobenius norms over
                          all keys and channels: the share of its output that the convolution misses, if all tokens and
                          channels of the input are independent with the same variance */
    double grid_error; /* the same over all queries. A query at the border attends to other keys instead of those
                          outside the grid, because its map has the sum 1; the convolution reads zeros there */
} att_nearest_convolution;
/* Computes the convolution T with a kernel x kernel kernel, stride 1 and zero padding kernel / 2, that minimises
 * `error` by least squares: its kernel at the shift d is M(q, q + d), 0 if q + d is outside the grid. weight [O, I,
 * kernel, kernel], bias [O]: receive it, as for att_conv2d(); may be NULL. Errors: ERR_ARGUMENT (kernel is even or
 * outside 1..255), ERR_MEMORY. */
ATT_API att_status att_position_heads_convolution(att_position_heads *heads, int kernel, float *weight, float *bias,
                                                  att_nearest_convolution *found);

/* A head of a network. */
typedef struct att_head_place {
    int layer, head;
} att_head_place;

/* Lists the degenerate heads of all layers, by layer; there are none if the scores are no quadratic forms. Writes the
 * first `most` of them to places[] (NULL: none) and sets *count to the number of all. Errors: those of
 * att_position_heads_read(). */
ATT_API ATT_MUST_CHECK att_status att_model_degenerate_heads(const att_model *model, const att_weights *weights,
                                                             att_head_place *places, int most, int *count);

/* Makes the network without some heads. In each layer at least one head stays: if all heads of a layer are named, its
 * head 0 is kept. The other parameters have the values of `weights`. On success the caller owns *pruned and
 * *pruned_weights. Errors: ERR_ARGUMENT (no such layer or head, or a head twice), ERR_UNSUPPORTED (the network's heads
 * do not attend by position), and those of att_position_heads_read(). */
ATT_API ATT_MUST_CHECK att_status att_model_prune_heads(const att_model *model, const att_weights *weights,
                                                        const att_head_place *removed, int removed_count,
                                                        att_model **pruned, att_weights **pruned_weights);

#ifdef __cplusplus
}
#endif
#endif
