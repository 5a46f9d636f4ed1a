/* ops/attention_rule.h - parts of the shape rules of attention and its gradient. `first` is the node's input q. */
#ifndef ATT_OPS_ATTENTION_RULE_H
#define ATT_OPS_ATTENTION_RULE_H

#include "base/core/error.h"
#include "engine/ops/attention.h"

/* A node has no inputs for terms, or all three, of which some may be absent, or these and one for the terms of keys. */
att_status att_attention_check_count(const att_infer *infer, int first);
att_status att_attention_check_drop_rate(att_context *context, const att_attention_attrs *attrs);
/* Checks the inputs q, k and v, and divides them. */
att_status att_attention_check_operands(const att_infer *infer, int first,
                                        att_attention_operand operand[ATT_ATTENTION_OPERANDS]);
/* Checks the terms; operands and grid have been checked. */
att_status att_attention_check_terms(const att_infer *infer, int first,
                                     const att_attention_operand operand[ATT_ATTENTION_OPERANDS]);

/* The cost of `of_keys` products of N x M x d and `of_values` of N x M x e per head, and about 10 operations per score.
 * in: from q on */
void att_attention_cost(const att_desc *in, const att_attention_attrs *attrs, int of_keys, int of_values,
                        att_cost *cost);

#endif
