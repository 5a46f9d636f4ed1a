/* io/torch_options.h - the options of a training script that a checkpoint of PyTorch keeps beside the weights. */
#ifndef ATT_IO_TORCH_OPTIONS_H
#define ATT_IO_TORCH_OPTIONS_H

#include "io/pickle.h"
#include "io/tensors.h"

/* *text: the options under `key` that describe a network, as a JSON object in the file's arena (attscope/tensors.h says
 * how); NULL where the checkpoint `root` has none. Errors: ERR_MEMORY. */
att_status att_torch_options(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                             const char **text);
/* The same of arguments of the network's constructor; a text that is no JSON where they are no dictionary of texts. */
att_status att_torch_arguments(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                               const char **text);

#endif
