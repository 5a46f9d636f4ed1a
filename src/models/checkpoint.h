/* models/checkpoint.h - what every family asks of a file of tensors: names, shapes, and what are no weights. */
#ifndef ATT_MODELS_CHECKPOINT_H
#define ATT_MODELS_CHECKPOINT_H

#include <attscope/checkpoint.h>
#include <attscope/nn.h>

/* Whether a tensor says nothing of the network: one that att_checkpoint_owns(), a count that PyTorch keeps, a module's
 * constant. */
bool att_checkpoint_passes_over(const att_context *context, const att_tensors *file, const char *name);

/* The module whose constant bears that name; NULL: none. */
const att_module *att_checkpoint_constant(const att_context *context, const char *name);

/* Whether the name is one of the list, which ends in NULL. */
bool att_checkpoint_lists(const char *const *names, const char *name);
/* "<prefix>.<number>.<rest>": the number, up to 9999 without leading zeros, and the rest; -1 for other names. */
int att_checkpoint_block(const char *name, const char *prefix, const char **rest);
bool att_checkpoint_has(const att_tensors *file, const char *name);
/* The dims, in *shape, of a tensor of this rank, each in 1..2^24; NULL where there is none or it is otherwise. */
const int64_t *att_checkpoint_dims(const att_tensors *file, const char *name, int rank, att_shape *shape);

/* Whether shapes are the same but for ones at the end: a convolution of one pixel is a linear layer. */
bool att_checkpoint_same_shape(att_shape a, att_shape b);

/* As att_model_load(), from the tensors "<prefix><name>". */
att_status att_model_load_prefixed(const att_model *model, const att_tensors *file, const char *prefix,
                                   att_weights *weights);

#endif
