/* attscope/explore.h - the attention of one image or text, query by query, and what becomes of it if parts of the
 * network are changed.
 *
 *     att_explorer *explorer = NULL;
 *     att_batch answers;
 *     if (att_explorer_create(network, &explorer) == ATT_OK && att_explorer_run(explorer, pixels, &answers) == ATT_OK)
 *         ... att_explorer_row(explorer, layer, query, NULL, rows) ...
 *     att_explorer_destroy(&explorer);
 *
 * An explorer compiles the network once, for one image at a time. A run keeps the queries and keys of every attention
 * layer, from which a row of a map is computed when it is asked for: no map of N x N weights is stored. Heads, residual
 * branches and tokens can be removed between runs; the changes are inputs of the plan, so that nothing is compiled
 * again. An explorer belongs to one thread at a time.
 *
 * Letters: N tokens of a layer, which are its keys, H heads.
 */
#ifndef ATTSCOPE_EXPLORE_H
#define ATTSCOPE_EXPLORE_H

#include <attscope/network.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_explorer att_explorer;

/* Creates an explorer of the network at its own image size, with its precision. Of a network in F64 the
 * answers and what rows are computed from are rounded to F32. The network must outlive it, and its
 * weights may change between runs. On success the caller owns *explorer and frees it with att_explorer_destroy(); on
 * failure *explorer is unchanged. A network without attention has no layers, but its branches can be removed.
 * Attention in place of a convolution (att_pair_attention()) is no layer either. Errors: ERR_UNSUPPORTED (an op that
 * cannot be copied), those of compiling a plan. */
ATT_API ATT_MUST_CHECK att_status att_explorer_create(att_network *network, att_explorer **explorer);
/* As above, for inputs of the shapes of `inputs`, which are as att_explorer_run() takes them: an image of another size,
 * or a text of its own number of tokens. Parameters that are resampled for these shapes keep the values that they have
 * now. outputs: what runs answer with, as in att_network_select_outputs(); NULL: the outputs of the network's task.
 * Errors: also those of att_network_run() for such inputs, and of att_network_select_outputs(). */
ATT_API ATT_MUST_CHECK att_status att_explorer_create_for(att_network *network, const att_batch *inputs,
                                                          const char *outputs, att_explorer **explorer);
ATT_API void att_explorer_destroy(att_explorer **explorer);

/* An attention layer. Tokens 0..prefix-1 are not on the grid; the others fill it row by row. Without a grid grid_h and
 * grid_w are 0. With windows (window_h > 0), a query sees the tokens of its window of the grid, which was rolled by
 * shift_h rows and shift_w columns. The scope lives as long as the explorer. */
typedef struct att_explorer_layer {
    const char *scope; /* "blocks.3.attn" */
    int heads;
    int queries, tokens;        /* equal, except in a layer that pools the tokens and has queries of its own */
    int prefix, grid_h, grid_w; /* the tokens of a text are a grid of one row */
    int window_h, window_w, shift_h, shift_w;
    bool causal;             /* a query sees itself and earlier tokens */
    bool content, positions; /* the terms that its scores have, see att_row_options */
} att_explorer_layer;
ATT_API int att_explorer_layer_count(const att_explorer *explorer);
ATT_API att_explorer_layer att_explorer_layer_at(const att_explorer *explorer, int layer);

/* The residual branches: x + f(x) for each addition of a block. The texts live as long as the explorer. */
typedef struct att_explorer_branch {
    const char *scope;   /* of the addition: "blocks.3.add1" */
    const char *content; /* what f has: "attention", or else "convolution", "MLP" (linear layers) or "pooling"; "": none
                            of these */
} att_explorer_branch;
ATT_API int att_explorer_branch_count(const att_explorer *explorer);
ATT_API att_explorer_branch att_explorer_branch_at(const att_explorer *explorer, int branch);

/* --- changes of the network --------------------------------------------------------------------------------------
 * They hold from the next run on. A new explorer has none. */

/* A head of weights a and values v adds to the output of its layer
 *   KEPT     sum_j a_ij v_j
 *   REMOVED  0
 *   UNIFORM  the mean of the values that query i may see: each of them has the same weight */
typedef enum att_head_change { ATT_HEAD_KEPT, ATT_HEAD_REMOVED, ATT_HEAD_UNIFORM } att_head_change;

/* Errors of all three, which change nothing: ERR_ARGUMENT (no such layer, head, branch or token). Removing a branch:
 * x_{t+1} = x_t, and a ReLU after the addition stays. Removing a token: no query sees its key, in any layer, while the
 * token's own stream goes on; ERR_UNSUPPORTED unless all layers are content attention over the same tokens without
 * windows, ERR_ARGUMENT if it is the last token that remains. */
ATT_API att_status att_explorer_change_head(att_explorer *explorer, int layer, int head, att_head_change change);
ATT_API att_status att_explorer_remove_branch(att_explorer *explorer, int branch, bool removed);
ATT_API att_status att_explorer_remove_token(att_explorer *explorer, int token, bool removed);
/* Whether tokens can be removed. */
ATT_API bool att_explorer_has_removable_tokens(const att_explorer *explorer);
/* Takes all changes back. */
ATT_API void att_explorer_reset(att_explorer *explorer);

/* --- running ----------------------------------------------------------------------------------------------------- */

/* Runs the network on one sample of its own shapes, as att_network_run() takes it; further samples are ignored.
 * *answers: the outputs of the network's task, for att_network_write(); the explorer owns the data, which is valid
 * until its next run. Errors: ERR_NONFINITE, with *answers set, if they contain NaN or infinity; ERR_STOPPED
 * (att_settings.stop, between two operations), after which rows are still those of the run before. */
ATT_API ATT_MUST_CHECK att_status att_explorer_run(att_explorer *explorer, const att_batch *inputs, att_batch *answers);

/* Which terms of the scores count. The scores of query i and key j are s_ij = scale q_i . k_j + t_ij: content and
 * positions. */
typedef struct att_row_options {
    bool content, positions;
    bool scores; /* the scores themselves instead of their softmax */
} att_row_options;
/* Both terms, softmax. */
ATT_API att_row_options att_row_options_defaults(void);

/* Writes row `query` of the map of each head of the last run, with its changes: rows [H, N]. A key that the query does
 * not see (of another window, later than it if the layer is causal, or removed) is NaN. options: NULL means the
 * defaults; terms that the layer does not have count as 0. Of a head that was made uniform, the row is uniform; of a
 * removed head it is the row of the head. Errors: ERR_ARGUMENT (no such layer or query, no run yet). */
ATT_API att_status att_explorer_row(const att_explorer *explorer, int layer, int query, const att_row_options *options,
                                    float *rows);

/* Writes the sum over the queries of the rows of each head's map, each times the query's number in weights [queries]:
 * rows [H, N]. A key that a query does not see counts as 0. With weights 1 / N this is the mean over queries. Errors as
 * above; ERR_STOPPED (att_settings.stop, between two queries). */
ATT_API att_status att_explorer_sum(const att_explorer *explorer, int layer, const double *weights, double *rows);

/* Writes the weights on the patches of the layer's grid: map [grid_h, grid_w]. head: -1: the mean over the heads.
 * query: -1: the mean over the queries, where a key that a query does not see counts as 0; else such a key is NaN.
 * Errors as for att_explorer_row() and att_explorer_sum(); ERR_ARGUMENT (no such head); ERR_UNSUPPORTED if the tokens
 * fill no grid. */
ATT_API att_status att_explorer_map(const att_explorer *explorer, int layer, int head, int query, double *map);

/* Follows attention from a query of a layer back to the tokens of the first layer: row [N], which adds up to 1. With
 * the mean over heads A_l of layer l, row = e_query B_layer ... B_0 and B_l = A_l / 2 + I / 2, where the second half is
 * the skip connection. (Abnar and Zuidema, ACL 2020) Errors as above; ERR_UNSUPPORTED if a layer up to this one has
 * windows or other tokens than this one. */
ATT_API att_status att_explorer_rollout(const att_explorer *explorer, int layer, int query, double *row);

#ifdef __cplusplus
}
#endif
#endif
