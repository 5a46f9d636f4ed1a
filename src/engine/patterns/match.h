/* patterns/match.h - matching and emitting that several patterns share.
 *
 * A pointer to a node is valid until the next node is emitted; a copy of the node stays valid.
 */
#ifndef ATT_PATTERNS_MATCH_H
#define ATT_PATTERNS_MATCH_H

#include "engine/graph/op.h"

/* Inputs of normalize, then those of normalize_sums and normalize_grad. The inputs after NORMALIZE_GRAD_BETA belong to
 * normalize_grad only. */
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

/* The node that computes `value`, if its op is `op`; else NULL. Also NULL if the gradient of `value` is requested: a
 * replacement that bypasses `value` would be missing in that gradient. */
const att_node *att_match(const att_graph *graph, att_value value, const att_op *op);

/* If a normalize node without activation computes `value`, copies that node to *norm and returns true. */
bool att_match_norm(const att_graph *graph, att_value value, att_node *norm);

/* Whether `value` is the sum of two sample values, rest + pooled / rows, where every row of the second is pooled /
 * rows. The gradient of a mean over all rows has this form. Writes *rest and *pooled. */
bool att_match_broadcast_sum(const att_graph *graph, att_value value, att_value *rest, att_value *pooled);

/* Emits y = x B + b, with matrix = [B; b]. */
att_value att_emit_affine(att_graph *graph, att_value x, att_value matrix);

/* Emits the sums of dy and of dy n over the rows of a sample, with n = (x - mean) / sqrt(variance + eps).
 * stats_gamma_beta: the three inputs of the norm after x. attrs: those of the norm. */
void att_emit_norm_sums(att_graph *graph, const void *attrs, att_value dy, att_value x,
                        const att_value *stats_gamma_beta, att_value sums[2]);

#endif
