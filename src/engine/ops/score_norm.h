/* ops/score_norm.h - attributes of score_norm. */
#ifndef ATT_OPS_SCORE_NORM_H
#define ATT_OPS_SCORE_NORM_H

#include <attscope/graph.h>

/* A head of queries reads `width` outputs of W_q from q_offset on, heads one after the other, as one of keys does of
 * W_k from k_offset on; head h of the queries belongs to head h / (heads / key_heads) of the keys. */
typedef struct att_score_norm_attrs {
    int64_t heads, key_heads, width, q_offset, k_offset;
    double scale;
} att_score_norm_attrs;

/* Adds a score_norm node. w_q, w_k: weights of linear layers, [outputs, C]. Returns y [heads], the largest singular
 * value of scale W_q,h^T W_k,h' for each head h of queries and its head h' of keys. No gradient. */
att_value att_score_norm(att_graph *graph, const att_score_norm_attrs *attrs, att_value w_q, att_value w_k);

#endif
