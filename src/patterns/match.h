/* patterns/match.h - what several patterns look for.
 *
 * A pointer to a node is valid until the next node is emitted; a copy of the node stays valid.
 */
#ifndef ATT_PATTERNS_MATCH_H
#define ATT_PATTERNS_MATCH_H

#include "graph/op.h"

/* The inputs of normalize, and of normalize_sums and normalize_grad; those behind NORMALIZE_GRAD_BETA are of
 * normalize_grad alone. */
enum { NORMALIZE_X, NORMALIZE_STATS, NORMALIZE_GAMMA, NORMALIZE_BETA, NORMALIZE_IN_COUNT };
enum {
    NORMALIZE_GRAD_DY,
    NORMALIZE_GRAD_X,
    NORMALIZE_GRAD_STATS,
    NORMALIZE_GRAD_GAMMA,
    NORMALIZE_GRAD_BETA,
    NORMALIZE_SUMS_IN_COUNT,
    NORMALIZE_GRAD_FACTOR = NORMALIZE_SUMS_IN_COUNT + 2,
    NORMALIZE_GRAD_POOLED,
    NORMALIZE_GRAD_IN_COUNT
};

/* The node that makes `value` where that is one of `op`; else NULL. Also NULL where the gradient of `value` is asked
 * for: a node that then read the maker's inputs instead of `value` would be missing in that gradient. */
const att_node *att_match(const att_graph *graph, att_value value, const att_op *op);

/* Copies the normalize node that makes `value`, where it has no activation. */
bool att_match_norm(const att_graph *graph, att_value value, att_node *norm);

/* Whether `value` = rest + pooled / rows is the sum of two sample values, the second of which has pooled / rows in
 * every row, as the gradient of a mean over all rows has; writes rest and pooled. */
bool att_match_broadcast_sum(const att_graph *graph, att_value value, att_value *rest, att_value *pooled);

/* y = x B + b, matrix = [B; b]. */
att_value att_emit_affine(att_graph *graph, att_value x, att_value matrix);

/* The sums of dy and of dy n over the rows of a sample, n = (x - mean) / sqrt(variance + eps). stats_gamma_beta: the
 * three inputs of the norm behind x; attrs: those of the norm. */
void att_emit_norm_sums(att_graph *graph, const void *attrs, att_value dy, att_value x,
                        const att_value *stats_gamma_beta, att_value sums[2]);

#endif
