/* models/checkpoint.h - tensors of our own checkpoints that are no weights, and weights under other names. */
#ifndef ATT_MODELS_CHECKPOINT_H
#define ATT_MODELS_CHECKPOINT_H

#include <attscope/models.h>

/* Whether a file with our metadata holds this tensor for continuing a training: an average of the weights
 * ("ema.<name>") or the optimiser's ("optimizer.<slot>.<name>"). */
bool att_checkpoint_owns(const att_safetensors *file, const char *name);

/* As att_model_load(), from the tensors "<prefix><name>". */
att_status att_model_load_prefixed(const att_model *model, const att_safetensors *file, const char *prefix,
                                   att_weights *weights);

#endif
