/* ops/rule.h - helpers for shape rules and backward rules. */
#ifndef ATT_OPS_RULE_H
#define ATT_OPS_RULE_H

#include "base/core/error.h"
#include "engine/graph/op.h"
#include "engine/ops/activation.h"

/* The shape of a description as text, for messages. Valid until the end of the enclosing block. */
#define ATT_SHOWN(desc) att_shape_format((desc)->shape, (char[96]){0}, 96)

/* Fails like att_fail(), with a message that begins with the op's name. Returns `status`. */
att_status att_rule_fail(const att_infer *infer, att_status status, const char *format, ...) ATT_PRINTF(3, 4);

/* Checks of inputs. Each returns ATT_OK, or fails with att_rule_fail(). */

/* The node has exactly `count` inputs, absent ones included. */
att_status att_rule_count(const att_infer *infer, int count);
/* Input i (`name` in messages) is present, of `kind`, of the same float type as input 0, and not empty. */
att_status att_rule_require(const att_infer *infer, int i, const char *name, att_kind kind);
/* Whether input i is of that kind. In a derived node a shared input also counts as a sample value. */
bool att_rule_is(const att_infer *infer, int i, att_kind kind);
/* Like att_rule_require(), and the input has `rank` axes. */
att_status att_rule_require_rank(const att_infer *infer, int i, const char *name, att_kind kind, int rank);
/* Like att_rule_require(), and input i has the shape of input j. */
att_status att_rule_require_like(const att_infer *infer, int i, const char *name, att_kind kind, int j);
/* Like att_rule_require(), and the input has at least one axis. */
att_status att_rule_require_rows(const att_infer *infer, int i, const char *name);
/* Like att_rule_require(), and the input has this shape. */
att_status att_rule_require_shape(const att_infer *infer, int i, const char *name, att_kind kind, att_shape shape);
/* The target of a loss over classes, input `logits` + 1, is the class of each sample (I32), or a number for each logit,
 * which is not smoothed: `smoothing` must then be 0, else lie in [0, 1). */
att_status att_rule_require_target(const att_infer *infer, int logits, double smoothing);
/* `eps`, which keeps a division finite, is positive and finite. */
att_status att_rule_require_eps(const att_infer *infer, double eps);
/* Like att_rule_require(), for a shared vector with as many elements as the last axis of input j. */
att_status att_rule_require_vector(const att_infer *infer, int i, const char *name, int j);

/* Input i is an I32 for each sample: how many rows of another input count. */
att_status att_rule_require_count(const att_infer *infer, int i);

/* Size of the last axis, and product of all other axes. The rank must be at least 1. */
int64_t att_rule_columns(const att_desc *desc);
int64_t att_rule_rows(const att_desc *desc);
/* The shape with the last axis reduced to 1. */
att_shape att_rule_reduced_shape(const att_desc *desc);

/* Adds an output. Returns ATT_OK. */
att_status att_rule_out(att_infer *infer, att_dtype dtype, att_kind kind, att_shape shape);

/* The shape rule of an optimiser. Inputs: a range of the gradient, and the factor that scales it. Outputs, updated in
 * place: the same range of the weights, then of each slot of the optimiser. `slots` is the number of outputs, including
 * the weights. */
att_status att_rule_update(att_infer *infer, int slots);

/* Shape rules. One sample input x, and an output of its type and shape. */
att_status att_rule_infer_like_x(att_infer *infer);
/* Sample inputs dy, and x or y, of one shape, and an output of dy's type and shape. */
att_status att_rule_infer_grad_x(att_infer *infer);
att_status att_rule_infer_grad_y(att_infer *infer);

/* Backward rules of an op y = op(x), whose gradient is an op without attributes, named <op>_grad:
 * dx = <op>_grad(dy, x), <op>_grad(dy, y), or <op>_grad(dy, x, y). */
void att_rule_backward_x(att_backward *backward);
void att_rule_backward_y(att_backward *backward);
void att_rule_backward_xy(att_backward *backward);

/* Emits a node, as att_emit() does, and adds its first output to the gradient of input i. */
void att_rule_add_node(att_backward *backward, int i, const char *op, const void *attrs, const att_value *in,
                       int in_count);
/* Emits the node op(dy), dy the gradient of output 0, and adds it to the gradient of input 0. */
void att_rule_add_of_dy(att_backward *backward, const char *op, const void *attrs);
/* If input i needs a gradient, adds the node op(dy, input `other`) to it. */
void att_rule_add_product(att_backward *backward, int i, const char *op, const void *attrs, int other);
/* Emits a node with at most 8 outputs, and adds output i to the gradient of input i, for each of the first `outputs`
 * inputs that needs a gradient. */
void att_rule_add_outputs(att_backward *backward, const char *op, const void *attrs, const att_value *in, int in_count,
                          int outputs);

/* Adds the sum of `gradient` over samples and over all but its last `axes` axes to the gradient of input i. */
void att_rule_add_sum(att_backward *backward, int i, att_value gradient, int axes);

/* Cost of an op that copies without arithmetic. */
void att_rule_copy_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost);

/* For absorb(): if the consumer only adds a sample value to the producer's out[0], and the producer's input i is
 * absent, makes that value the producer's input i and returns true. */
bool att_rule_absorb_added(att_node *producer, const att_node *consumer, int i);

/* For absorb(): if the consumer is relu and there is no activation yet, sets the activation and returns true. */
bool att_rule_absorb_relu(att_activation *activation, const att_node *consumer);

/* For absorb() of ops of the form y = act(... + input i): absorbs an addition or a ReLU, but nothing once an activation
 * is set. */
bool att_rule_absorb_finish(att_node *producer, att_activation *activation, const att_node *consumer, int i);

#endif
