#include "kernels/cuda/attention_statistics.cuh"

enum { OUT, LSE, STATS, MAP };

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

/* Memory of a block. */
struct attention_memory {
    union {
        struct {
            tile_channels left, right;
        } operands;
        float values[TILE_CHANNELS * 128];
    } of;
    float weights[TILE][TILE_PADDED]; /* [key][query] */
    attention_tokens queries, keys;
};

/* The state of a thread's 4 queries. */
template <bool MEASURES> struct row_state {
    float largest[4], p[4]; /* p: the thread's own share of the sum */
    row_statistics statistics[MEASURES ? 4 : 1];
};

/* Replaces the thread's products by weights; returns the factors by which sums so far shrink. */
template <bool MEASURES>
__device__ __forceinline__ void soften(const attention_problem &p, const query_tile &tile, const attention_memory *m,
                                       int first_key, float *map, float scores[4][4], row_state<MEASURES> *state,
                                       float shrink[4])
{
    tile_place at = tile_here();
#pragma unroll
    for (int r = 0; r < 4; r++) {
        int i = tile.first + 4 * at.y + r;
        attention_token q = attention_token_of(&m->queries, 4 * at.y + r);
        float largest = -FLT_MAX, factors[4] = {1, 1, 1, 1};
#pragma unroll
        for (int c = 0; c < 4; c++) {
            int j = first_key + 4 * at.x + c;
            if (!attends(p, i, j))
                continue;
            attention_token k = attention_token_of(&m->keys, 4 * at.x + c);
            scores[r][c] = attention_score(p, tile.head, q, k, j, scores[r][c]);
            largest = fmaxf(largest, scores[r][c]);
            if (MEASURES && i == j)
                state->statistics[r].self = scores[r][c];
        }
        if (map && q.index >= 0)
            for (int c = 0; c < 4; c++) {
                int j = first_key + 4 * at.x + c;
                if (j < p.keys)
                    map[attention_row(p, tile.head, q.index) * p.keys + j] =
                        attends(p, i, j) ? scores[r][c] : -INFINITY;
            }
        largest = fmaxf(row_max(largest), state->largest[r]);
        float down = state->largest[r] - largest, factor = expf(down);
        shrink[r] = factor;
        if (MEASURES && down < 0)
            rescale(&state->statistics[r], state->p[r], down, factor);
        state->p[r] *= factor;
        state->largest[r] = largest;
        if (p.drops && q.index >= 0)
            attention_factors(p, tile.head, q.index, first_key + 4 * at.x, factors);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            int j = first_key + 4 * at.x + c;
            float t = scores[r][c] - largest, weight = attends(p, i, j) ? expf(t) : 0;
            state->p[r] += weight;
            if (MEASURES && attends(p, i, j))
                add_key(p, &state->statistics[r], q, attention_token_of(&m->keys, 4 * at.x + c), j, t, weight);
            scores[r][c] = weight * factors[c];
        }
    }
}

/* Replaces the scores that the thread wrote to the map by weights. */
__device__ __forceinline__ void finish_map(const attention_problem &p, float *row, float lse)
{
    for (int j = 4 * tile_here().x; j < p.keys; j += j % 4 == 3 ? TILE - 3 : 1)
        row[j] = expf(row[j] - lse);
}

/* A block for each tile of queries of a window of a head of a sample, and each 16 C channels of the values. */
template <int C, bool MEASURES>
__global__ void __launch_bounds__(TILE_THREADS) attention_kernel(attention_problem p, attention_outputs to)
{
    __shared__ attention_memory m;
    query_tile tile = query_tile_at(p, blockIdx.x, TILE);
    tile_place at = tile_here();
    int channel = blockIdx.y * 16 * C;
    bool is_first = channel == 0;
    attention_rows q = attention_rows_of(p, HEAD_Q, tile.head), k = attention_rows_of(p, HEAD_K, tile.head),
                   v = attention_rows_of(p, HEAD_V, tile.head);
    row_state<MEASURES> state = {};
    float sums[4][C] = {};
#pragma unroll
    for (int r = 0; r < 4; r++) {
        state.largest[r] = -FLT_MAX;
        if (MEASURES)
            state.statistics[r].argmax = INT_MAX;
    }
    attention_fill_tokens(p, tile.window, tile.first, p.queries, &m.queries);
    int end = p.causal && !to.map && tile.first + TILE < p.keys ? tile.first + TILE : p.keys;
    for (int first = 0; first < end; first += TILE) {
        float scores[4][4], shrink[4];
        attention_fill_tokens(p, tile.window, first, p.keys, &m.keys);
        tile_product(q, m.queries.index, k, m.keys.index, m.of.operands.left, m.of.operands.right, scores);
        soften<MEASURES>(p, tile, &m, first, is_first ? to.map : nullptr, scores, &state, shrink);
        if (!to.out.data) {
            __syncthreads(); /* the tokens of the keys are replaced next */
            continue;
        }
#pragma unroll
        for (int c = 0; c < 4; c++)
            *(float4 *)&m.weights[4 * at.x + c][4 * at.y] =
                make_float4(scores[0][c], scores[1][c], scores[2][c], scores[3][c]);
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int c = 0; c < C; c++)
                sums[r][c] *= shrink[r];
        tile_mix<C>(m.weights, v, m.keys.index, channel, m.of.values, sums);
    }
    float share[4];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        float p_sum = row_sum(state.p[r]), largest = state.largest[r];
        bool has_key = !(largest <= (float)ATT_ATTENTION_NO_SCORE) || isnan(p_sum);
        int token = m.queries.index[4 * at.y + r];
        float lse = has_key ? largest + logf(p_sum) : INFINITY;
        share[r] = has_key ? 1 / p_sum : 0;
        int64_t row = attention_row(p, tile.head, token);
        if (to.lse && is_first && token >= 0 && at.x == 0)
            to.lse[row] = lse;
        if (MEASURES && is_first) {
            row_statistics sum = sum_statistics(state.statistics[r]);
            float self = p.queries == p.keys ? expf(sum.self - largest) : 0;
            if (token >= 0 && at.x == 0)
                write_statistics(sum, self, share[r], to.stats + row * ATT_STAT_COUNT);
        }
        if (to.map && is_first && token >= 0)
            finish_map(p, to.map + row * p.keys, lse);
    }
    if (to.out.data)
        tile_store<C>(attention_rows_like_out(p, to.out, tile.head), m.queries.index, channel, sums, share);
}

template <int C> static void launch(const attention_problem &p, const attention_outputs &to)
{
    int64_t tiles = (int64_t)p.samples * p.heads * p.windows * ((p.queries + TILE - 1) / TILE);
    int pieces = to.out.data ? (p.operand[HEAD_V].width + 16 * C - 1) / (16 * C) : 1;
    dim3 grid((unsigned)tiles, (unsigned)pieces);
    if (to.stats)
        attention_kernel<C, true><<<grid, TILE_THREADS, 0, cuda.stream>>>(p, to);
    else
        attention_kernel<C, false><<<grid, TILE_THREADS, 0, cuda.stream>>>(p, to);
}

static att_status run(const att_call *call)
{
    attention_problem p = attention_problem_of(call, 0);
    attention_outputs to = {cuda_out(call, OUT), (float *)call->out[LSE], (float *)call->out[STATS],
                            (float *)call->out[MAP]};
    if (attention_mma(p, to))
        return att_cuda_launched(call);
    int width = p.operand[HEAD_V].width;
    if (width <= 32)
        launch<2>(p, to);
    else if (width <= 64)
        launch<4>(p, to);
    else
        launch<8>(p, to);
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(attention, run);
