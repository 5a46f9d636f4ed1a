/* models/checkpoint.h - weights under other names, and what are none. */
#ifndef ATT_MODELS_CHECKPOINT_H
#define ATT_MODELS_CHECKPOINT_H

#include <attscope/checkpoint.h>

/* Whether a tensor says nothing of the network: one that att_checkpoint_owns(), or a count that PyTorch keeps. */
bool att_checkpoint_passes_over(const att_tensors *file, const char *name);

/* As att_model_load(), from the tensors "<prefix><name>". */
att_status att_model_load_prefixed(const att_model *model, const att_tensors *file, const char *prefix,
                                   att_weights *weights);

#endif
