/* models/signs.h - what tensors that no network here has are a sign of, in words. */
#ifndef ATT_MODELS_SIGNS_H
#define ATT_MODELS_SIGNS_H

#include <attscope/tensors.h>

/* The rank of a tensor's name among the signs, those that say most first; past the last where it is no sign. */
int att_sign_rank(const char *name);

/* ERR_UNSUPPORTED for a file with the tensor `name`, which belongs to none of `what` ("plain ViT or DeiT"), saying
 * what it is a sign of. */
att_status att_sign_refuse(att_context *context, const att_tensors *file, const char *name, const char *what);

#endif
