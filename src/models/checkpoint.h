/* models/checkpoint.h - weights under other names. */
#ifndef ATT_MODELS_CHECKPOINT_H
#define ATT_MODELS_CHECKPOINT_H

#include <attscope/checkpoint.h>

/* As att_model_load(), from the tensors "<prefix><name>". */
att_status att_model_load_prefixed(const att_model *model, const att_tensors *file, const char *prefix,
                                   att_weights *weights);

#endif
