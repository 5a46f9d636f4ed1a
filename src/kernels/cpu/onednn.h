/* kernels/cpu/onednn.h - matrix products by oneDNN 2.x or 3.x: onednn.c and onednn_inner.h alone know which, and
 * onednn.c alone touches what oneDNN and libgomp keep per process and per thread.
 *
 * Primitives are made under one OpenMP thread (they latch the number) and run under one; the caller's number is
 * restored. A context whose tier was capped caps oneDNN's instruction set as well, for the whole process and only
 * where it is the first to use oneDNN: oneDNN allows no later change.
 */
#ifndef ATT_KERNELS_CPU_ONEDNN_H
#define ATT_KERNELS_CPU_ONEDNN_H

#include <attscope/tensor.h>

#include "core/export.h"

/* to [rows, columns] = a [rows, inner] b [inner, columns] (+ bias [columns]), summed in f32. Bf16 needs a context that
 * has it. */
typedef struct att_product_spec {
    int64_t rows, inner, columns;
    att_dtype dtype, to; /* ATT_F32, ATT_BF16: of a and b, and of the result; bias and b before packing are f32 */
    bool a_transposed;   /* a lies as [inner, rows] */
    bool b_transposed;   /* b lies as [columns, inner] */
    bool pack;           /* b is given in the product's own layout, made by att_product_pack() */
    bool bias;
    const struct att_product *layout_of; /* a packed product whose packed b this one takes; NULL: its own layout */
} att_product_spec;

typedef struct att_product att_product;

/* On success *product is the caller's, to be freed with att_product_destroy(); it may then be run by several threads at
 * a time. Errors: ERR_MEMORY, ERR_INTERNAL with oneDNN's reason. */
ATT_FOR_LAB att_status att_product_create(att_context *context, const att_product_spec *spec, att_product **product);
/* NULL is allowed. */
ATT_FOR_LAB void att_product_destroy(att_context *context, att_product *product);

/* Bytes that each running thread brings, aligned to 64. */
ATT_FOR_LAB size_t att_product_scratch_bytes(const att_product *product);
/* Bytes of packed b, with what packing itself needs behind it. */
ATT_FOR_LAB size_t att_product_packed_bytes(const att_product *product);
/* Equal keys mean equal layouts of packed b. */
ATT_FOR_LAB uint64_t att_product_packed_key(const att_product *product);
/* oneDNN's name for what it chose: "brg:avx512_core". */
const char *att_product_implementation(const att_product *product);

ATT_FOR_LAB att_status att_product_pack(const att_product *product, const float *b, void *packed);
/* b: packed where the product was made so. bias: NULL without one. */
ATT_FOR_LAB att_status att_product_run(const att_product *product, const void *a, const void *b, const float *bias,
                                       void *to, void *scratch);

#endif
