/* io/torch_distributed.h - reads folders of torch.distributed.checkpoint, which FSDP, Accelerate and Lightning write.
 *
 * FOLDER/.metadata is a pickle: a table of tensors, and where their chunks are. Beside it are files (__0_0.distcp), in
 * which each chunk is a file of torch.save() of its own. Format: torch/distributed/checkpoint/metadata.py and
 * filesystem.py of PyTorch 2.15.
 */
#ifndef ATT_IO_TORCH_DISTRIBUTED_H
#define ATT_IO_TORCH_DISTRIBUTED_H

#include "base/io/pickle.h"
#include "base/io/tensors.h"

/* Whether a pickled value is such a table. */
bool att_torch_is_distributed(const att_pickle *pickle, att_pickle_ref root);
/* Sets items, origin and shards of `file`: of file->part all tensors; else those under the usual key of a network
 * (att_torch_weight_key()), at the beginning of their names or after a first part that all names share; else all.
 * Tensors must be whole, or split along their first dimension; those of several chunks are read into memory. Errors:
 * ERR_FORMAT, ERR_UNSUPPORTED, ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
att_status att_torch_distributed_collect(att_tensors *file, const att_pickle *pickle, att_pickle_ref root);

#endif
