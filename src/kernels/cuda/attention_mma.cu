#include "kernels/cuda/attention_mma.cuh"
#include "kernels/cuda/attention_statistics.cuh"

static constexpr float LOG2_E = 1.44269504088896341f, LN_2 = 0.693147180559945309f;

/* The largest score of a query without keys; its products with units are finite. */
static constexpr float LEAST_SCORE = -1e35f;

/* Memory of a block: tokens, then the queries [rows, D], the keys and the values [TILE, D] of a tile. */
template <int D, int M> struct mma_memory {
    bf16 q[MMA_WARPS * MMA_ROWS * M * mma_stride<D>], k[TILE * mma_stride<D>], v[TILE * mma_stride<D>];
    int queries[MMA_WARPS * MMA_ROWS * M];
    attention_tokens keys;
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
    for (int n = 0; n < MMA_PER_TILE; n++)
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
    largest = quad_max(largest);
    float down = row->largest - largest, shrink = power_of_two(down * unit);
    if (MEASURES && down < 0)
        rescale(&row->statistics[0], row->p, down, shrink);
    row->p *= shrink;
    row->largest = largest;
    float offset = -largest * unit;
#pragma unroll
    for (int n = 0; n < MMA_PER_TILE; n++) {
        float factors[4] = {1, 1, 1, 1};
        if (TERMS && p.drops && row->token.index >= 0)
            attention_factors(p, head, row->token.index, first + n * MMA_COLUMNS + t / 2 * 4, factors);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int place = n * MMA_COLUMNS + 2 * t + i;
            float *score = &scores[n][2 * half + i], from_largest = *score - largest;
            float weight = power_of_two(MEASURES ? from_largest * unit : fmaf(*score, unit, offset));
            if (MEASURES && *score != -INFINITY)
                add_key(p, &row->statistics[0], row->token, attention_token_of(keys, place), first + place,
                        from_largest, weight);
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

/* A block for each tile of 64 M queries of a window of a head of a sample; each warp has M times 16 of them. TERMS:
 * scores may have terms or masks, weights may be dropped, and the map may be read. */
template <int D, int M, bool TERMS, bool MEASURES>
__global__ void __launch_bounds__(MMA_THREADS)
    attention_mma_kernel(attention_problem p, attention_outputs to, float unit)
{
    extern __shared__ __align__(16) unsigned char shared[];
    mma_memory<D, M> *m = (mma_memory<D, M> *)shared;
    constexpr int ROWS = MMA_WARPS * MMA_ROWS * M;
    const bool places = TERMS || MEASURES; /* whether places of tokens are needed */
    query_tile tile = query_tile_at(p, blockIdx.x, ROWS);
    int warp_row = threadIdx.x / 32 * MMA_ROWS * M, g = threadIdx.x % 32 / 4;
    attention_rows k = attention_rows_of(p, HEAD_K, tile.head), v = attention_rows_of(p, HEAD_V, tile.head);
    for (int i = threadIdx.x; i < ROWS; i += MMA_THREADS)
        m->queries[i] = tile.first + i < p.queries ? attention_token_at(p, tile.window, tile.first + i).index : -1;
    if (places)
        attention_fill_tokens(p, tile.window, 0, p.keys, &m->keys);
    __syncthreads();
    const int *index = TERMS ? m->keys.index : nullptr;
    mma_copy<D>(attention_rows_of(p, HEAD_Q, tile.head), m->queries, 0, 0, ROWS, m->q);
    mma_copy<D>(k, index, 0, p.keys, TILE, m->k);
    copy_commit();
    mma_row<MEASURES> rows[2 * M];
    float sums[M][D / MMA_COLUMNS][4] = {};
#pragma unroll
    for (int r = 0; r < 2 * M; r++) {
        int place = warp_row + r / 2 * MMA_ROWS + r % 2 * 8 + g;
        rows[r] = {};
        rows[r].number = tile.first + place;
        rows[r].token = attention_token_at(p, tile.window, rows[r].number);
        rows[r].token.index = m->queries[place];
        rows[r].largest = LEAST_SCORE;
        rows[r].statistics[0].argmax = INT_MAX;
    }
    int end = TERMS && p.causal && !to.map && tile.first + ROWS < p.keys ? tile.first + ROWS : p.keys;
    for (int first = 0; first < end; first += TILE) {
        int count = end - first < TILE ? end - first : TILE;
        uint32_t weights[M][MMA_PER_TILE][2];
        copy_wait<0>();
        __syncthreads();
        mma_copy<D>(v, index, first, p.keys, TILE, m->v);
        copy_commit();
#pragma unroll
        for (int i = 0; i < M; i++) {
            float scores[MMA_PER_TILE][4], shrink[2];
            mma_scores<D>(m->q, warp_row + i * MMA_ROWS, m->k, count, scores);
#pragma unroll
            for (int half = 0; half < 2; half++)
                shrink[half] = mma_soften<TERMS, MEASURES>(p, tile.head, unit, first, half, &m->keys, to.map, scores,
                                                           &rows[2 * i + half]);
#pragma unroll
            for (int n = 0; n < MMA_PER_TILE; n++) {
                weights[i][n][0] = pack_bf16(scores[n][0], scores[n][1]);
                weights[i][n][1] = pack_bf16(scores[n][2], scores[n][3]);
            }
#pragma unroll
            for (int n = 0; n < D / MMA_COLUMNS; n++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sums[i][n][e] *= shrink[e / 2];
        }
        copy_wait<0>();
        __syncthreads();
        if (first + TILE < end) {
            if (places) {
                attention_fill_tokens(p, tile.window, first + TILE, p.keys, &m->keys);
                __syncthreads();
            }
            mma_copy<D>(k, index, first + TILE, p.keys, TILE, m->k);
            copy_commit();
        }
#pragma unroll
        for (int i = 0; i < M; i++)
            mma_mix<D>(weights[i], m->v, count, sums[i]);
    }
#pragma unroll
    for (int i = 0; i < M; i++) {
        float share[2];
#pragma unroll
        for (int half = 0; half < 2; half++)
            mma_finish_row<MEASURES>(p, to, tile.head, unit, &rows[2 * i + half], &share[half]);
        if (to.out.data)
            mma_store<D>(attention_rows_like_out(p, to.out, tile.head), m->queries + warp_row + i * MMA_ROWS, sums[i],
                         share);
    }
}

template <int D, int M, bool TERMS, bool MEASURES>
static void launch(const attention_problem &p, const attention_outputs &to)
{
    const int rows = MMA_WARPS * MMA_ROWS * M, bytes = (int)sizeof(mma_memory<D, M>);
    int64_t tiles = (int64_t)p.samples * p.heads * p.windows * ((p.queries + rows - 1) / rows);
    auto kernel = attention_mma_kernel<D, M, TERMS, MEASURES>;
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
            launch<D, 1, true, true>(p, to);
        else if (terms)
            launch<D, 1, true, false>(p, to);
        else if (to.stats)
            launch<D, 1, false, true>(p, to);
        else
            launch<D, D <= 64 ? 2 : 1, false, false>(p, to);
    });
}
