/* attscope/safetensors.h - writes weights and checkpoints as safetensors files.
 *
 * A file consists of the header's length (u64, little endian), the header (JSON: name -> dtype, shape, offsets;
 * metadata of strings only) and the tensors' data without gaps. The header has at most 100,000,000 bytes. Format:
 * https://github.com/huggingface/safetensors, section "Format". attscope/tensors.h reads such files.
 */
#ifndef ATTSCOPE_SAFETENSORS_H
#define ATTSCOPE_SAFETENSORS_H

#include <attscope/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATT_SAFETENSORS_DTYPE_LIST(X) \
    X(F64, 8)                         \
    X(F32, 4)                         \
    X(F16, 2)                         \
    X(BF16, 2)                        \
    X(I64, 8)                         \
    X(I32, 4)                         \
    X(I16, 2)                         \
    X(I8, 1)                          \
    X(U64, 8)                         \
    X(U32, 4)                         \
    X(U16, 2)                         \
    X(U8, 1)                          \
    X(BOOL, 1)                        \
    X(F8_E5M2, 1)                     \
    X(F8_E4M3, 1)                     \
    X(F8_E8M0, 1)                     \
    X(C64, 8)

typedef enum att_safetensors_dtype {
#define ATT_SAFETENSORS_DTYPE_ENUM(name, bytes) ATT_SAFETENSORS_##name,
    ATT_SAFETENSORS_DTYPE_LIST(ATT_SAFETENSORS_DTYPE_ENUM)
#undef ATT_SAFETENSORS_DTYPE_ENUM
} att_safetensors_dtype;

/* Bytes of an element, 0 for values outside the list. */
ATT_API size_t att_safetensors_dtype_size(att_safetensors_dtype dtype);
/* Returns "F32" and the like; never NULL. */
ATT_API const char *att_safetensors_dtype_name(att_safetensors_dtype dtype);

typedef struct att_safetensors_tensor {
    const char *name; /* UTF-8, unique, not "__metadata__" */
    att_safetensors_dtype dtype;
    att_shape shape;
    const void *data; /* row-major elements; NULL: `fill` supplies them */
} att_safetensors_tensor;

typedef struct att_safetensors_pair {
    const char *key, *value; /* UTF-8, keys unique */
} att_safetensors_pair;

/* A file that describes the tensors, in the same folder: config.json. */
typedef struct att_safetensors_beside {
    const char *path;
    const void *bytes; /* NULL: there is to be no such file */
    size_t size;
} att_safetensors_beside;

typedef struct att_safetensors_content {
    const att_safetensors_tensor *tensors;
    int tensor_count;
    const att_safetensors_pair *metadata;
    int metadata_count;
    /* Supplies the data of tensors[index]: writes `bytes` bytes to `out` (aligned to 64). Called once for each tensor
     * whose data is NULL, when that tensor is written. An error ends the writing and is returned. NULL if every tensor
     * has data. */
    att_status (*fill)(void *user, int index, void *out, size_t bytes);
    void *fill_user;
    /* Is replaced or removed together with the file at `path`: after a failure both are unchanged. If the process ends
     * while they are replaced, there is no such file, rather than one of other tensors. NULL: no other file. */
    const att_safetensors_beside *beside;
} att_safetensors_content;

/* Writes the file at `path` atomically (attscope/file.h); after a failure the file is unchanged. Allocates memory for
 * the header and for the largest tensor whose data is NULL. Tensors are ordered by element size, largest first, then by
 * name. Errors: ERR_ARGUMENT (an invalid name, shape, type or key), ERR_IO, ERR_MEMORY, and the error that `fill`
 * returned. */
ATT_API att_status att_safetensors_write(att_context *context, const char *path,
                                         const att_safetensors_content *content);

#ifdef __cplusplus
}
#endif
#endif
