/* ops/mixing.h - attention whose scores do not depend on the sample, as products of values with maps. The ops have the
 * attributes of attention. */
#ifndef ATT_OPS_MIXING_H
#define ATT_OPS_MIXING_H

#include <attscope/ops.h>

#include "engine/ops/attention.h"

/* Adds the nodes of an attention without queries and keys. Returns the result of the last one, a node of the op
 * mix_tokens or mix_axes. attrs: without windows and causality; terms: shared ones only, at least one. */
att_value att_mixing_attention(att_graph *graph, att_value v, const att_attention_attrs *attrs,
                               const att_attention_terms *terms);

/* att_op.in_training of mix_tokens and mix_axes: a product with the map after dropout. */
att_value att_mixing_in_training(att_graph *graph, const att_node *node);

/* The tables of a node of mix_tokens or mix_axes: of a node that att_mixing_attention() returned. */
att_attention_terms att_mixing_terms(const att_graph *graph, const att_node *node);

/* Derived table [S, H], or [S + 3, H] if `relative` has numbers of prefix tokens: relative, which may be ATT_NONE, plus
 * the numbers of rows and columns. The grid is that of the window, if there are windows. */
att_value att_join_shifts(att_graph *graph, const att_attention_attrs *attrs, const att_attention_terms *terms);

/* Constant zeros of the graph's type. */
att_value att_zeros(att_graph *graph, att_shape shape);

#endif
