#include "engine/kernels/cuda/attention_f32.cuh"

template <int D> struct f32_memory {
    float q[TILE * f32_stride<D>], k[TILE * f32_stride<D>], v[TILE * f32_stride<D>];
    float weights[TILE][TILE_PADDED]; /* [key][query] */
    attention_tokens queries, keys;
};

/* A block for each tile of queries of a window of a head of a sample. Values are copied while scores are computed, and
 * the next keys while values are mixed. */
template <int D, bool TERMS, bool MEASURES>
__global__ void __launch_bounds__(TILE_THREADS, 2) attention_f32_kernel(attention_problem p, attention_outputs to)
{
    extern __shared__ __align__(16) unsigned char shared[];
    f32_memory<D> *m = (f32_memory<D> *)shared;
    query_tile tile = query_tile_at(p, blockIdx.x, TILE);
    attention_rows k = attention_rows_of(p, HEAD_K, tile.head), v = attention_rows_of(p, HEAD_V, tile.head);
    row_state<MEASURES> state = first_state<MEASURES>();
    float sums[4][D / 16] = {}, share[4];
    attention_fill_tokens(p, tile.window, tile.first, p.queries, &m->queries);
    attention_fill_tokens(p, tile.window, 0, p.keys, &m->keys);
    __syncthreads();
    f32_copy<D>(attention_rows_of(p, HEAD_Q, tile.head), m->queries.index, m->q);
    f32_copy<D>(k, m->keys.index, m->k);
    copy_commit();
    int end = TERMS && p.causal && !to.map && tile.first + TILE < p.keys ? tile.first + TILE : p.keys;
    for (int first = 0; first < end; first += TILE) {
        float scores[4][4], shrink[4];
        copy_wait<0>();
        __syncthreads();
        f32_copy<D>(v, m->keys.index, m->v);
        copy_commit();
        f32_scores<D>(m->q, m->k, scores);
        soften<TERMS, MEASURES, true>(p, tile, &m->queries, &m->keys, first, to.map, scores, &state, shrink);
        f32_put_weights(scores, m->weights);
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int c = 0; c < D / 16; c++)
                sums[r][c] *= shrink[r];
        copy_wait<0>();
        __syncthreads();
        if (first + TILE < end) {
            attention_fill_tokens(p, tile.window, first + TILE, p.keys, &m->keys);
            __syncthreads();
            f32_copy<D>(k, m->keys.index, m->k);
            copy_commit();
        }
        f32_mix<D>(m->weights, m->v, end - first < TILE ? end - first : TILE, sums);
    }
    finish_rows<MEASURES, true>(p, tile, &m->queries, to, &state, share);
    if (!to.out.data)
        return;
    attention_rows out = attention_rows_like_out(p, to.out, tile.head);
    f32_store<D>(out, m->queries.index, sums, share);
}

template <int D, bool TERMS, bool MEASURES> static void launch(const attention_problem &p, const attention_outputs &to)
{
    int64_t tiles = (int64_t)p.samples * p.heads * p.windows * ((p.queries + TILE - 1) / TILE);
    const int bytes = (int)sizeof(f32_memory<D>);
    auto kernel = attention_f32_kernel<D, TERMS, MEASURES>;
    cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<(unsigned)tiles, TILE_THREADS, bytes, cuda.stream>>>(p, to);
}

bool attention_f32(const attention_problem &p, const attention_outputs &to)
{
    if (!f32_fits(p))
        return false;
    const attention_terms &t = p.terms;
    bool terms = t.relative || t.rows || t.keys || p.causal || p.drops || p.window_h || to.map;
    f32_with_width(p.operand[HEAD_Q].width, [&](auto width) {
        constexpr int D = decltype(width)::value;
        if (terms && to.stats)
            launch<D, true, true>(p, to);
        else if (terms)
            launch<D, true, false>(p, to);
        else if (to.stats)
            launch<D, false, true>(p, to);
        else
            launch<D, false, false>(p, to);
    });
    return true;
}
