#include "engine/kernels/cuda/gelu.cuh"
#include "engine/kernels/cuda/product.cuh"

/* Bytes of the rows of sums that are finished at once: they stay in the level 2 cache. */
static const int64_t sums_bytes_at_once = (int64_t)24 << 20;

__device__ static float load_any(const void *p, bool is_bf16, int64_t i)
{
    return is_bf16 ? load((const bf16 *)p, i) : load((const float *)p, i);
}

template <int V, class Y>
__global__ void __launch_bounds__(ATT_CUDA_THREADS)
    finish_kernel(att_finish f, const float *sums, int64_t first, int64_t packs, int64_t n, Y *y)
{
    for (int64_t p = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; p < packs; p += (int64_t)gridDim.x * blockDim.x) {
        int64_t local = p * V, e = first * n + local, row = e / n, column = e - row * n;
        float value[V];
        load_pack<V>(sums, local, value);
        int64_t of_sample = f.gate || f.pooled ? row / f.rows_per_sample * n + column : 0;
#pragma unroll
        for (int k = 0; k < V; k++) {
            float x = value[k];
            if (f.bias)
                x += ((const float *)f.bias)[column + k];
            if (f.gate)
                x *= f.gate[of_sample + k];
            if (f.gelu)
                x = cuda_gelu(x);
            if (f.residual)
                x += load_any(f.residual, f.residual_type == ATT_BF16, e + k);
            if (f.pooled)
                x += f.pooled[of_sample + k] / (float)f.rows_per_sample;
            if (f.relu && x < 0)
                x = 0;
            if (f.mask && !(load_any(f.mask, f.mask_type == ATT_BF16, e + k) > 0))
                x = 0;
            value[k] = x;
        }
        store_pack<V>(y, e, value);
    }
}

void att_finish_rows(const att_finish *finish, const float *sums, int64_t first, int64_t rows, int64_t n,
                     att_dtype type, void *y)
{
    int64_t count = rows * n;
    if (count == 0)
        return;
    att_cuda_typed(type, y, [&](auto *out) {
        if (n % 4 == 0 && ATT_CUDA_ALIGNED(out, 4) && ATT_CUDA_ALIGNED(sums, 4))
            finish_kernel<4><<<att_cuda_blocks(count / 4), ATT_CUDA_THREADS, 0, cuda.stream>>>(*finish, sums, first,
                                                                                               count / 4, n, out);
        else
            finish_kernel<1>
                <<<att_cuda_blocks(count), ATT_CUDA_THREADS, 0, cuda.stream>>>(*finish, sums, first, count, n, out);
    });
}

namespace
{
struct gelu_of {
    __device__ float operator()(float x) const
    {
        return cuda_gelu(x);
    }
};
} // namespace

/* --- products ----------------------------------------------------------------------------------------------------- */

/* GELU of a bf16 result is taken of the rounded sums, as in PyTorch; of an f32 result, of the sums. */
static bool needs_wide_gelu(const att_product_shape *s)
{
    return s->finish.gelu && (s->out == ATT_F32 || s->finish.residual);
}

/* Whether cuBLASLt may finish the rows: the order of its epilogue is residual, bias, ReLU. */
static bool may_fuse(const att_product_shape *s)
{
    const att_finish_parts *f = &s->finish;
    return !(s->in == ATT_F32 && s->out == ATT_BF16) && !f->gate && !f->pooled && !f->mask && !needs_wide_gelu(s) &&
           (!f->residual || f->residual_type == s->out) && (s->groups == 1 || !f->bias);
}

static att_status open_gemm(att_context *context, const att_product_shape *s, bool fused, int64_t rows, att_gemm *gemm)
{
    att_gemm_shape shape = {};
    shape.m = rows;
    shape.n = s->n;
    shape.k = s->k;
    shape.b_transposed = s->b_transposed;
    shape.lda = s->lda;
    shape.ldb = s->ldb;
    shape.ldd = s->groups * s->n;
    shape.batch = s->groups;
    shape.stride_a = s->k;
    shape.stride_b = s->n * s->ldb;
    shape.stride_d = s->n;
    shape.in = s->in;
    shape.out = fused ? s->out : ATT_F32;
    shape.bias = fused && s->finish.bias;
    shape.relu = fused && s->finish.relu;
    return att_gemm_open(context, &shape, fused, gemm);
}

static int64_t chunk_of(const att_product_shape *s, bool fused)
{
    int64_t row_bytes = s->groups * s->n * (int64_t)(fused ? sizeof(bf16) : sizeof(float));
    int64_t chunk = s->chunk                   ? s->chunk
                    : fused && !s->finish.gelu ? s->rows
                                               : sums_bytes_at_once / row_bytes / 128 * 128;
    chunk = chunk < 128 ? 128 : chunk;
    return chunk < s->rows ? chunk : s->rows;
}

static att_status open_with(att_context *context, const att_product_shape *s, bool fused, att_product *p)
{
    *p = {};
    p->rows = s->rows;
    p->n = s->n;
    p->k = s->k;
    p->groups = s->groups;
    p->out = s->out;
    p->fused = fused;
    p->gelu = fused && s->finish.gelu;
    p->chunk = chunk_of(s, fused);
    p->a_row_bytes = (size_t)s->lda * att_dtype_size(s->in);
    p->sums_bytes = fused ? 0 : (size_t)(p->chunk * s->groups * s->n) * sizeof(float);
    att_status status = open_gemm(context, s, fused, p->chunk, &p->whole);
    if (status == ATT_OK && s->rows % p->chunk)
        status = open_gemm(context, s, fused, s->rows % p->chunk, &p->rest);
    if (status != ATT_OK)
        att_product_close(p);
    return status;
}

/* Results of callers may be aligned to their elements only. Sums in scratch are aligned. */
static bool takes_any_alignment(const att_product *p)
{
    return p->whole.found[1] && (!p->rest.desc || p->rest.found[1]);
}

att_status att_product_open(att_context *context, const att_product_shape *shape, att_product *product)
{
    if (may_fuse(shape) && open_with(context, shape, true, product) == ATT_OK) {
        if (takes_any_alignment(product))
            return ATT_OK;
        att_product_close(product);
    }
    return open_with(context, shape, false, product);
}

void att_product_close(att_product *product)
{
    att_gemm_close(&product->whole);
    att_gemm_close(&product->rest);
}

att_status att_product_chunk(att_context *context, const att_product *p, const att_finish *finish, int64_t first,
                             const void *a, const void *b, void *sums, void *y)
{
    int64_t rows = p->rows - first < p->chunk ? p->rows - first : p->chunk, width = p->groups * p->n;
    const att_gemm *gemm = rows == p->chunk ? &p->whole : &p->rest;
    size_t element = att_dtype_size(p->out), offset = (size_t)(first * width) * element;
    if (p->fused) {
        const char *residual = (const char *)finish->residual;
        ATT_TRY(att_gemm_run(context, gemm, a, b, finish->bias, 1, residual ? 1 : 0,
                             residual ? residual + offset : nullptr, (char *)y + offset));
        if (p->gelu)
            att_cuda_map(rows * width, gelu_of{}, (bf16 *)((char *)y + offset), (const bf16 *)((char *)y + offset));
        return ATT_OK;
    }
    void *to = p->out == ATT_F32 && (uintptr_t)y % 16 == 0 ? (char *)y + offset : (char *)sums;
    ATT_TRY(att_gemm_run(context, gemm, a, b, nullptr, 1, 0, nullptr, to));
    att_finish_rows(finish, (const float *)to, first, rows, width, p->out, y);
    return ATT_OK;
}

att_status att_product_run(att_context *context, const att_product *p, const att_finish *finish, const void *a,
                           const void *b, void *sums, void *y)
{
    for (int64_t first = 0; first < p->rows; first += p->chunk)
        ATT_TRY(
            att_product_chunk(context, p, finish, first, (const char *)a + (size_t)first * p->a_row_bytes, b, sums, y));
    return ATT_OK;
}

/* --- sums over rows ----------------------------------------------------------------------------------------------- */

/* Slices of the rows, as a power of two: enough tiles of 128 x 128 for a large device, of at least 512 rows. */
static int64_t slices_of(const att_row_product_shape *s)
{
    enum { TILES = 132, LEAST_ROWS = 512 };
    const int64_t most_bytes = (int64_t)64 << 20;
    int64_t tiles = ((s->m + 127) / 128) * ((s->n + 127) / 128), slices = 1;
    while (s->groups == 1 && tiles * slices < TILES && s->rows % (2 * slices) == 0 &&
           s->rows / (2 * slices) >= LEAST_ROWS && 2 * slices * s->m * s->n * (int64_t)sizeof(float) <= most_bytes)
        slices *= 2;
    return slices;
}

att_status att_row_product_open(att_context *context, const att_row_product_shape *s, att_row_product *product)
{
    int64_t slices = slices_of(s), rows = s->rows / slices;
    att_gemm_shape shape = {};
    shape.m = s->m;
    shape.n = s->n;
    shape.k = rows;
    shape.a_transposed = true;
    shape.lda = s->groups * s->m;
    shape.ldb = s->groups * s->n;
    shape.ldd = s->n;
    shape.batch = slices > 1 ? slices : s->groups;
    shape.stride_a = slices > 1 ? rows * s->m : s->m;
    shape.stride_b = slices > 1 ? rows * s->n : s->n;
    shape.stride_d = s->m * s->n;
    shape.in = s->in;
    shape.out = ATT_F32;
    *product = {};
    product->count = s->groups * s->m * s->n;
    product->slices = slices;
    product->scratch_bytes = slices > 1 ? (size_t)(slices * product->count) * sizeof(float) : 0;
    return att_gemm_open(context, &shape, false, &product->gemm);
}

void att_row_product_close(att_row_product *product)
{
    att_gemm_close(&product->gemm);
}

namespace
{
struct add_slices {
    const float *partial;
    float *d;
    int64_t slices, count;
    bool overwrite;
    __device__ void operator()(int64_t i) const
    {
        float sum = overwrite ? 0 : d[i];
        for (int64_t slice = 0; slice < slices; slice++)
            sum += partial[slice * count + i];
        d[i] = sum;
    }
};
} // namespace

att_status att_row_product_run(att_context *context, const att_row_product *p, const void *a, const void *b,
                               void *scratch, bool overwrite, float *d)
{
    if (p->slices == 1)
        return att_gemm_run(context, &p->gemm, a, b, nullptr, 1, overwrite ? 0 : 1, nullptr, d);
    ATT_TRY(att_gemm_run(context, &p->gemm, a, b, nullptr, 1, 0, nullptr, scratch));
    att_cuda_each(p->count, add_slices{(const float *)scratch, d, p->slices, p->count, overwrite});
    return ATT_OK;
}
