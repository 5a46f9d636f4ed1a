/* The gradient of attention for f32 heads of at most 64 channels, in the way of attention_grad_mma.cu: a block owns an
 * outer tile of queries or keys and walks over the inner tiles of the other side. Rows are outer tokens. */
#include "engine/kernels/cuda/attention_f32.cuh"
#include "engine/kernels/cuda/attention_gradient.cuh"

/* Memory of a block. first and second: q and do, or k and v, of the tokens of a tile. */
template <int D> struct f32_gradient_memory {
    float outer_first[TILE * f32_stride<D>], outer_second[TILE * f32_stride<D>];
    float inner_first[TILE * f32_stride<D>], inner_second[TILE * f32_stride<D>];
    float weights[TILE][TILE_PADDED]; /* [inner token][outer token] */
    attention_tokens queries, keys;
    float lse[TILE], do_o[TILE];
};

/* Fills the tokens of a tile of queries and their numbers; all threads call. */
template <int D>
__device__ __forceinline__ void fill_queries(const attention_problem &p, const gradient_inputs &in, attention_head head,
                                             int window, int first, f32_gradient_memory<D> *m)
{
    attention_fill_tokens(p, window, first, p.queries, &m->queries);
    int i = threadIdx.x;
    if (i >= TILE)
        return;
    int token = m->queries.index[i];
    int64_t row = attention_row(p, head, token);
    m->lse[i] = token >= 0 ? in.lse[row] : 0;
    m->do_o[i] = token >= 0 ? in.do_o[row] : 0;
}

/* Replaces the thread's products by weights after dropout and gradients of scores. OF_QUERIES: queries are the rows */
template <int D, bool OF_QUERIES, bool TERMS>
__device__ __forceinline__ void find_gradients(const attention_problem &p, attention_head head,
                                               const f32_gradient_memory<D> *m, int first_query, int first_key,
                                               float weights[4][4], float ds[4][4])
{
    tile_place at = tile_here();
#pragma unroll
    for (int e = 0; e < 16; e++) {
        int outer = 4 * at.y + e / 4, inner = at.x + 16 * (e % 4);
        int i = OF_QUERIES ? outer : inner, j = OF_QUERIES ? inner : outer;
        attention_token q = attention_token_of(&m->queries, i), k = attention_token_of(&m->keys, j);
        bool seen = q.index >= 0 && k.index >= 0 && !(TERMS && p.causal && first_key + j > first_query + i);
        float *weight = &weights[e / 4][e % 4], *gradient = &ds[e / 4][e % 4];
        float score = TERMS ? attention_score(p, head, q, k, first_key + j, *weight) : p.scale * *weight;
        float a = seen ? power_of_two((score - m->lse[i]) * TILE_LOG2_E) : 0, factor = 1;
        if (TERMS && p.drops && q.index >= 0)
            factor = attention_factor(p, head, q.index, first_key + j);
        *weight = factor * a;
        *gradient = a * (factor * *gradient - m->do_o[i]);
    }
}

/* Keeps the gradients of scores of a thread's queries for those of the terms, and adds their squares. */
template <int D>
__device__ __forceinline__ void keep_gradients(const attention_problem &p, const gradient_outputs &to,
                                               attention_head head, const f32_gradient_memory<D> *m, int first_sample,
                                               int first_key, const float ds[4][4], double squares[4])
{
    tile_place at = tile_here();
#pragma unroll
    for (int e = 0; e < 16; e++) {
        int token = m->queries.index[4 * at.y + e / 4], j = first_key + at.x + 16 * (e % 4);
        float value = ds[e / 4][e % 4];
        squares[e / 4] += to.norms.data ? (double)value * (double)value : 0;
        if (to.kept && token >= 0 && j < p.keys)
            to.kept[attention_row(p, {head.sample - first_sample, head.number}, token) * p.keys + j] = value;
    }
}

__device__ __forceinline__ void write_tile_norms(const attention_problem &p, const gradient_outputs &to,
                                                 attention_head head, const int *index, const double squares[4])
{
    tile_place at = tile_here();
#pragma unroll
    for (int r = 0; r < 4; r++) {
        double sum = squares[r];
        for (int step = 8; step > 0; step /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
        int token = index[4 * at.y + r];
        if (token >= 0 && at.x == 0)
            store(to.norms, attention_row(p, head, token), (float)sqrt(sum));
    }
}

/* A block for each outer tile of a window of a head of a sample; for dk and dv, a head of keys or values, which
 * `shared_by` heads of queries share. */
template <int D, gradient_result RESULT, bool TERMS>
__global__ void __launch_bounds__(TILE_THREADS, 2)
    attention_grad_f32_kernel(attention_problem p, gradient_inputs in, gradient_outputs to, int heads, int shared_by,
                              int first_sample)
{
    extern __shared__ __align__(16) unsigned char shared[];
    f32_gradient_memory<D> *m = (f32_gradient_memory<D> *)shared;
    constexpr bool OF_QUERIES = RESULT == GRADIENT_DQ, SECOND = RESULT == GRADIENT_DV || RESULT == GRADIENT_DK_DV,
                   FIRST = RESULT != GRADIENT_DV;
    int outer_count = OF_QUERIES ? p.queries : p.keys, inner_count = OF_QUERIES ? p.keys : p.queries;
    int tiles = (outer_count + TILE - 1) / TILE, unit = blockIdx.x / tiles, outer = blockIdx.x % tiles * TILE;
    int window = unit % p.windows, sample = first_sample + unit / p.windows / heads;
    int first_head = unit / p.windows % heads * shared_by;
    float first_sums[4][D / 16] = {}, second_sums[4][D / 16] = {};
    double squares[4] = {};
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
            const int *index = OF_QUERIES ? m->queries.index : m->keys.index;
            f32_copy<D>(OF_QUERIES ? q : k, index, m->outer_first);
            f32_copy<D>(OF_QUERIES ? dout : v, index, m->outer_second);
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
            f32_copy<D>(OF_QUERIES ? k : q, index, m->inner_first);
            f32_copy<D>(OF_QUERIES ? v : dout, index, m->inner_second);
            copy_commit();
            copy_wait<0>();
            __syncthreads();
            float weights[4][4], ds[4][4] = {};
            f32_scores<D>(m->outer_first, m->inner_first, weights);
            if (FIRST)
                f32_scores<D>(m->outer_second, m->inner_second, ds);
            find_gradients<D, OF_QUERIES, TERMS>(p, head, m, first_query, first_key, weights, ds);
            if (OF_QUERIES && (to.kept || to.norms.data))
                keep_gradients<D>(p, to, head, m, first_sample, first_key, ds, squares);
            if (SECOND) {
                f32_put_weights(weights, m->weights);
                __syncthreads();
                f32_mix<D>(m->weights, m->inner_second, count, second_sums);
            }
            if (FIRST) {
                if (SECOND)
                    __syncthreads();
                f32_put_weights(ds, m->weights);
                __syncthreads();
                f32_mix<D>(m->weights, m->inner_first, count, first_sums);
            }
        }
    }
    const float scale[4] = {p.scale, p.scale, p.scale, p.scale}, one[4] = {1, 1, 1, 1};
    const int *index = OF_QUERIES ? m->queries.index : m->keys.index;
    attention_rows first = attention_rows_of(p, OF_QUERIES ? HEAD_Q : HEAD_K, head);
    first.x = to.of[OF_QUERIES ? HEAD_Q : HEAD_K];
    if (FIRST && first.x.data)
        f32_store<D>(first, index, first_sums, scale);
    attention_rows second = attention_rows_of(p, HEAD_V, head);
    second.x = to.of[HEAD_V];
    if (SECOND && second.x.data)
        f32_store<D>(second, index, second_sums, one);
    if (OF_QUERIES && to.norms.data)
        write_tile_norms(p, to, head, index, squares);
}

template <int D, gradient_result RESULT, bool TERMS>
static void launch_as(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to, int shared_by,
                      int first_sample, int samples)
{
    const int bytes = (int)sizeof(f32_gradient_memory<D>), heads = p.heads / shared_by;
    int tiles = ((RESULT == GRADIENT_DQ ? p.queries : p.keys) + TILE - 1) / TILE;
    auto kernel = attention_grad_f32_kernel<D, RESULT, TERMS>;
    cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<(unsigned)(samples * heads * p.windows * tiles), TILE_THREADS, bytes, cuda.stream>>>(
        p, in, to, heads, shared_by, first_sample);
}

template <gradient_result RESULT>
static void launch(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to, int shared_by,
                   int first_sample, int samples)
{
    f32_with_width(p.operand[HEAD_Q].width, [&](auto width) {
        constexpr int D = decltype(width)::value;
        if (attention_has_terms(p))
            launch_as<D, RESULT, true>(p, in, to, shared_by, first_sample, samples);
        else
            launch_as<D, RESULT, false>(p, in, to, shared_by, first_sample, samples);
    });
}

bool attention_grad_fits_f32(const attention_problem &p, const gradient_inputs &in)
{
    return f32_fits(p) && in.dout.dtype == ATT_F32 && (uintptr_t)in.dout.data % 16 == 0;
}

void attention_grad_f32_queries(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
                                int first_sample, int samples)
{
    launch<GRADIENT_DQ>(p, in, to, 1, first_sample, samples);
}

void attention_grad_f32_keys(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
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
