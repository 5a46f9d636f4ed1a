/* kernels/cuda/product.cuh - products of rows with a matrix, and what follows them: bias, activation, residual. */
#ifndef ATT_KERNELS_CUDA_PRODUCT_CUH
#define ATT_KERNELS_CUDA_PRODUCT_CUH

#include "engine/kernels/cuda/gemm.cuh"

/* How a row of a product becomes a row of the result:
 *   y = gate (s + bias), GELU, + residual, + pooled / rows_per_sample, ReLU, and 0 where mask is not positive.
 * Absent parts are NULL. gate, pooled: one number per sample and column. */
struct att_finish {
    const void *bias; /* of the type that att_product_bias_type() returns */
    const float *gate, *pooled;
    const void *residual, *mask;
    att_dtype residual_type, mask_type;
    bool gelu, relu;
    int64_t rows_per_sample;
};

/* The parts that a product will have, known before it runs. */
struct att_finish_parts {
    bool bias, gate, pooled, residual, mask, gelu, relu;
    att_dtype residual_type;
};

/* Writes rows [first, first + rows) of y [.., n] from sums [rows, n], which may be the same memory if y is f32. */
void att_finish_rows(const att_finish *finish, const float *sums, int64_t first, int64_t rows, int64_t n,
                     att_dtype type, void *y);

/* y [rows, n] = finish(a [rows, k] b' [k, n]) for each of `groups` groups of columns: b is stored as [groups, n, ldb],
 * a as [rows, lda] and y as [rows, groups n]. The rows are computed in chunks of `chunk` rows, which a caller may
 * prepare one after the other in the same memory. In f32 or, with bf16 operands, in the type of y, cuBLASLt does all of
 * it if it can; else sums go to scratch in f32, and a kernel of ours finishes them while they are in the cache. */
struct att_product {
    int64_t rows, n, k, chunk, groups;
    att_dtype out;
    bool fused;           /* cuBLASLt finishes, except for GELU */
    bool gelu;            /* of bf16, in place, while a chunk is in the cache */
    att_gemm whole, rest; /* for chunks of `chunk` rows, and for the last one */
    size_t sums_bytes;    /* scratch */
    size_t a_row_bytes;
};

struct att_product_shape {
    int64_t rows, n, k, groups;
    int64_t lda, ldb;
    bool b_transposed; /* b is stored as [n, k], else as [k, n] with ldb; groups: 1 if not */
    att_dtype in, out;
    int64_t chunk; /* rows that the caller prepares at once; 0: as many as suit the cache */
    att_finish_parts finish;
};

/* The type of the bias: bf16 if cuBLASLt adds it to a bf16 result, else f32. */
static inline att_dtype att_product_bias_type(const att_product *product)
{
    return product->fused ? product->out : ATT_F32;
}

att_status att_product_open(att_context *context, const att_product_shape *shape, att_product *product);
void att_product_close(att_product *product);
/* Computes rows [first, first + chunk), or up to the last row. a: their rows. y: all rows. sums: scratch of sums_bytes.
 */
att_status att_product_chunk(att_context *context, const att_product *product, const att_finish *finish, int64_t first,
                             const void *a, const void *b, void *sums, void *y);
/* Computes all rows. a: all rows. */
att_status att_product_run(att_context *context, const att_product *product, const att_finish *finish, const void *a,
                           const void *b, void *sums, void *y);

/* d [groups, m, n] += (or, with `overwrite`, =) a' b: sums over the rows of a [rows, groups, m] and b [rows, groups,
 * n]. d is f32. There are few results and many rows: the rows are divided into slices, whose products are computed at
 * the same time and added in order. */
struct att_row_product {
    att_gemm gemm;
    int64_t count, slices; /* count: numbers of d */
    size_t scratch_bytes;
};

struct att_row_product_shape {
    int64_t rows, m, n, groups;
    att_dtype in;
};

att_status att_row_product_open(att_context *context, const att_row_product_shape *shape, att_row_product *product);
void att_row_product_close(att_row_product *product);
att_status att_row_product_run(att_context *context, const att_row_product *product, const void *a, const void *b,
                               void *scratch, bool overwrite, float *d);

#endif
