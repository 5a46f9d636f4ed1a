/* io/torch_state.h - finds the weights in a PyTorch checkpoint, by the rules in attscope/tensors.h. */
#ifndef ATT_IO_TORCH_STATE_H
#define ATT_IO_TORCH_STATE_H

#include "base/io/pickle.h"
#include "base/io/tensors.h"

/* For att_pickle.advice. */
#define ATT_TORCH_ADVICE " (in Python: save the state_dict)"

/* Limit on the bytes of the pickles in a file. */
enum { ATT_TORCH_MOST_PICKLE = 1 << 30 };

/* Sets items, metadata, origin and has_average of `file` from the pickled value `root`. Caller has set the place of
 * every storage and checked that its bytes are inside the file. Errors: ERR_FORMAT (no tensors, a tensor outside its
 * storage, containers that contain themselves), ERR_UNSUPPORTED, ERR_MEMORY. */
att_status att_torch_state_collect(att_tensors *file, const att_pickle *pickle, att_pickle_ref root);

/* The keys under which programs store a network's weights, the most usual first; NULL past the last. */
const char *att_torch_weight_key(int index);
/* The same for the moving average of the weights. */
const char *att_torch_average_key(int index);

/* Sets *state to the members of an object that is a network of PyTorch (torch.nn.Module), saved as a whole. Returns
 * false for other values. */
bool att_torch_module_state(const att_pickle *pickle, att_pickle_ref ref, att_pickle_ref *state);

/* Returns the size of a storage in bytes, or -1 on overflow. */
int64_t att_torch_storage_bytes(const att_pickle_storage *storage);

#endif
