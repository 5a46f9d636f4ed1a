/* io/safetensors.h - shared by the reader and the writer of safetensors. */
#ifndef ATT_IO_SAFETENSORS_H
#define ATT_IO_SAFETENSORS_H

#include <attscope/safetensors.h>

#define ATT_SAFETENSORS_METADATA "__metadata__"

enum { ATT_SAFETENSORS_LENGTH_BYTES = 8, ATT_SAFETENSORS_MAX_HEADER = 100000000 };

/* Converts `count` elements to f32, rounded to nearest. `bytes` may be misaligned. Returns false if the type cannot be
 * converted. */
bool att_safetensors_to_f32(att_safetensors_dtype dtype, const uint8_t *bytes, float *out, int64_t count);

#endif
