/* io/safetensors.h - what reading and writing safetensors share. */
#ifndef ATT_IO_SAFETENSORS_H
#define ATT_IO_SAFETENSORS_H

#include <attscope/safetensors.h>

#define ATT_SAFETENSORS_METADATA "__metadata__"

enum { ATT_SAFETENSORS_LENGTH_BYTES = 8, ATT_SAFETENSORS_MAX_HEADER = 100000000 };

/* out[i] = the f32 nearest to element i of `bytes`, which may be misaligned. False where the type has no such
 * conversion. */
bool att_safetensors_to_f32(att_safetensors_dtype dtype, const uint8_t *bytes, float *out, int64_t count);

#endif
