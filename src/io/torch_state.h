/* io/torch_state.h - which of a checkpoint's tensors are the weights (attscope/tensors.h says by what rule). */
#ifndef ATT_IO_TORCH_STATE_H
#define ATT_IO_TORCH_STATE_H

#include "io/pickle.h"
#include "io/tensors.h"

/* att_pickle.advice */
#define ATT_TORCH_ADVICE " (in Python: save the state_dict)"

/* The most bytes of pickles that a file may have. */
enum { ATT_TORCH_MOST_PICKLE = 1 << 30 };

/* Fills `file` from what was read: every storage of *pickle is placed, and as many bytes as it says are in the file.
 * Errors: ERR_FORMAT (no tensors, tensors outside their storage, containers that never end), ERR_UNSUPPORTED,
 * ERR_MEMORY. */
att_status att_torch_state_take(att_tensors *file, const att_pickle *pickle, att_pickle_ref root);

/* Bytes of a storage; -1 where they cannot be counted. */
int64_t att_torch_storage_bytes(const att_pickle_storage *storage);

#endif
