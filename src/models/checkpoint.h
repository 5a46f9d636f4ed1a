/* models/checkpoint.h - weights under other names, and what are none. */
#ifndef ATT_MODELS_CHECKPOINT_H
#define ATT_MODELS_CHECKPOINT_H

#include <attscope/checkpoint.h>

/* Whether a tensor says nothing of the network: one that att_checkpoint_owns(), a count that PyTorch keeps, a module's
 * constant. */
bool att_checkpoint_passes_over(const att_tensors *file, const char *name);

/* Whether shapes are the same but for ones at the end: a convolution of one pixel is a linear layer. */
bool att_checkpoint_same_shape(att_shape a, att_shape b);

/* As att_model_load(), from the tensors "<prefix><name>". */
att_status att_model_load_prefixed(const att_model *model, const att_tensors *file, const char *prefix,
                                   att_weights *weights);

#endif
