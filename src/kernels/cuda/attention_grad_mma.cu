/* The gradient of attention in bf16 on tensor cores. One kernel computes dq from tiles of queries, and dk and dv from
 * tiles of keys: a block owns an outer tile and walks over the inner tiles of the other side. Scores are computed with
 * the outer tokens as rows, so that weights and gradients of scores stay in registers between the products. */
#include "kernels/cuda/attention_gradient.cuh"
#include "kernels/cuda/attention_mma.cuh"

static constexpr float LOG2_E = 1.44269504088896341f;

/* Memory of a block. first and second: q and do, or k and v, of the tokens of a tile. */
template <int D> struct mma_gradient_memory {
    bf16 outer_first[TILE * mma_stride<D>], outer_second[TILE * mma_stride<D>];
    bf16 inner_first[TILE * mma_stride<D>], inner_second[TILE * mma_stride<D>];
    attention_tokens queries, keys;
    float lse[TILE], do_o[TILE];
};

/* Fills the tokens of a tile of queries and their numbers; all threads call. */
template <int D>
__device__ __forceinline__ void fill_queries(const attention_problem &p, const gradient_inputs &in, attention_head head,
                                             int window, int first, mma_gradient_memory<D> *m)
{
    attention_fill_tokens(p, window, first, p.queries, &m->queries);
    int i = threadIdx.x;
    if (i >= TILE)
        return;
    int token = m->queries.index[i];
    int64_t row = attention_row(p, head, token);
    m->lse[i] = token >= 0 ? in.lse[row] * LOG2_E : 0;
    m->do_o[i] = token >= 0 ? in.do_o[row] : 0;
}

/* The weight after dropout and the gradient of the score of query i and key j, places in their tiles. */
template <bool TERMS, int D>
__device__ __forceinline__ void pair_gradient(const attention_problem &p, attention_head head,
                                              const mma_gradient_memory<D> *m, int first_query, int first_key, int i,
                                              int j, float factor, float *weight, float *ds)
{
    attention_token q = attention_token_of(&m->queries, i), k = attention_token_of(&m->keys, j);
    bool seen = q.index >= 0 && k.index >= 0 && !(TERMS && p.causal && first_key + j > first_query + i);
    float score = p.scale * *weight;
    if (TERMS)
        score = attention_score(p, head, q, k, first_key + j, *weight);
    float a = seen ? power_of_two(fmaf(score, LOG2_E, -m->lse[i])) : 0;
    *weight = factor * a;
    *ds = a * (factor * *ds - m->do_o[i]);
}

/* Keeps the gradients of scores of a warp's rows for those of the terms, and adds their squares. */
template <int D>
__device__ __forceinline__ void keep_gradients(const attention_problem &p, const gradient_outputs &to,
                                               attention_head head, const mma_gradient_memory<D> *m, int first_sample,
                                               int first_key, int row, const float ds[MMA_PER_TILE][4],
                                               double squares[2])
{
    int t = threadIdx.x % 4;
    for (int half = 0; half < 2; half++) {
        int token = m->queries.index[row + 8 * half];
        int64_t at = attention_row(p, {head.sample - first_sample, head.number}, token) * p.keys + first_key;
#pragma unroll
        for (int n = 0; n < MMA_PER_TILE; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                int j = n * MMA_COLUMNS + 2 * t + i;
                float value = ds[n][2 * half + i];
                squares[half] += to.norms.data ? (double)value * (double)value : 0;
                if (to.kept && token >= 0 && first_key + j < p.keys)
                    to.kept[at + j] = value;
            }
    }
}

__device__ __forceinline__ void write_norms(const attention_problem &p, const gradient_outputs &to, attention_head head,
                                            const int *index, const double squares[2])
{
    for (int half = 0; half < 2; half++) {
        double sum = squares[half];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        int token = index[8 * half];
        if (token >= 0 && threadIdx.x % 4 == 0)
            store(to.norms, attention_row(p, head, token), (float)sqrt(sum));
    }
}

/* A block for each outer tile of a window of a head of a sample; for dk and dv, a head of keys or values, which
 * `shared_by` heads of queries share. */
template <int D, gradient_result RESULT, bool TERMS>
__global__ void __launch_bounds__(MMA_THREADS)
    attention_grad_mma_kernel(attention_problem p, gradient_inputs in, gradient_outputs to, int heads, int shared_by,
                              int first_sample)
{
    extern __shared__ __align__(16) unsigned char shared[];
    mma_gradient_memory<D> *m = (mma_gradient_memory<D> *)shared;
    constexpr bool OF_QUERIES = RESULT == GRADIENT_DQ, SECOND = RESULT == GRADIENT_DV || RESULT == GRADIENT_DK_DV,
                   FIRST = RESULT != GRADIENT_DV;
    int outer_count = OF_QUERIES ? p.queries : p.keys, inner_count = OF_QUERIES ? p.keys : p.queries;
    int tiles = (outer_count + TILE - 1) / TILE, unit = blockIdx.x / tiles, outer = blockIdx.x % tiles * TILE;
    int window = unit % p.windows, sample = first_sample + unit / p.windows / heads;
    int first_head = unit / p.windows % heads * shared_by, row = threadIdx.x / 32 * MMA_ROWS;
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    float first_sums[FIRST ? D / MMA_COLUMNS : 1][4] = {}, second_sums[SECOND ? D / MMA_COLUMNS : 1][4] = {};
    double squares[2] = {};
    attention_head head = {sample, first_head};
    for (int h = 0; h < shared_by; h++) {
        head.number = first_head + h;
        attention_rows q = attention_rows_of(p, HEAD_Q, head), k = attention_rows_of(p, HEAD_K, head);
        attention_rows v = attention_rows_of(p, HEAD_V, head), dout = attention_rows_like_out(p, in.dout, head);
        if (h == 0) {
            if (OF_QUERIES)
                fill_queries<D>(p, in, head, window, outer, m);
            else
                attention_fill_tokens(p, window, outer, p.keys, &m->keys);
            __syncthreads();
            mma_copy<D>(OF_QUERIES ? q : k, OF_QUERIES ? m->queries.index : m->keys.index, 0, 0, TILE, m->outer_first);
            mma_copy<D>(OF_QUERIES ? dout : v, OF_QUERIES ? m->queries.index : m->keys.index, 0, 0, TILE,
                        m->outer_second);
        }
        int begin = TERMS && p.causal && !OF_QUERIES ? outer : 0;
        int end =
            TERMS && p.causal && OF_QUERIES && !to.kept && outer + TILE < inner_count ? outer + TILE : inner_count;
        for (int inner = begin; inner < end; inner += TILE) {
            int first_query = OF_QUERIES ? outer : inner, first_key = OF_QUERIES ? inner : outer;
            int count = inner_count - inner < TILE ? inner_count - inner : TILE;
            __syncthreads(); /* the last inner tile may still be read */
            if (OF_QUERIES)
                attention_fill_tokens(p, window, inner, p.keys, &m->keys);
            else
                fill_queries<D>(p, in, head, window, inner, m);
            __syncthreads();
            const int *index = OF_QUERIES ? m->keys.index : m->queries.index;
            mma_copy<D>(OF_QUERIES ? k : q, index, 0, 0, TILE, m->inner_first);
            mma_copy<D>(OF_QUERIES ? v : dout, index, 0, 0, TILE, m->inner_second);
            copy_commit();
            copy_wait<0>();
            __syncthreads();
            float weights[MMA_PER_TILE][4], ds[MMA_PER_TILE][4];
            mma_scores<D>(m->outer_first, row, m->inner_first, count, weights);
            if (FIRST)
                mma_scores<D>(m->outer_second, row, m->inner_second, count, ds);
#pragma unroll
            for (int n = 0; n < MMA_PER_TILE; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    int of_outer = row + g + e / 2 * 8, of_inner = n * MMA_COLUMNS + 2 * t + e % 2;
                    int i = OF_QUERIES ? of_outer : of_inner, j = OF_QUERIES ? of_inner : of_outer;
                    float factors[4] = {1, 1, 1, 1};
                    if (TERMS && p.drops && m->queries.index[i] >= 0)
                        attention_factors(p, head, m->queries.index[i], first_key + j / 4 * 4, factors);
                    float factor = j % 4 == 0   ? factors[0]
                                   : j % 4 == 1 ? factors[1]
                                   : j % 4 == 2 ? factors[2]
                                                : factors[3];
                    if (!FIRST)
                        ds[n][e] = 0;
                    pair_gradient<TERMS, D>(p, head, m, first_query, first_key, i, j, factor, &weights[n][e],
                                            &ds[n][e]);
                }
            if (OF_QUERIES && (to.kept || to.norms.data))
                keep_gradients<D>(p, to, head, m, first_sample, first_key, row + g, ds, squares);
            uint32_t pairs[MMA_PER_TILE][2];
            if (SECOND) {
#pragma unroll
                for (int n = 0; n < 2 * MMA_PER_TILE; n++)
                    pairs[n / 2][n % 2] = pack_bf16(weights[n / 2][n % 2 * 2], weights[n / 2][n % 2 * 2 + 1]);
                mma_mix<D>(pairs, m->inner_second, count, second_sums);
            }
            if (FIRST) {
#pragma unroll
                for (int n = 0; n < 2 * MMA_PER_TILE; n++)
                    pairs[n / 2][n % 2] = pack_bf16(ds[n / 2][n % 2 * 2], ds[n / 2][n % 2 * 2 + 1]);
                mma_mix<D>(pairs, m->inner_first, count, first_sums);
            }
        }
    }
    const float scale[2] = {p.scale, p.scale}, one[2] = {1, 1};
    const int *index = (OF_QUERIES ? m->queries.index : m->keys.index) + row;
    attention_rows first = attention_rows_of(p, OF_QUERIES ? HEAD_Q : HEAD_K, head);
    first.x = to.of[OF_QUERIES ? HEAD_Q : HEAD_K];
    if constexpr (FIRST)
        if (first.x.data)
            mma_store<D>(first, index, first_sums, scale);
    attention_rows second = attention_rows_of(p, HEAD_V, head);
    second.x = to.of[HEAD_V];
    if constexpr (SECOND)
        if (second.x.data)
            mma_store<D>(second, index, second_sums, one);
    if (OF_QUERIES && to.norms.data)
        write_norms(p, to, head, index + g, squares);
}

template <int D, gradient_result RESULT, bool TERMS>
static void launch_as(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to, int shared_by,
                      int first_sample, int samples)
{
    const int bytes = (int)sizeof(mma_gradient_memory<D>), heads = p.heads / shared_by;
    int tiles = ((RESULT == GRADIENT_DQ ? p.queries : p.keys) + TILE - 1) / TILE;
    auto kernel = attention_grad_mma_kernel<D, RESULT, TERMS>;
    cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<(unsigned)(samples * heads * p.windows * tiles), MMA_THREADS, bytes, cuda.stream>>>(
        p, in, to, heads, shared_by, first_sample);
}

template <gradient_result RESULT>
static void launch(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to, int shared_by,
                   int first_sample, int samples)
{
    mma_with_width(p.operand[HEAD_Q].width, [&](auto width) {
        constexpr int D = decltype(width)::value;
        if (attention_has_terms(p))
            launch_as<D, RESULT, true>(p, in, to, shared_by, first_sample, samples);
        else
            launch_as<D, RESULT, false>(p, in, to, shared_by, first_sample, samples);
    });
}

bool attention_grad_fits_mma(const attention_problem &p, const gradient_inputs &in)
{
    int width = p.operand[HEAD_Q].width;
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        if (!mma_fits(p.operand[o]) || p.operand[o].width != width)
            return false;
    return in.dout.dtype == ATT_BF16 && (uintptr_t)in.dout.data % 16 == 0 && width <= 128;
}

void attention_grad_mma_queries(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
                                int first_sample, int samples)
{
    launch<GRADIENT_DQ>(p, in, to, 1, first_sample, samples);
}

void attention_grad_mma_keys(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
                             bool keys, bool values)
{
    int shared_by = p.operand[keys ? HEAD_K : HEAD_V].shared_by;
    if (keys && values)
        launch<GRADIENT_DK_DV>(p, in, to, shared_by, 0, p.samples);
    else if (keys)
        launch<GRADIENT_DK>(p, in, to, shared_by, 0, p.samples);
    else
        launch<GRADIENT_DV>(p, in, to, shared_by, 0, p.samples);
}
