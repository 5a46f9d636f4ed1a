/* models/foreign_tensors.h - explains tensors of networks that attscope does not have. */
#ifndef ATT_MODELS_FOREIGN_TENSORS_H
#define ATT_MODELS_FOREIGN_TENSORS_H

#include <attscope/tensors.h>

/* Returns the rank of a tensor's name in the list of known foreign names, the most specific first; the length of the
 * list for names that are not in it. */
int att_foreign_rank(const char *name);

/* Returns ERR_UNSUPPORTED for a file whose tensor `name` belongs to no `what` ("plain ViT or DeiT"). The message says
 * which kind of network has such a tensor, if known. */
att_status att_foreign_refuse(att_context *context, const att_tensors *file, const char *name, const char *what);

#endif
