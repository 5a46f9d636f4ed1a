/* kernels/cpu/onednn.h - matrix products with oneDNN 2.x or 3.x. Only onednn.c and onednn_inner.h depend on the major
 * version, and only onednn.c accesses the state that oneDNN and libgomp keep per process and per thread.
 *
 * Primitives are created and run with one OpenMP thread (creation fixes the number); the caller's number is restored.
 * If a context's tier was capped, oneDNN's instruction set is capped, too. This affects the whole process, and only if
 * the context is the first to use oneDNN, because oneDNN allows no later change.
 */
#ifndef ATT_KERNELS_CPU_ONEDNN_H
#define ATT_KERNELS_CPU_ONEDNN_H

#include <attscope/tensor.h>

#include "base/core/export.h"

/* to [rows, columns] = a [rows, inner] b [inner, columns] (+ bias [columns]), summed in f32. bf16 requires a context
 * with att_context_has_bf16(). */
typedef struct att_product_spec {
    int64_t rows, inner, columns;
    att_dtype dtype, to; /* ATT_F32 or ATT_BF16: of a and b, and of the result; bias, and b before packing, are f32 */
    bool a_transposed;   /* a is stored as [inner, rows] */
    bool b_transposed;   /* b is stored as [columns, inner] */
    bool pack;           /* b is in the product's own layout, written by att_product_pack() */
    bool bias;
    const struct att_product *layout_of; /* pack b in this product's layout; NULL: in a layout of its own */
} att_product_spec;

typedef struct att_product att_product;

/* Whether the product is much slower with an unpacked b. spec->pack is ignored. */
bool att_product_needs_packing(const att_context *context, const att_product_spec *spec);

/* On success the caller destroys *product with att_product_destroy(). Several threads may run it at the same time.
 * Errors: ERR_MEMORY, ERR_INTERNAL with oneDNN's reason. */
ATT_FOR_LAB att_status att_product_create(att_context *context, const att_product_spec *spec, att_product **product);
/* *product may be NULL. */
ATT_FOR_LAB void att_product_destroy(att_context *context, att_product *product);

/* Bytes of scratch for each running thread, aligned to 64. */
ATT_FOR_LAB size_t att_product_scratch_bytes(const att_product *product);
/* Bytes of packed b, including the scratch for packing. */
ATT_FOR_LAB size_t att_product_packed_bytes(const att_product *product);
/* Equal keys mean equal layouts of packed b. */
ATT_FOR_LAB uint64_t att_product_packed_key(const att_product *product);
/* oneDNN's name for the implementation that it chose, for example "brg:avx512_core". */
const char *att_product_implementation(const att_product *product);

ATT_FOR_LAB att_status att_product_pack(const att_product *product, const float *b, void *packed);
/* b: packed if spec.pack. bias: NULL if the spec has none. */
ATT_FOR_LAB att_status att_product_run(const att_product *product, const void *a, const void *b, const float *bias,
                                       void *to, void *scratch);

#endif
