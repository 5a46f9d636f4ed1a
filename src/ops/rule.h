/* ops/rule.h - what shape rules and backward rules share. */
#ifndef ATT_OPS_RULE_H
#define ATT_OPS_RULE_H

#include "core/error.h"
#include "graph/op.h"
#include "ops/activation.h"

/* A description's shape as text, for a message; lives to the end of the enclosing block. */
#define ATT_SHOWN(desc) att_shape_format((desc)->shape, (char[96]){0}, 96)

/* Each answers ATT_OK, or fails with a sentence that begins with the op's name. */

/* The node was made with exactly `count` inputs (absent ones count). */
att_status att_rule_count(const att_infer *infer, const char *op, int count);
/* Input i, called `name` in messages, is there, of `kind`, of a float type, the same as input 0's, and not empty. */
att_status att_rule_take(const att_infer *infer, const char *op, int i, const char *name, att_kind kind);
/* Whether input i is of that kind; a derived node's shared inputs stand for sample values, too. */
bool att_rule_is(const att_infer *infer, int i, att_kind kind);
/* As take, and it has `rank` axes. */
att_status att_rule_take_rank(const att_infer *infer, const char *op, int i, const char *name, att_kind kind, int rank);
/* As take, and input i has the shape of input j. */
att_status att_rule_take_like(const att_infer *infer, const char *op, int i, const char *name, att_kind kind, int j);
/* As take, and it has at least one axis. */
att_status att_rule_take_rows(const att_infer *infer, const char *op, int i, const char *name);
/* As take, and it has this shape. */
att_status att_rule_take_shape(const att_infer *infer, const char *op, int i, const char *name, att_kind kind,
                               att_shape shape);
/* As take for a shared vector whose elements are as many as the last axis of input j has. */
att_status att_rule_take_vector(const att_infer *infer, const char *op, int i, const char *name, int j);

/* Elements of a row, and rows: all axes but the last. The rank is at least 1. */
int64_t att_rule_columns(const att_desc *desc);
int64_t att_rule_rows(const att_desc *desc);
/* Its shape with a last axis of 1: one number for each row. */
att_shape att_rule_one_a_row(const att_desc *desc);

/* Appends an output. */
void att_rule_out(att_infer *infer, att_dtype dtype, att_kind kind, att_shape shape);

/* The whole shape rule of an optimiser: a range of the gradient and what it is scaled by in; the range of the weights
 * and those of the slots, `slots` in all, are updated in place. */
att_status att_rule_update(att_infer *infer, const char *op, int slots);

/* Gives input i the sum of `gradient` over samples and all but its last `axes` axes. */
void att_rule_give_sum(att_backward *backward, int i, att_value gradient, int axes);

/* The cost of an op that moves and computes nothing. */
void att_rule_cost_of_moving(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost);

/* For absorb(): where the consumer adds the producer's out[0] to another sample value and does no more, and the
 * producer has no input i yet, makes that value its input i. */
bool att_rule_absorb_added(att_node *producer, const att_node *consumer, int i);

/* For absorb(): where the consumer is relu and there is no activation yet, notes it. */
bool att_rule_absorb_relu(att_activation *activation, const att_node *consumer);

/* For absorb() of y = act(... + input i): either of these, nothing after the activation. */
bool att_rule_absorb_finish(att_node *producer, att_activation *activation, const att_node *consumer, int i);

#endif
