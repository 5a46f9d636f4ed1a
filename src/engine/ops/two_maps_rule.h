/* ops/two_maps_rule.h - what mix_axes and mix_pairs, products of values with a map of rows and a map of columns, share.
 */
#ifndef ATT_OPS_TWO_MAPS_RULE_H
#define ATT_OPS_TWO_MAPS_RULE_H

#include "engine/graph/op.h"

/* The inputs of mix_axes and mix_pairs. Those of their gradients have dy before these. */
enum { V, ROW_MAP, COLUMN_MAP, IN_COUNT };
enum { GRAD_DY, GRAD_V, GRAD_ROW_MAP, GRAD_COLUMN_MAP, GRAD_IN_COUNT };

/* The checks of an op. first: the input v. */
typedef struct att_two_maps_rule {
    att_status (*check_inputs)(const att_infer *infer, int first);
    att_shape (*out_shape)(const att_infer *infer, int v);
} att_two_maps_rule;
/* Shape rule of the gradient `op`: the gradients of all inputs, for each sample. */
att_status att_two_maps_infer_grad(att_infer *infer, const att_two_maps_rule *rule);
/* Backward rule. The gradients of the maps are values of each sample, because they are small. */
void att_two_maps_backward(att_backward *backward, const char *grad_op);

#endif
