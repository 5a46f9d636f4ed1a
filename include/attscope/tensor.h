/* attscope/tensor.h - element types, shapes, and tensors in the caller's memory.
 *
 * Shape letters have the same meaning in all headers: B batch, G samples of a group, N tokens, C channels, H heads, D
 * head width, h x w a grid of tokens or pixels, O outputs, I inputs. Layout is row-major, channels last.
 */
#ifndef ATTSCOPE_TENSOR_H
#define ATTSCOPE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, bytes of an element, name in safetensors files) */
#define ATT_DTYPE_LIST(X) \
    X(F32, 4, "F32")      \
    X(F64, 8, "F64")      \
    X(BF16, 2, "BF16")    \
    X(I32, 4, "I32")      \
    X(U8, 1, "U8")

typedef enum att_dtype {
#define ATT_DTYPE_ENUM(name, bytes, text) ATT_##name,
    ATT_DTYPE_LIST(ATT_DTYPE_ENUM)
#undef ATT_DTYPE_ENUM
} att_dtype;

/* Return the size of an element in bytes, and the name of the type; 0 and "unknown" for values outside the list. */
ATT_API size_t att_dtype_size(att_dtype dtype);
ATT_API const char *att_dtype_name(att_dtype dtype);

enum { ATT_MAX_RANK = 5 };

typedef struct att_shape {
    int rank; /* 0 (a scalar) .. ATT_MAX_RANK */
    int64_t dims[ATT_MAX_RANK];
} att_shape;

/* Returns the number of elements, 1 for a scalar; -1 if a dimension is negative, the number exceeds INT64_MAX / 16, or
 * the rank exceeds ATT_MAX_RANK. */
ATT_API int64_t att_shape_count(att_shape shape);
/* Returns whether both shapes are equal; false if a rank exceeds ATT_MAX_RANK. */
ATT_API bool att_shape_equal(att_shape a, att_shape b);
/* Writes "[2, 3]" ("of rank 6" if the rank exceeds ATT_MAX_RANK), truncated to `size` bytes, and returns `text`. */
ATT_API char *att_shape_format(att_shape shape, char *text, size_t size);

/* att_shape_of(2, 3) is the shape [2, 3]. */
#ifndef __cplusplus
#define att_shape_of(...) ((att_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#else
extern "C++" {
template <typename... Dims> inline att_shape att_shape_of(Dims... dims)
{
    return att_shape{static_cast<int>(sizeof...(Dims)), {static_cast<int64_t>(dims)...}};
}
}
#endif

/* A tensor in host memory. Each function that takes or returns a tensor says who owns `data`. */
typedef struct att_tensor {
    att_dtype dtype;
    att_shape shape;
    void *data;
} att_tensor;

#ifdef __cplusplus
}
#endif
#endif
