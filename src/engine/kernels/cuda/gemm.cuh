/* kernels/cuda/gemm.cuh - matrix products by cuBLASLt. */
#ifndef ATT_KERNELS_CUDA_GEMM_CUH
#define ATT_KERNELS_CUDA_GEMM_CUH

#include "engine/kernels/cuda/cuda.cuh"

/* D [m, n] = act(alpha op(A) [m, k] op(B) [k, n] + beta C + bias [n]), all row-major, for each matrix of a batch.
 * a_transposed: A is stored as [k, m]; b_transposed: B is stored as [n, k]. lda, ldb, ldd: elements from row to row of
 * what is stored; C is stored as D. stride_*: elements from matrix to matrix. A and B have type `in`, C and D type
 * `out`; in F32 with out BF16 is not possible. */
struct att_gemm_shape {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
    int64_t lda, ldb, ldd;
    int64_t batch, stride_a, stride_b, stride_d;
    att_dtype in, out;
    bool bias, relu; /* the bias has type `out` */
};

/* Algorithms for operands that are aligned to 16 bytes, and for those that are not. */
struct att_gemm {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d; /* in cuBLASLt's order: a is our B */
    cublasLtMatmulAlgo_t algorithm[2];
    bool found[2];
};

/* Finds algorithms. ERR_UNSUPPORTED if cuBLASLt has none, without a message if `may_fail`. */
att_status att_gemm_open(att_context *context, const att_gemm_shape *shape, bool may_fail, att_gemm *gemm);
/* Accepts zeroed and opened ones. */
void att_gemm_close(att_gemm *gemm);
/* c: NULL if beta is 0. */
att_status att_gemm_run(att_context *context, const att_gemm *gemm, const void *a, const void *b, const void *bias,
                        float alpha, float beta, const void *c, void *d);

#endif
