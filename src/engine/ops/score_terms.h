/* ops/score_terms.h - attributes of score_terms. */
#ifndef ATT_OPS_SCORE_TERMS_H
#define ATT_OPS_SCORE_TERMS_H

#include <attscope/graph.h>

#include "engine/ops/attention.h"

/* attention: of the scores; values have no meaning. A head of a part of the queries has `width` columns; the first head
 * begins at column q_offset of a row, that of the keys at column k_offset. Other columns are ignored. */
typedef struct att_score_terms_attrs {
    att_attention_attrs attention;
    int64_t query_parts, key_parts;
    int64_t width, q_offset, k_offset;
} att_score_terms_attrs;

enum { ATT_SCORE_MOST_QUERY_PARTS = 3, ATT_SCORE_MOST_KEY_PARTS = 2, ATT_SCORE_EXTRA = 3 };
enum {
    ATT_SCORE_MOST_INPUTS = ATT_SCORE_MOST_QUERY_PARTS + ATT_SCORE_MOST_KEY_PARTS + ATT_SCORE_EXTRA,
    ATT_SCORE_MOST_TERMS = ATT_SCORE_MOST_QUERY_PARTS * ATT_SCORE_MOST_KEY_PARTS + 2
};

/* The inputs of a node: parts of the queries, parts of the keys, and three optional ones as attention has them:
 * relative, rows, columns. */
static inline int att_score_relative(const att_score_terms_attrs *attrs)
{
    return (int)(attrs->query_parts + attrs->key_parts);
}

/* Covariances of the terms of attention's scores: y [H, T, T] is the mean over the queries i of the covariance over the
 * keys j of terms s and t. Terms, in this order: scale q_a . k_b for each part a of the queries and, for each, each
 * part b of the keys; the number of `relative`; the sum of the numbers of rows and columns, where they are given. Keys
 * are all tokens that the query may attend to: not those of other windows, nor those that are masked because the grid
 * was rolled or, with causality, follow the query. in: see att_score_relative(). */
att_value att_score_terms(att_graph *graph, const att_score_terms_attrs *attrs,
                          const att_value in[ATT_SCORE_MOST_INPUTS]);

#endif
