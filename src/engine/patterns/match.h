/* patterns/match.h - matching and emitting that several patterns share.
 *
 * A pointer to a node is valid until the next node is emitted; a copy of the node stays valid.
 */
#ifndef ATT_PATTERNS_MATCH_H
#define ATT_PATTERNS_MATCH_H

#include "engine/graph/op.h"

/* The node that computes `value`, if its op is `op`; else NULL. Also NULL if the gradient of `value` is requested: a
 * replacement that bypasses `value` would be missing in that gradient. */
const att_node *att_match(const att_graph *graph, att_value value, const att_op *op);

/* Whether `value` is the sum of two sample values, rest + pooled / rows, where every row of the second is pooled /
 * rows. The gradient of a mean over all rows has this form. Writes *rest and *pooled. */
bool att_match_broadcast_sum(const att_graph *graph, att_value value, att_value *rest, att_value *pooled);

/* Emits y = x B + b, with matrix = [B; b]. */
att_value att_emit_affine(att_graph *graph, att_value x, att_value matrix);

#endif
