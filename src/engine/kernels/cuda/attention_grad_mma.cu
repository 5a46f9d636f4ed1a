/* The gradient of attention in bf16 on tensor cores. One kernel computes dq from tiles of queries, and dk and dv from
 * tiles of keys: a block owns an outer tile and walks over the inner tiles of the other side. Scores are computed with
 * the outer tokens as rows, so that weights and gradients of scores stay in registers between the products. */
#include "engine/kernels/cuda/attention_gradient.cuh"
#include "engine/kernels/cuda/attention_mma.cuh"

static constexpr float LOG2_E = 1.44269504088896341f;

/* A tile of queries and their numbers, and a tile of keys. */
struct mma_tokens {
    attention_tokens queries, keys;
    float lse[TILE], do_o[TILE];
};

/* Memory of a block. first and second: q and do, or k and v, of the tokens of a tile. One of the two inner tiles is
 * copied while the other is used. */
template <int D> struct mma_gradient_memory {
    bf16 outer_first[TILE * mma_stride<D>], outer_second[TILE * mma_stride<D>];
    bf16 inner_first[2][TILE * mma_stride<D>], inner_second[2][TILE * mma_stride<D>];
    mma_tokens tokens[2]; /* those of the outer tile are in both */
};

/* Fills the tokens of a tile of queries and their numbers; all threads call. */
__device__ __forceinline__ void fill_queries(const attention_problem &p, const gradient_inputs &in, attention_head head,
                                             int window, int first, mma_tokens *m)
{
    attention_fill_tokens(p, window, first, p.queries, &m->queries);
    int i = threadIdx.x;
    if (i >= TILE)
        return;
    int token = m->queries.index[i];
    int64_t row = attention_row(p, head, token);
    m->lse[i] = token >= 0 ? in.lse[row] * LOG2_E : INFINITY; /* past the end: weights of 0 */
    m->do_o[i] = token >= 0 ? in.do_o[row] : 0;
}

/* Replaces the products of query i and key j, places in their tiles, by the weight after dropout and the gradient of
 * the score. lse: times log2(e) */
template <bool TERMS>
__device__ __forceinline__ void pair_gradient(const attention_problem &p, attention_head head, const mma_tokens *tokens,
                                              int first_query, int first_key, int i, int j, float lse, float do_o,
                                              float *weight, float *ds)
{
    float score = p.scale * *weight, factor = 1;
    bool seen = first_key + j < p.keys;
    if (TERMS) {
        attention_token q = attention_token_of(&tokens->queries, i);
        score = attention_score(p, head, q, attention_token_of(&tokens->keys, j), first_key + j, *weight);
        seen = seen && !(p.causal && first_key + j > first_query + i);
        if (p.drops && q.index >= 0)
            factor = attention_factor(p, head, q.index, first_key + j);
    }
    float a = seen ? power_of_two(fmaf(score, LOG2_E, -lse)) : 0;
    *weight = factor * a;
    *ds = a * (factor * *ds - do_o);
}

/* Keeps the gradients of scores of a warp's rows for those of the terms, and adds their squares. */
__device__ __forceinline__ void keep_gradients(const attention_problem &p, const gradient_outputs &to,
                                               attention_head head, const attention_tokens *queries, int first_sample,
                                               int first_key, int row, const float ds[MMA_PER_TILE][4],
                                               double squares[2])
{
    int t = threadIdx.x % 4;
    for (int half = 0; half < 2; half++) {
        int token = queries->index[row + 8 * half];
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

/* The rows of a head that a block reads. */
struct mma_rows {
    attention_rows queries[2], keys[2]; /* q and do, k and v */
};

__device__ __forceinline__ mma_rows mma_rows_of(const attention_problem &p, const gradient_inputs &in,
                                                attention_head head)
{
    return {{attention_rows_of(p, HEAD_Q, head), attention_rows_like_out(p, in.dout, head)},
            {attention_rows_of(p, HEAD_K, head), attention_rows_of(p, HEAD_V, head)}};
}

/* Begins to copy the inner tile from `first` on; all threads call. Tokens of a tile without windows follow each other.
 */
template <int D, bool OF_QUERIES, bool TERMS>
__device__ __forceinline__ void mma_copy_inner(const attention_problem &p, const gradient_inputs &in,
                                               attention_head head, int window, int first, int stage,
                                               mma_gradient_memory<D> *m)
{
    mma_tokens *tokens = &m->tokens[stage];
    mma_rows rows = mma_rows_of(p, in, head);
    if (!OF_QUERIES)
        fill_queries(p, in, head, window, first, tokens);
    else if (TERMS)
        attention_fill_tokens(p, window, first, p.keys, &tokens->keys);
    if (TERMS)
        __syncthreads();
    const int *index = !TERMS ? nullptr : OF_QUERIES ? tokens->keys.index : tokens->queries.index;
    int count = OF_QUERIES ? p.keys : p.queries;
    mma_copy<D>(OF_QUERIES ? rows.keys[0] : rows.queries[0], index, first, count, TILE, m->inner_first[stage]);
    mma_copy<D>(OF_QUERIES ? rows.keys[1] : rows.queries[1], index, first, count, TILE, m->inner_second[stage]);
}

/* A block for each outer tile of a window of a head of a sample; for dk and dv, a head of keys or values, which
 * `shared_by` heads of queries share. */
template <int D, gradient_result RESULT, bool TERMS>
__global__ void __launch_bounds__(MMA_THREADS, D <= 64 && !TERMS ? 3 : 2)
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
    attention_head head = {sample, first_head};
    for (int stage = 0; stage < 2; stage++)
        if (OF_QUERIES)
            fill_queries(p, in, head, window, outer, &m->tokens[stage]);
        else
            attention_fill_tokens(p, window, outer, p.keys, &m->tokens[stage].keys);
    __syncthreads();
    const int *outer_index = OF_QUERIES ? m->tokens[0].queries.index : m->tokens[0].keys.index;
    mma_rows rows = mma_rows_of(p, in, head);
    mma_copy<D>(OF_QUERIES ? rows.queries[0] : rows.keys[0], outer_index, 0, 0, TILE, m->outer_first);
    mma_copy<D>(OF_QUERIES ? rows.queries[1] : rows.keys[1], outer_index, 0, 0, TILE, m->outer_second);
    int begin = TERMS && p.causal && !OF_QUERIES ? outer : 0;
    int end = TERMS && p.causal && OF_QUERIES && !to.kept && outer + TILE < inner_count ? outer + TILE : inner_count;
    int of_head = (end - begin + TILE - 1) / TILE, steps = of_head * shared_by;
    mma_copy_inner<D, OF_QUERIES, TERMS>(p, in, head, window, begin, 0, m);
    copy_commit();
    float first_sums[FIRST ? D / MMA_COLUMNS : 1][4] = {}, second_sums[SECOND ? D / MMA_COLUMNS : 1][4] = {};
    float lse[2], do_o[2]; /* of the thread's queries, if they are the outer tokens */
    double squares[2] = {};
#pragma unroll
    for (int half = 0; half < 2; half++) {
        lse[half] = OF_QUERIES ? m->tokens[0].lse[row + g + 8 * half] : 0;
        do_o[half] = OF_QUERIES ? m->tokens[0].do_o[row + g + 8 * half] : 0;
    }
    for (int step = 0, stage = 0; step < steps; step++, stage ^= 1) {
        int inner = begin + step % of_head * TILE;
        int first_query = OF_QUERIES ? outer : inner, first_key = OF_QUERIES ? inner : outer;
        int count = inner_count - inner < TILE ? inner_count - inner : TILE;
        const mma_tokens *tokens = &m->tokens[stage];
        head.number = first_head + step / of_head;
        copy_wait<0>();
        __syncthreads();
        if (step + 1 < steps)
            mma_copy_inner<D, OF_QUERIES, TERMS>(p, in, {sample, first_head + (step + 1) / of_head}, window,
                                                 begin + (step + 1) % of_head * TILE, stage ^ 1, m);
        copy_commit();
        float weights[MMA_PER_TILE][4], ds[MMA_PER_TILE][4] = {};
        mma_scores<D>(m->outer_first, row, m->inner_first[stage], count, weights);
        if (FIRST)
            mma_scores<D>(m->outer_second, row, m->inner_second[stage], count, ds);
#pragma unroll
        for (int n = 0; n < MMA_PER_TILE; n++) {
            if (n * MMA_COLUMNS >= count)
                continue; /* products of 0 */
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int of_outer = row + g + e / 2 * 8, of_inner = n * MMA_COLUMNS + 2 * t + e % 2;
                int i = OF_QUERIES ? of_outer : of_inner, j = OF_QUERIES ? of_inner : of_outer;
                pair_gradient<TERMS>(p, head, tokens, first_query, first_key, i, j,
                                     OF_QUERIES ? lse[e / 2] : tokens->lse[i],
                                     OF_QUERIES ? do_o[e / 2] : tokens->do_o[i], &weights[n][e], &ds[n][e]);
            }
        }
        if (OF_QUERIES && (to.kept || to.norms.data))
            keep_gradients(p, to, head, &tokens->queries, first_sample, first_key, row + g, ds, squares);
        uint32_t pairs[MMA_PER_TILE][2];
        if constexpr (SECOND) {
#pragma unroll
            for (int n = 0; n < 2 * MMA_PER_TILE; n++)
                pairs[n / 2][n % 2] = pack_bf16(weights[n / 2][n % 2 * 2], weights[n / 2][n % 2 * 2 + 1]);
            mma_mix<D>(pairs, m->inner_second[stage], count, second_sums);
        }
        if constexpr (FIRST) {
#pragma unroll
            for (int n = 0; n < 2 * MMA_PER_TILE; n++)
                pairs[n / 2][n % 2] = pack_bf16(ds[n / 2][n % 2 * 2], ds[n / 2][n % 2 * 2 + 1]);
            mma_mix<D>(pairs, m->inner_first[stage], count, first_sums);
        }
    }
    const float scale[2] = {p.scale, p.scale}, one[2] = {1, 1};
    const int *index = outer_index + row;
    attention_rows first = OF_QUERIES ? rows.queries[0] : rows.keys[0], second = rows.keys[1];
    first.x = to.of[OF_QUERIES ? HEAD_Q : HEAD_K];
    second.x = to.of[HEAD_V];
    if constexpr (FIRST)
        if (first.x.data)
            mma_store<D>(first, index, first_sums, scale);
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
    size_t bytes = 0;
    return in.dout.dtype == ATT_BF16 && (uintptr_t)in.dout.data % 16 == 0 &&
           mma_with_width(width, [&](auto d) { bytes = sizeof(mma_gradient_memory<decltype(d)::value>); }) &&
           attention_has_shared(bytes);
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
