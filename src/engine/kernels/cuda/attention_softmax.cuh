/* kernels/cuda/attention_softmax.cuh - the running softmax of attention in f32, 4 x 4 scores a thread. */
#ifndef ATT_KERNELS_CUDA_ATTENTION_SOFTMAX_CUH
#define ATT_KERNELS_CUDA_ATTENTION_SOFTMAX_CUH

#include "engine/kernels/cuda/attention_statistics.cuh"
#include "engine/kernels/cuda/mma.cuh"

static constexpr float TILE_LOG2_E = 1.44269504088896341f;

/* Place in its tile of key c of the 4 keys of a thread: neighbours or, if STRIDED, 16 apart. */
template <bool STRIDED> __device__ __forceinline__ int tile_key(int x, int c)
{
    return STRIDED ? x + 16 * c : 4 * x + c;
}

/* The same statistics summed over the 16 threads of a row. */
__device__ __forceinline__ row_statistics sum_statistics(row_statistics s)
{
    row_statistics sum = {row_sum(s.p_log_p),  row_sum(s.equal),    row_sum(s.smaller), row_sum(s.smaller2),
                          row_sum(s.smaller3), row_sum(s.distance), row_sum(s.prefix),  {},
                          row_sum(s.self),     row_min(s.argmax)};
#pragma unroll
    for (int i = 0; i < SHIFTS; i++)
        sum.shift[i] = row_sum(s.shift[i]);
    return sum;
}

/* The state of a thread's 4 queries. */
template <bool MEASURES> struct row_state {
    float largest[4], p[4]; /* p: the thread's own share of the sum */
    row_statistics statistics[MEASURES ? 4 : 1];
};

template <bool MEASURES> __device__ __forceinline__ row_state<MEASURES> first_state()
{
    row_state<MEASURES> state = {};
#pragma unroll
    for (int r = 0; r < 4; r++) {
        state.largest[r] = -FLT_MAX;
        if (MEASURES)
            state.statistics[r].argmax = INT_MAX;
    }
    return state;
}

/* Factors of dropout of a thread's 4 keys. */
template <bool STRIDED>
__device__ __forceinline__ void tile_factors(const attention_problem &p, attention_head head, int query, int first_key,
                                             float factors[4])
{
    int x = tile_here().x;
    if constexpr (!STRIDED) {
        attention_factors(p, head, query, first_key + 4 * x, factors);
    } else {
#pragma unroll
        for (int c = 0; c < 4; c++)
            factors[c] = attention_factor(p, head, query, first_key + 16 * c + x);
    }
}

/* Replaces the thread's products by weights; writes the factors by which sums so far shrink. TERMS: scores may have
 * terms or masks, weights may be dropped, and the map may be read. */
template <bool TERMS, bool MEASURES, bool STRIDED>
__device__ __forceinline__ void soften(const attention_problem &p, const query_tile &tile,
                                       const attention_tokens *queries, const attention_tokens *keys, int first_key,
                                       float *map, float scores[4][4], row_state<MEASURES> *state, float shrink[4])
{
    tile_place at = tile_here();
#pragma unroll
    for (int r = 0; r < 4; r++) {
        int i = tile.first + 4 * at.y + r;
        attention_token q = attention_token_of(queries, 4 * at.y + r);
        float largest = -FLT_MAX, factors[4] = {1, 1, 1, 1};
        query_place from = query_place_of(q);
        bool seen[4];
#pragma unroll
        for (int c = 0; c < 4; c++) {
            int place = tile_key<STRIDED>(at.x, c), j = first_key + place;
            seen[c] = TERMS ? attends(p, i, j) : j < p.keys;
            scores[r][c] = TERMS ? attention_score(p, tile.head, q, attention_token_of(keys, place), j, scores[r][c])
                                 : p.scale * scores[r][c];
            largest = seen[c] ? fmaxf(largest, scores[r][c]) : largest;
            if (MEASURES && i == j)
                state->statistics[r].self = scores[r][c];
            if (TERMS && map && q.index >= 0 && j < p.keys)
                map[attention_row(p, tile.head, q.index) * p.keys + j] = seen[c] ? scores[r][c] : -INFINITY;
        }
        largest = fmaxf(row_max(largest), state->largest[r]);
        float down = state->largest[r] - largest, factor = power_of_two(down * TILE_LOG2_E);
        shrink[r] = factor;
        if (MEASURES && down < 0)
            rescale(&state->statistics[r], state->p[r], down, factor);
        state->p[r] *= factor;
        state->largest[r] = largest;
        if (TERMS && p.drops && q.index >= 0)
            tile_factors<STRIDED>(p, tile.head, q.index, first_key, factors);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            int place = tile_key<STRIDED>(at.x, c), j = first_key + place;
            float t = scores[r][c] - largest, weight = seen[c] ? power_of_two(t * TILE_LOG2_E) : 0;
            state->p[r] += weight;
            if (MEASURES)
                add_key(p, &state->statistics[r], from, keys, place, j, seen[c] ? t : -FLT_MAX, weight);
            scores[r][c] = TERMS ? weight * factors[c] : weight;
        }
    }
}

/* Writes the outputs with one row for each query, and the factors of the sums of values. */
template <bool MEASURES, bool STRIDED>
__device__ __forceinline__ void finish_rows(const attention_problem &p, const query_tile &tile,
                                            const attention_tokens *queries, const attention_outputs &to,
                                            row_state<MEASURES> *state, float share[4])
{
    tile_place at = tile_here();
#pragma unroll
    for (int r = 0; r < 4; r++) {
        float p_sum = row_sum(state->p[r]), largest = state->largest[r];
        bool has_key = !(largest <= (float)ATT_ATTENTION_NO_SCORE) || isnan(p_sum);
        int token = queries->index[4 * at.y + r];
        float lse = has_key ? largest + logf(p_sum) : INFINITY;
        share[r] = has_key ? 1 / p_sum : 0;
        int64_t row = attention_row(p, tile.head, token);
        if (to.lse && token >= 0 && at.x == 0)
            to.lse[row] = lse;
        if (MEASURES && to.stats) {
            row_statistics sum = sum_statistics(state->statistics[r]);
            float self = p.queries == p.keys ? expf(sum.self - largest) : 0;
            if (token >= 0 && at.x == 0)
                write_statistics(sum, self, share[r], to.stats + row * ATT_STAT_COUNT);
        }
        for (int j = 0; to.map && token >= 0 && j < p.keys; j += TILE)
            for (int c = 0; c < 4; c++) {
                int key = j + tile_key<STRIDED>(at.x, c);
                if (key < p.keys)
                    to.map[row * p.keys + key] = expf(to.map[row * p.keys + key] - lse);
            }
    }
}

#endif
