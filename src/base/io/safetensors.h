/* io/safetensors.h - shared by the reader and the writer of safetensors. */
#ifndef ATT_IO_SAFETENSORS_H
#define ATT_IO_SAFETENSORS_H

#include <attscope/safetensors.h>

#include "base/io/file.h"

#define ATT_SAFETENSORS_METADATA "__metadata__"

enum { ATT_SAFETENSORS_LENGTH_BYTES = 8, ATT_SAFETENSORS_MAX_HEADER = 100000000 };

/* Converts `count` elements to f32, rounded to nearest. `bytes` may be misaligned. Returns false if the type cannot be
 * converted. */
bool att_safetensors_to_f32(att_safetensors_dtype dtype, const uint8_t *bytes, float *out, int64_t count);

/* Begins a file whose tensors are written part by part: opens a writer for `path` and writes the header. The content's
 * `data` and `fill` are ignored. offsets: [tensor_count], receives the place of each tensor's first byte in the file.
 * On success the caller writes every byte of the tensors with att_file_writer_place(), and then commits or aborts
 * *file. Errors: those of att_safetensors_write(). */
ATT_FOR_LAB att_status att_safetensors_begin(att_context *context, const char *path,
                                             const att_safetensors_content *content, uint64_t *offsets,
                                             att_file_writer **file);

/* Returns the type with which tensors of `dtype` are stored. */
att_safetensors_dtype att_safetensors_dtype_of(att_dtype dtype);

#endif
