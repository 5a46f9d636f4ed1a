/* models/checkpoint.h - functions that all families use to inspect a file of tensors. */
#ifndef ATT_MODELS_CHECKPOINT_H
#define ATT_MODELS_CHECKPOINT_H

#include <attscope/checkpoint.h>
#include <attscope/nn.h>

/* Returns whether a tensor says nothing about the network: it is one for which att_checkpoint_owns() is true, PyTorch's
 * num_batches_tracked, a buffer of Swin's or BEiT's attention, or a module's constant. */
bool att_checkpoint_ignores(const att_context *context, const att_tensors *file, const char *name);

/* Returns the module whose constant has this name; NULL if there is none. */
const att_module *att_checkpoint_constant(const att_context *context, const char *name);

/* Returns whether the list of names, which are separated by blanks, contains the name. */
bool att_checkpoint_lists(const char *names, const char *name);
/* Returns what follows "<scope>." in the name; NULL if it does not begin so. */
const char *att_checkpoint_below(const char *name, const char *scope);
/* Parses a number (at most 9999, no leading zeros) before a dot and moves *at past the dot; returns -1 for other texts.
 */
int att_checkpoint_number(const char **at);
/* Parses "<prefix>.<number>.<rest>": returns the number (at most 9999, no leading zeros) and sets *rest. Returns -1 for
 * other names. */
int att_checkpoint_block(const char *name, const char *prefix, const char **rest);
/* Returns whether there is a tensor of this name. */
bool att_checkpoint_has(const att_tensors *file, const char *format, ...) ATT_PRINTF(2, 3);
/* Returns the dimensions of a tensor, stored in *shape; NULL if it is missing, has another rank, or a dimension is
 * outside 1..2^24. */
const int64_t *att_checkpoint_dims(const att_tensors *file, const char *name, int rank, att_shape *shape);
/* Returns a matrix's size along an axis, 0 or 1; 0 if att_checkpoint_dims() returns NULL for the name. */
int64_t att_checkpoint_side(const att_tensors *file, int axis, const char *format, ...) ATT_PRINTF(3, 4);

/* Returns whether shapes are equal except for trailing dimensions of 1: a 1 x 1 convolution is a linear layer. */
bool att_checkpoint_same_shape(att_shape a, att_shape b);

/* As att_model_load(), from tensors called "<prefix><name>". */
att_status att_model_load_prefixed(const att_model *model, const att_tensors *file, const char *prefix,
                                   att_weights *weights);

#endif
