#include "engine/kernels/cuda/product.cuh"
#include "engine/kernels/cuda/rows.cuh"

extern "C" {
#include "engine/ops/linear.h"
#include "engine/ops/matmul.h"
}

namespace
{

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* --- linear ------------------------------------------------------------------------------------------------------- */

enum { X, WEIGHT, BIAS, RESIDUAL };

static int64_t rows_of(const att_problem *problem, int i)
{
    return att_problem_count(problem, &problem->in[i]) / att_cuda_dim(&problem->in[i], -1);
}

static att_product_shape shape_of(const att_problem *problem)
{
    const att_linear_attrs *attrs = ATT_ATTRS(problem, linear);
    att_product_shape s = {};
    s.rows = rows_of(problem, X);
    s.k = s.lda = att_cuda_dim(&problem->in[X], -1);
    s.n = att_cuda_dim(&problem->out[0], -1);
    s.b_transposed = !attrs->transposed;
    s.ldb = attrs->transposed ? s.n : s.k;
    s.groups = 1;
    s.in = problem->in[X].dtype;
    s.out = problem->out[0].dtype;
    s.finish.bias = att_desc_present(&problem->in[BIAS]);
    s.finish.residual = att_desc_present(&problem->in[RESIDUAL]);
    s.finish.residual_type = problem->in[RESIDUAL].dtype;
    s.finish.gelu = attrs->activation == ATT_ACT_GELU;
    s.finish.relu = false;
    return s;
}

static void release_product(att_context *context, void *state)
{
    if (state)
        att_product_close((att_product *)state);
    att_free(context, state);
}

/* Offset of the bias in the packed copy. */
size_t packed_bias(const att_problem *problem)
{
    return aligned((size_t)att_problem_count(problem, &problem->in[WEIGHT]) * sizeof(bf16));
}

/* With x in bf16 the weight is multiplied as bf16, and the bias of a bf16 result is bf16, too: packed copies. */
static att_status prepare_linear(const att_problem *problem, att_prepared *prepared)
{
    att_product_shape shape = shape_of(problem);
    att_product *product = (att_product *)att_allocate(problem->context, sizeof *product);
    if (!product)
        return att_fail_memory(problem->context, sizeof *product, "a product");
    att_status status = att_product_open(problem->context, &shape, product);
    if (status != ATT_OK) {
        att_free(problem->context, product);
        return status;
    }
    prepared->state = product;
    prepared->scratch_bytes = product->sums_bytes;
    /* The weight, then the bias. */
    if (shape.in == ATT_BF16) {
        prepared->packed_bytes = packed_bias(problem) + (size_t)shape.n * sizeof(bf16);
        prepared->packed_key = att_product_bias_type(product) == ATT_BF16;
    }
    return ATT_OK;
}

struct identity {
    __device__ float operator()(float x) const
    {
        return x;
    }
};

static att_status pack_linear(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    att_cuda_map(att_problem_count(problem, &problem->in[WEIGHT]), identity{}, (bf16 *)packed,
                 (const float *)in[WEIGHT]);
    if (in[BIAS] && att_product_bias_type((const att_product *)state) == ATT_BF16)
        att_cuda_map(att_problem_count(problem, &problem->in[BIAS]), identity{},
                     (bf16 *)((char *)packed + packed_bias(problem)), (const float *)in[BIAS]);
    return att_cuda_check(problem->context, cudaPeekAtLastError(), "packing a weight");
}

static att_status run_linear(const att_call *call)
{
    const att_problem *problem = call->problem;
    const att_product *product = (const att_product *)call->state;
    bool narrow = call->in[BIAS] && att_product_bias_type(product) == ATT_BF16;
    att_finish finish = {};
    finish.bias = narrow ? (const char *)call->packed + packed_bias(problem) : call->in[BIAS];
    finish.residual = call->in[RESIDUAL];
    finish.residual_type = problem->in[RESIDUAL].dtype;
    finish.gelu = ATT_ATTRS(problem, linear)->activation == ATT_ACT_GELU;
    ATT_TRY(att_product_run(problem->context, product, &finish, call->in[X],
                            call->packed ? call->packed : call->in[WEIGHT], call->scratch, call->out[0]));
    return att_cuda_launched(call);
}

/* --- the gradient of the weight ----------------------------------------------------------------------------------- */

enum { DY, X_OF_GRAD };

/* Scratch: for the sums over rows; then operands that are widened, if only one of them is bf16. */
struct weight_grad {
    att_row_product product;
    size_t widened[2]; /* offsets in scratch; SIZE_MAX if the operand is used as it is */
};

static void release_weight_grad(att_context *context, void *state)
{
    if (state)
        att_row_product_close(&((weight_grad *)state)->product);
    att_free(context, state);
}

static att_row_product_shape weight_grad_shape(const att_problem *problem)
{
    bool both = problem->in[DY].dtype == ATT_BF16 && problem->in[X_OF_GRAD].dtype == ATT_BF16;
    att_row_product_shape s = {};
    s.rows = rows_of(problem, DY);
    s.m = att_cuda_dim(&problem->in[DY], -1);
    s.n = att_cuda_dim(&problem->in[X_OF_GRAD], -1);
    s.groups = 1;
    s.in = both ? ATT_BF16 : ATT_F32;
    return s;
}

static att_status prepare_weight_grad(const att_problem *problem, att_prepared *prepared)
{
    att_row_product_shape shape = weight_grad_shape(problem);
    weight_grad *state = (weight_grad *)att_allocate(problem->context, sizeof *state);
    if (!state)
        return att_fail_memory(problem->context, sizeof *state, "a product");
    att_status status = att_row_product_open(problem->context, &shape, &state->product);
    if (status != ATT_OK) {
        att_free(problem->context, state);
        return status;
    }
    size_t columns = att_cuda_sums_scratch(1, shape.rows, shape.m, 1), products = state->product.scratch_bytes;
    size_t scratch = aligned(columns > products ? columns : products);
    for (int i = 0; i < 2; i++) {
        bool widen = problem->in[i].dtype != shape.in;
        state->widened[i] = widen ? scratch : SIZE_MAX;
        scratch += widen ? aligned((size_t)att_problem_count(problem, &problem->in[i]) * sizeof(float)) : 0;
    }
    prepared->state = state;
    prepared->scratch_bytes = scratch;
    return ATT_OK;
}

static const void *operand_of(const att_call *call, const weight_grad *state, int i)
{
    if (state->widened[i] == SIZE_MAX)
        return call->in[i];
    float *wide = (float *)((char *)call->scratch + state->widened[i]);
    att_cuda_map(att_cuda_in_count(call, i), identity{}, wide, (const bf16 *)call->in[i]);
    return wide;
}

struct add_to {
    float *sum;
    __device__ void operator()(int64_t sample, int64_t column, const float *sums) const
    {
        (void)sample;
        sum[column] += sums[0];
    }
};

static att_status run_weight_grad(const att_call *call)
{
    const weight_grad *state = (const weight_grad *)call->state;
    int64_t columns = att_cuda_dim(&call->problem->in[DY], -1), rows = att_cuda_rows(call, DY);
    if (call->out[0])
        ATT_TRY(att_row_product_run(call->problem->context, &state->product, operand_of(call, state, DY),
                                    operand_of(call, state, X_OF_GRAD), call->scratch, false, (float *)call->out[0]));
    if (call->out[1])
        att_cuda_in(call, DY, [&](auto *dy) {
            typedef std::remove_const_t<std::remove_pointer_t<decltype(dy)>> T;
            att_cuda_with_width(
                columns,
                [&](auto width) {
                    constexpr int V = width;
                    att_cuda_sums<1, V>(1, rows, columns, call->scratch, plain_sums<V, T>{dy},
                                        add_to{(float *)call->out[1]});
                },
                dy);
        });
    return att_cuda_launched(call);
}

/* --- products of matrices of the samples -------------------------------------------------------------------------- */

enum { A, B };

struct matrices {
    att_gemm gemm;
    size_t widened[2], sums; /* offsets in scratch; SIZE_MAX: not needed */
};

static att_gemm_shape matmul_shape(const att_problem *problem)
{
    const att_matmul_attrs *attrs = ATT_ATTRS(problem, matmul);
    const att_desc *y = &problem->out[0];
    bool both = problem->in[A].dtype == ATT_BF16 && problem->in[B].dtype == ATT_BF16;
    att_gemm_shape s = {};
    s.m = att_cuda_dim(y, -2);
    s.n = s.ldd = att_cuda_dim(y, -1);
    s.k = att_cuda_dim(&problem->in[A], attrs->a_transposed ? -2 : -1);
    s.a_transposed = attrs->a_transposed;
    s.b_transposed = attrs->b_transposed;
    s.lda = s.a_transposed ? s.m : s.k;
    s.ldb = s.b_transposed ? s.k : s.n;
    s.batch = att_problem_count(problem, y) / (s.m * s.n);
    s.stride_a = s.m * s.k;
    s.stride_b = s.k * s.n;
    s.stride_d = s.m * s.n;
    s.in = both ? ATT_BF16 : ATT_F32;
    s.out = both ? y->dtype : ATT_F32;
    return s;
}

static void release_matmul(att_context *context, void *state)
{
    if (state)
        att_gemm_close(&((matrices *)state)->gemm);
    att_free(context, state);
}

static att_status prepare_matmul(const att_problem *problem, att_prepared *prepared)
{
    att_gemm_shape shape = matmul_shape(problem);
    matrices *state = (matrices *)att_allocate(problem->context, sizeof *state);
    if (!state)
        return att_fail_memory(problem->context, sizeof *state, "a product");
    size_t scratch = 0;
    for (int i = 0; i < 2; i++) {
        bool widen = problem->in[i].dtype != shape.in;
        state->widened[i] = widen ? scratch : SIZE_MAX;
        scratch += widen ? aligned((size_t)att_problem_count(problem, &problem->in[i]) * sizeof(float)) : 0;
    }
    bool narrow = problem->out[0].dtype != shape.out;
    state->sums = narrow ? scratch : SIZE_MAX;
    scratch += narrow ? (size_t)att_problem_count(problem, &problem->out[0]) * sizeof(float) : 0;
    att_status status = att_gemm_open(problem->context, &shape, false, &state->gemm);
    if (status != ATT_OK) {
        att_free(problem->context, state);
        return status;
    }
    prepared->state = state;
    prepared->scratch_bytes = scratch;
    return ATT_OK;
}

static const void *matrix_of(const att_call *call, const matrices *state, int i)
{
    if (state->widened[i] == SIZE_MAX)
        return call->in[i];
    float *wide = (float *)((char *)call->scratch + state->widened[i]);
    att_cuda_map(att_cuda_in_count(call, i), identity{}, wide, (const bf16 *)call->in[i]);
    return wide;
}

static att_status run_matmul(const att_call *call)
{
    const matrices *state = (const matrices *)call->state;
    void *to = state->sums == SIZE_MAX ? call->out[0] : (char *)call->scratch + state->sums;
    ATT_TRY(att_gemm_run(call->problem->context, &state->gemm, matrix_of(call, state, A), matrix_of(call, state, B),
                         nullptr, (float)ATT_ATTRS(call->problem, matmul)->scale, 0, nullptr, to));
    if (to != call->out[0])
        att_cuda_map(att_cuda_out_count(call, 0), identity{}, (bf16 *)call->out[0], (const float *)to);
    return att_cuda_launched(call);
}

} // namespace

ATT_CUDA_PREPARED_KERNEL(linear_weight_grad, prepare_weight_grad, run_weight_grad, release_weight_grad);
ATT_CUDA_PREPARED_KERNEL(matmul, prepare_matmul, run_matmul, release_matmul);
ATT_CUDA_DESCRIPTOR(linear, "cublaslt", att_cuda_accepts, prepare_linear, pack_linear, run_linear, release_product);
