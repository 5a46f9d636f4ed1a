#include "engine/kernels/cuda/attention_mma.cuh"
#include "engine/kernels/cuda/attention_statistics.cuh"

static constexpr float LOG2_E = 1.44269504088896341f, LN_2 = 0.693147180559945309f;

/* The largest score of a query without keys; its products with units are finite. */
static constexpr float LEAST_SCORE = -1e35f;

/* Memory of a block: its queries, and two tiles of keys and values, of which one is copied while the other is used. */
template <int D> struct mma_memory {
    bf16 q[TILE * mma_stride<D>], k[2][TILE * mma_stride<D>], v[2][TILE * mma_stride<D>];
    int queries[TILE];
    attention_tokens keys[2];
};

/* One of the two rows of a thread in 16 rows of a warp. Scores are in units of ln(2) / unit. */
template <bool MEASURES> struct mma_row {
    attention_token token;
    int number; /* in the window */
    float largest, p;
    row_statistics statistics[1]; /* if MEASURES */
};

/* Turns the scores of one row into weights, in place. half: the row, 0 or 1; returns the factor of sums so far. */
template <bool TERMS, bool MEASURES>
__device__ __forceinline__ float mma_soften(const attention_problem &p, attention_head head, float unit, int first,
                                            int half, const attention_tokens *keys, float *map,
                                            float scores[MMA_PER_TILE][4], mma_row<MEASURES> *row)
{
    int t = threadIdx.x % 4, count = p.keys - first;
    float largest = row->largest;
#pragma unroll
    for (int n = 0; n < MMA_PER_TILE; n++) {
        if (n * MMA_COLUMNS >= count)
            continue;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int place = n * MMA_COLUMNS + 2 * t + i, j = first + place;
            float *score = &scores[n][2 * half + i];
            bool seen = TERMS ? attends(p, row->number, j) : place < count;
            if (TERMS && seen)
                *score = attention_score(p, head, row->token, attention_token_of(keys, place), j, *score);
            if (TERMS && map && row->token.index >= 0 && j < p.keys)
                map[attention_row(p, head, row->token.index) * p.keys + j] = seen ? *score : -INFINITY;
            if (!seen)
                *score = -INFINITY;
            largest = fmaxf(largest, *score);
            if (MEASURES && row->number == j)
                row->statistics[0].self = *score;
        }
    }
    largest = quad_max(largest);
    float down = row->largest - largest, shrink = power_of_two(down * unit);
    if (MEASURES && down < 0)
        rescale(&row->statistics[0], row->p, down, shrink);
    row->p *= shrink;
    row->largest = largest;
    float offset = -largest * unit;
    query_place from = query_place_of(row->token);
#pragma unroll
    for (int n = 0; n < MMA_PER_TILE; n++) {
        if (n * MMA_COLUMNS >= count) {
            scores[n][2 * half] = scores[n][2 * half + 1] = 0;
            continue;
        }
        float factors[4] = {1, 1, 1, 1};
        if (TERMS && p.drops && row->token.index >= 0)
            attention_factors(p, head, row->token.index, first + n * MMA_COLUMNS + t / 2 * 4, factors);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int place = n * MMA_COLUMNS + 2 * t + i;
            float *score = &scores[n][2 * half + i], from_largest = *score - largest;
            float weight = power_of_two(MEASURES ? from_largest * unit : fmaf(*score, unit, offset));
            if (MEASURES)
                add_key(p, &row->statistics[0], from, keys, place, first + place, from_largest, weight);
            row->p += weight;
            *score = TERMS ? weight * (t % 2 ? factors[2 + i] : factors[i]) : weight;
        }
    }
    return shrink;
}

template <bool MEASURES>
__device__ __forceinline__ void mma_finish_row(const attention_problem &p, const attention_outputs &to,
                                               attention_head head, float unit, mma_row<MEASURES> *row, float *share)
{
    float sum = quad_sum(row->p), largest = row->largest;
    bool has_key = !(largest <= (float)ATT_ATTENTION_NO_SCORE) || isnan(sum), writes = threadIdx.x % 4 == 0;
    int token = row->token.index;
    int64_t at = attention_row(p, head, token);
    float lse = has_key ? largest * unit * LN_2 + logf(sum) : INFINITY;
    *share = has_key ? 1 / sum : 0;
    if (to.lse && token >= 0 && writes)
        to.lse[at] = lse;
    if (MEASURES) {
        const row_statistics &s = row->statistics[0];
        row_statistics all = {quad_sum(s.p_log_p) * unit * LN_2,
                              quad_sum(s.equal),
                              quad_sum(s.smaller),
                              quad_sum(s.smaller2),
                              quad_sum(s.smaller3),
                              quad_sum(s.distance),
                              quad_sum(s.prefix),
                              {},
                              quad_sum(s.self),
                              quad_min(s.argmax)};
#pragma unroll
        for (int i = 0; i < SHIFTS; i++)
            all.shift[i] = quad_sum(s.shift[i]);
        float self = p.queries == p.keys ? power_of_two((all.self - largest) * unit) : 0;
        if (token >= 0 && writes)
            write_statistics(all, self, *share, to.stats + at * ATT_STAT_COUNT);
    }
    if (!to.map || token < 0)
        return;
    for (int j = 2 * (threadIdx.x % 4); j < p.keys; j += j % 2 == 1 ? MMA_COLUMNS - 1 : 1)
        to.map[at * p.keys + j] = expf(to.map[at * p.keys + j] - lse);
}

/* Begins to copy a tile of keys and values. PLACES: the places of the tokens are needed, too; then all threads wait for
 * each other. */
template <int D, bool PLACES>
__device__ __forceinline__ void mma_copy_keys(const attention_problem &p, const query_tile &tile, int first, int stage,
                                              mma_memory<D> *m)
{
    if (PLACES) {
        attention_fill_tokens(p, tile.window, first, p.keys, &m->keys[stage]);
        __syncthreads();
    }
    const int *index = PLACES ? m->keys[stage].index : nullptr;
    mma_copy<D>(attention_rows_of(p, HEAD_K, tile.head), index, first, p.keys, TILE, m->k[stage]);
    mma_copy<D>(attention_rows_of(p, HEAD_V, tile.head), index, first, p.keys, TILE, m->v[stage]);
}

/* Blocks that a multiprocessor should hold at once, which bounds the registers. */
template <int D, bool TERMS, bool MEASURES> static constexpr int mma_blocks = TERMS || MEASURES ? 2 : D <= 64 ? 4 : 3;

/* A block for each tile of queries of a window of a head of a sample; each warp has 16 of them. TERMS: scores may have
 * terms or masks, weights may be dropped, and the map may be read. */
template <int D, bool TERMS, bool MEASURES>
__global__ void __launch_bounds__(MMA_THREADS, mma_blocks<D, TERMS, MEASURES>)
    attention_mma_kernel(attention_problem p, attention_outputs to, float unit)
{
    extern __shared__ __align__(16) unsigned char shared[];
    mma_memory<D> *m = (mma_memory<D> *)shared;
    constexpr bool PLACES = TERMS || MEASURES;
    query_tile tile = query_tile_at(p, blockIdx.x, TILE);
    int warp_row = threadIdx.x / 32 * MMA_ROWS, g = threadIdx.x % 32 / 4;
    for (int i = threadIdx.x; i < TILE; i += MMA_THREADS)
        m->queries[i] = tile.first + i < p.queries ? attention_token_at(p, tile.window, tile.first + i).index : -1;
    __syncthreads();
    mma_copy<D>(attention_rows_of(p, HEAD_Q, tile.head), m->queries, 0, 0, TILE, m->q);
    mma_copy_keys<D, PLACES>(p, tile, 0, 0, m);
    copy_commit();
    mma_row<MEASURES> rows[2];
    float sums[D / MMA_COLUMNS][4] = {}, share[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int place = warp_row + half * 8 + g;
        rows[half] = {};
        rows[half].number = tile.first + place;
        rows[half].token = attention_token_at(p, tile.window, rows[half].number);
        rows[half].token.index = m->queries[place];
        rows[half].largest = LEAST_SCORE;
        rows[half].statistics[0].argmax = INT_MAX;
    }
    int end = TERMS && p.causal && !to.map && tile.first + TILE < p.keys ? tile.first + TILE : p.keys;
    for (int first = 0, stage = 0; first < end; first += TILE, stage ^= 1) {
        int count = end - first < TILE ? end - first : TILE;
        copy_wait<0>();
        __syncthreads();
        if (first + TILE < end)
            mma_copy_keys<D, PLACES>(p, tile, first + TILE, stage ^ 1, m);
        copy_commit();
        float scores[MMA_PER_TILE][4], shrink[2];
        uint32_t weights[MMA_PER_TILE][2];
        mma_scores<D>(m->q, warp_row, m->k[stage], count, scores);
#pragma unroll
        for (int half = 0; half < 2; half++)
            shrink[half] = mma_soften<TERMS, MEASURES>(p, tile.head, unit, first, half, &m->keys[stage], to.map, scores,
                                                       &rows[half]);
#pragma unroll
        for (int n = 0; n < MMA_PER_TILE; n++) {
            weights[n][0] = pack_bf16(scores[n][0], scores[n][1]);
            weights[n][1] = pack_bf16(scores[n][2], scores[n][3]);
        }
#pragma unroll
        for (int n = 0; n < D / MMA_COLUMNS; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                sums[n][e] *= shrink[e / 2];
        mma_mix<D>(weights, m->v[stage], count, sums);
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
        mma_finish_row<MEASURES>(p, to, tile.head, unit, &rows[half], &share[half]);
    if (to.out.data)
        mma_store<D>(attention_rows_like_out(p, to.out, tile.head), m->queries + warp_row, sums, share);
}

template <int D, bool TERMS, bool MEASURES> static void launch(const attention_problem &p, const attention_outputs &to)
{
    const int bytes = (int)sizeof(mma_memory<D>);
    int64_t tiles = (int64_t)p.samples * p.heads * p.windows * ((p.queries + TILE - 1) / TILE);
    auto kernel = attention_mma_kernel<D, TERMS, MEASURES>;
    cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<(unsigned)tiles, MMA_THREADS, bytes, cuda.stream>>>(p, to, TERMS ? LOG2_E : p.scale * LOG2_E);
}

bool attention_mma(const attention_problem &p, const attention_outputs &to)
{
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        if (!mma_fits(p.operand[o]) || p.operand[o].width != p.operand[HEAD_Q].width)
            return false;
    const attention_terms &t = p.terms;
    bool terms = t.relative || t.rows || t.keys || p.causal || p.drops || p.windows > 1 || p.window_h || to.map ||
                 !(p.scale > 0);
    return mma_with_width(p.operand[HEAD_Q].width, [&](auto width) {
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
}
