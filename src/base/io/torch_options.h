/* io/torch_options.h - reads the options of a training script, which a PyTorch checkpoint may store with the weights.
 */
#ifndef ATT_IO_TORCH_OPTIONS_H
#define ATT_IO_TORCH_OPTIONS_H

#include "base/io/pickle.h"
#include "base/io/tensors.h"

/* Sets *text to the options under `key` that describe the network, as a JSON object in the file's arena
 * (att_tensors_metadata() documents it), or to NULL if the checkpoint `root` has none. Error: ERR_MEMORY. */
att_status att_torch_options(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                             const char **text);
/* Does the same for the arguments of the network's constructor. If they are not a dictionary whose keys are short
 * texts, *text is "unreadable", which is not valid JSON. */
att_status att_torch_arguments(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                               const char **text);
/* Sets *text to the names of the classes, one on each line, or to their colours, "#0060ff" on each line, which
 * OpenMMLab's programs store under "meta"; NULL if there are none. Error: ERR_MEMORY. */
att_status att_torch_classes(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                             const char **text);
att_status att_torch_colours(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                             const char **text);
/* The same for the configuration of the training, a text in Python. */
att_status att_torch_configuration(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                                   const char **text);
/* Adds to the metadata what the attributes of a network that was saved whole say: the settings that tensors do not
 * show, as a JSON object under ATT_TENSORS_ATTRIBUTES, and timm's configuration under "config". state: from
 * att_torch_module_state(), all of whose modules have been visited. Error: ERR_MEMORY. */
att_status att_torch_module_settings(att_tensors *file, const att_pickle *pickle, att_pickle_ref state);

#endif
