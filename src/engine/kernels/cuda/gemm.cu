#include "engine/kernels/cuda/gemm.cuh"

static cudaDataType_t type_of(att_dtype dtype)
{
    return dtype == ATT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static bool set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t size)
{
    return cublasLtMatmulDescSetAttribute(desc, attribute, value, size) == CUBLAS_STATUS_SUCCESS;
}

static bool describe(const att_gemm_shape *shape, att_gemm *gemm)
{
    /* A row-major matrix is the transpose of a column-major one, so cuBLASLt computes D' = B' A'. */
    cublasOperation_t first = shape->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = shape->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = shape->bias && shape->relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                  : shape->bias              ? CUBLASLT_EPILOGUE_BIAS
                                  : shape->relu              ? CUBLASLT_EPILOGUE_RELU
                                                             : CUBLASLT_EPILOGUE_DEFAULT;
    cudaDataType_t bias = type_of(shape->out);
    if (cublasLtMatmulDescCreate(&gemm->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS)
        return false;
    return set(gemm->desc, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first) &&
           set(gemm->desc, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second) &&
           set(gemm->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) &&
           (!shape->bias || set(gemm->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias, sizeof bias));
}

static bool lay_out(cublasLtMatrixLayout_t *layout, att_dtype dtype, int64_t rows, int64_t columns, int64_t ld,
                    int64_t batch, int64_t stride)
{
    int32_t count = (int32_t)batch;
    return cublasLtMatrixLayoutCreate(layout, type_of(dtype), (uint64_t)rows, (uint64_t)columns, ld) ==
               CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count) ==
               CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                            sizeof stride) == CUBLAS_STATUS_SUCCESS;
}

/* Partial sums of a product are added in f32 and in a fixed order. */
static bool find(const att_gemm_shape *shape, att_gemm *gemm, uint32_t alignment, cublasLtMatmulAlgo_t *algorithm)
{
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result;
    int count = 0;
    if (cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS)
        return false;
    const cublasLtMatmulPreferenceAttributes_t sides[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &cuda.workspace_bytes,
                                         sizeof cuda.workspace_bytes);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                         sizeof reductions);
    for (cublasLtMatmulPreferenceAttributes_t side : sides)
        cublasLtMatmulPreferenceSetAttribute(preference, side, &alignment, sizeof alignment);
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(cuda.blas, gemm->desc, gemm->a, gemm->b, gemm->d, gemm->d,
                                                           preference, 1, &result, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0 || result.state != CUBLAS_STATUS_SUCCESS)
        return false;
    (void)shape;
    *algorithm = result.algo;
    return true;
}

att_status att_gemm_open(att_context *context, const att_gemm_shape *s, bool may_fail, att_gemm *gemm)
{
    *gemm = {};
    bool described = describe(s, gemm) &&
                     lay_out(&gemm->a, s->in, s->b_transposed ? s->k : s->n, s->b_transposed ? s->n : s->k, s->ldb,
                             s->batch, s->stride_b) &&
                     lay_out(&gemm->b, s->in, s->a_transposed ? s->m : s->k, s->a_transposed ? s->k : s->m, s->lda,
                             s->batch, s->stride_a) &&
                     lay_out(&gemm->d, s->out, s->n, s->m, s->ldd, s->batch, s->stride_d);
    if (described) {
        uint32_t least = (uint32_t)att_dtype_size(s->in);
        gemm->found[0] = find(s, gemm, 16, &gemm->algorithm[0]);
        gemm->found[1] = find(s, gemm, least, &gemm->algorithm[1]);
    }
    if (gemm->found[0] || gemm->found[1])
        return ATT_OK;
    att_gemm_close(gemm);
    if (may_fail)
        return ATT_ERR_UNSUPPORTED;
    return att_fail(context, ATT_ERR_UNSUPPORTED, "cuBLASLt has no product of [%lld, %lld] and [%lld, %lld] in %s",
                    (long long)s->m, (long long)s->k, (long long)s->k, (long long)s->n, att_dtype_name(s->in));
}

void att_gemm_close(att_gemm *gemm)
{
    if (gemm->a)
        cublasLtMatrixLayoutDestroy(gemm->a);
    if (gemm->b)
        cublasLtMatrixLayoutDestroy(gemm->b);
    if (gemm->d)
        cublasLtMatrixLayoutDestroy(gemm->d);
    if (gemm->desc)
        cublasLtMatmulDescDestroy(gemm->desc);
    *gemm = {};
}

static bool is_aligned(const void *pointer)
{
    return (uintptr_t)pointer % 16 == 0;
}

att_status att_gemm_run(att_context *context, const att_gemm *gemm, const void *a, const void *b, const void *bias,
                        float alpha, float beta, const void *c, void *d)
{
    bool aligned = is_aligned(a) && is_aligned(b) && is_aligned(c) && is_aligned(d) && is_aligned(bias);
    int algorithm = aligned && gemm->found[0] ? 0 : 1;
    if (!gemm->found[algorithm])
        return att_fail(context, ATT_ERR_UNSUPPORTED, "cuBLASLt has no product for operands that are not aligned");
    /* The description is shared by calls, but calls of one thread at a time (att_memory.enter). */
    if (bias)
        cublasLtMatmulDescSetAttribute(gemm->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    cublasStatus_t status =
        cublasLtMatmul(cuda.blas, gemm->desc, &alpha, b, gemm->a, a, gemm->b, &beta, c ? c : d, gemm->d, d, gemm->d,
                       &gemm->algorithm[algorithm], cuda.workspace, cuda.workspace_bytes, cuda.stream);
    if (status != CUBLAS_STATUS_SUCCESS)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "cuBLASLt fails with status %d", (int)status);
    return ATT_OK;
}
