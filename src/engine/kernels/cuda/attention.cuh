/* kernels/cuda/attention.cuh - what attention and its gradient share: heads, tokens of windows, terms, dropout, and
 * tiles of products in f32. */
#ifndef ATT_KERNELS_CUDA_ATTENTION_CUH
#define ATT_KERNELS_CUDA_ATTENTION_CUH

#include <cfloat>

#include "engine/kernels/cuda/cuda.cuh"
#include "engine/kernels/cuda/draws.cuh"
#include "engine/kernels/cuda/value.cuh"

extern "C" {
#include "engine/ops/attention.h"
}

enum { HEAD_Q = ATT_ATTENTION_Q, HEAD_K = ATT_ATTENTION_K, HEAD_V = ATT_ATTENTION_V };

/* Queries and keys of a tile, and threads of a block: each computes 4 x 4 scores. */
enum { TILE = 64, TILE_THREADS = 256, TILE_CHANNELS = 32, TILE_PADDED = TILE + 4 };

/* All heads of an operand: rows of `stride` elements in the tokens of a sample. */
struct attention_operand {
    cuda_value x;
    int64_t of_sample;                    /* elements of a sample */
    int stride, offset, width, shared_by; /* shared_by: heads of queries that share one of its heads */
};

/* The terms of scores. Absent terms are NULL. */
struct attention_terms {
    const float *relative, *rows, *columns, *keys;
    int shifts; /* rows of the table `relative` */
};

struct attention_problem {
    attention_operand operand[ATT_ATTENTION_OPERANDS];
    attention_terms terms;
    cuda_draws draws; /* of dropout; see att_attention_first_draw() */
    int samples, heads, windows;
    int tokens;                /* queries of a sample */
    int queries, keys;         /* of a window; without windows all are in one */
    int prefix, height, width; /* of the grid of the terms */
    int across, grid_h, grid_w, window_h, window_w, shift_h, shift_w;
    float scale, step_h, step_w;
    bool causal, drops;
};

static inline bool attention_has(const att_problem *problem, int input)
{
    return input < problem->in_count && att_desc_present(&problem->in[input]);
}

/* first: the node's input q. */
static inline attention_terms attention_terms_of(const att_call *call, int first)
{
    const att_problem *problem = call->problem;
    const float *term[4] = {};
    const int input[4] = {ATT_ATTENTION_RELATIVE, ATT_ATTENTION_ROWS, ATT_ATTENTION_COLUMNS, ATT_ATTENTION_KEYS};
    for (int i = 0; i < 4; i++)
        if (attention_has(problem, first + input[i]))
            term[i] = (const float *)call->in[first + input[i]];
    int shifts = term[0] ? (int)problem->in[first + ATT_ATTENTION_RELATIVE].shape.dims[0] : 0;
    return {term[0], term[1], term[2], term[3], shifts};
}

/* Sets the places of tokens, heads and masks. tokens, keys: queries and keys of a sample */
static inline void attention_set_places(const att_attention_attrs *attrs, int tokens, int keys, attention_problem *p)
{
    p->heads = attrs->heads, p->windows = (int)att_attention_windows(attrs);
    p->tokens = tokens, p->queries = tokens / p->windows, p->keys = keys / p->windows;
    p->prefix = attrs->prefix;
    p->height = (int)att_attention_height(attrs), p->width = (int)att_attention_width(attrs);
    p->grid_h = attrs->grid_h, p->grid_w = attrs->grid_w;
    p->window_h = attrs->window_h, p->window_w = attrs->window_w;
    p->across = attrs->window_h ? attrs->grid_w / attrs->window_w : 1;
    p->shift_h = attrs->shift_h, p->shift_w = attrs->shift_w;
    p->step_h = (float)attrs->step_h, p->step_w = (float)attrs->step_w;
    p->causal = attrs->causal;
}

static inline attention_problem attention_problem_of(const att_call *call, int first)
{
    const att_attention_attrs *attrs = (const att_attention_attrs *)call->problem->attrs;
    att_attention_operand from[ATT_ATTENTION_OPERANDS];
    att_attention_divide(call->problem->in + first, attrs, from);
    attention_problem p = {};
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++) {
        const att_attention_operand *a = &from[o];
        p.operand[o] = {
            cuda_in(call, first + (int)a->input), a->tokens * a->stride, (int)a->stride, (int)a->offset, (int)a->width,
            (int)(from[HEAD_Q].heads / a->heads)};
    }
    p.terms = attention_terms_of(call, first);
    p.drops = attrs->drops;
    if (p.drops)
        p.draws = cuda_draws_of(call, attrs->drop_rate, attrs->drop_stream);
    attention_set_places(attrs, (int)from[HEAD_Q].tokens, (int)from[HEAD_K].tokens, &p);
    p.samples = (int)call->problem->group;
    p.scale = (float)attrs->scale;
    return p;
}

/* --- tokens ------------------------------------------------------------------------------------------------------- */

/* A token of a window as queries and keys see it: its index in the sample, its region (see att_attention_token), and
 * its place in the grid of the terms; y is -1 for tokens off the grid. */
struct attention_token {
    int index, region, y, x;
};

__device__ __forceinline__ attention_token attention_token_at(const attention_problem &p, int window, int i)
{
    attention_token t = {i, 0, -1, -1};
    int place = i - p.prefix;
    if (place >= 0 && p.width > 0)
        t.y = place / p.width, t.x = place % p.width;
    if (!p.window_h)
        return t;
    int y = window / p.across * p.window_h + t.y + p.shift_h, x = window % p.across * p.window_w + t.x + p.shift_w;
    bool below = y >= p.grid_h, right = x >= p.grid_w;
    t.index = (below ? y - p.grid_h : y) * p.grid_w + (right ? x - p.grid_w : x);
    t.region = 2 * below + right;
    return t;
}

/* The tokens of a tile, in shared memory; of tokens past the end, the index is -1. */
struct attention_tokens {
    int index[TILE], region[TILE], y[TILE], x[TILE];
    float down[TILE], right[TILE]; /* y and x; 0 off the grid */
};

/* All threads of the block call; the first TILE fill. */
__device__ __forceinline__ void attention_fill_tokens(const attention_problem &p, int window, int first, int count,
                                                      attention_tokens *tokens)
{
    int i = threadIdx.x;
    if (i >= TILE)
        return;
    attention_token t = attention_token_at(p, window, first + i);
    tokens->index[i] = first + i < count ? t.index : -1;
    tokens->region[i] = t.region, tokens->y[i] = t.y, tokens->x[i] = t.x;
    tokens->down[i] = t.y < 0 ? 0 : (float)t.y, tokens->right[i] = t.y < 0 ? 0 : (float)t.x;
}

__device__ __forceinline__ attention_token attention_token_of(const attention_tokens *tokens, int i)
{
    return {tokens->index[i], tokens->region[i], tokens->y[i], tokens->x[i]};
}

/* Whether the device has so much shared memory for a block. */
static inline bool attention_has_shared(size_t bytes)
{
    int most = 0;
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    return bytes <= (size_t)most;
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

/* One head of one sample. */
struct attention_head {
    int sample, number;
};

/* Row of `relative` for a query and a key; -1: none. */
__device__ __forceinline__ int attention_shift(const attention_problem &p, attention_token q, attention_token k)
{
    int shift;
    if (q.y < 0 || k.y < 0)
        shift = (2 * p.height - 1) * (2 * p.width - 1) + (k.y < 0 ? (q.y < 0 ? 2 : 1) : 0);
    else
        shift = (q.y - k.y + p.height - 1) * (2 * p.width - 1) + q.x - k.x + p.width - 1;
    return shift < p.terms.shifts ? shift : -1;
}

/* Row of the terms of rows and columns, and of values with one row for each query and head. */
__device__ __forceinline__ int64_t attention_axes_row(const attention_problem &p, attention_head h, int query)
{
    return ((int64_t)h.sample * p.tokens + query) * p.heads + h.number;
}

/* Row of a token in values with one row for each head and query. */
__device__ __forceinline__ int64_t attention_row(const attention_problem &p, attention_head h, int token)
{
    return ((int64_t)h.sample * p.heads + h.number) * p.tokens + token;
}

/* The score of a query and key j whose product is given. Scores of excluded keys stay finite. */
__device__ __forceinline__ float attention_score(const attention_problem &p, attention_head h, attention_token q,
                                                 attention_token k, int j, float product)
{
    float score = p.scale * product;
    const attention_terms &t = p.terms;
    if (q.index < 0 || k.index < 0)
        return score; /* past the end: there are no terms to read */
    if (t.relative) {
        int shift = attention_shift(p, q, k);
        if (shift >= 0)
            score += t.relative[(int64_t)shift * p.heads + h.number];
    }
    if (t.rows && k.y >= 0) {
        int64_t row = attention_axes_row(p, h, q.index);
        score += t.rows[row * p.height + k.y] + t.columns[row * p.width + k.x];
    }
    if (t.keys) {
        const float least = (float)ATT_ATTENTION_NO_SCORE;
        score += t.keys[(int64_t)h.sample * p.keys + j];
        score = score < least ? least : score; /* NaN stays NaN */
    }
    if (q.region != k.region)
        score += (float)ATT_ATTENTION_MASK;
    return score;
}

/* Block of draws of query token `query` and keys j ... j + 3, j a multiple of 4. */
__device__ __forceinline__ void attention_factors(const attention_problem &p, attention_head h, int query, int j,
                                                  float factors[4])
{
    int64_t row = (int64_t)h.number * p.tokens + query;
    cuda_draw_factors(p.draws, h.sample, row * ((p.keys + 3) / 4) + j / 4, factors);
}

/* The same of one key. */
__device__ __forceinline__ float attention_factor(const attention_problem &p, attention_head h, int query, int j)
{
    float factors[4];
    attention_factors(p, h, query, j / 4 * 4, factors);
    return j % 4 == 0 ? factors[0] : j % 4 == 1 ? factors[1] : j % 4 == 2 ? factors[2] : factors[3];
}

/* --- products of tiles -------------------------------------------------------------------------------------------- */

/* Rows of a tile: token t of a head begins at element base + t stride. */
struct attention_rows {
    cuda_value x;
    int64_t base;
    int stride, width;
};

__device__ __forceinline__ attention_rows attention_rows_of(const attention_problem &p, int operand, attention_head h)
{
    const attention_operand &o = p.operand[operand];
    int64_t base = h.sample * o.of_sample + o.offset + (int64_t)(h.number / o.shared_by) * o.width;
    return {o.x, base, o.stride, o.width};
}

/* Rows of a value [N, H e] with all heads of queries side by side, such as the result. */
__device__ __forceinline__ attention_rows attention_rows_like_out(const attention_problem &p, cuda_value x,
                                                                  attention_head h)
{
    int width = p.operand[HEAD_V].width, stride = p.heads * width;
    return {x, (int64_t)h.sample * p.tokens * stride + (int64_t)h.number * width, stride, width};
}

typedef float tile_channels[TILE_CHANNELS][TILE_PADDED]; /* channels of the tile's tokens */

/* to[c][i] = channel first + c of token i; 0 beyond the width and for tokens past the end. */
__device__ __forceinline__ void tile_load(attention_rows rows, const int *index, int first, tile_channels to)
{
    int c = threadIdx.x % TILE_CHANNELS;
    for (int i = threadIdx.x / TILE_CHANNELS; i < TILE; i += TILE_THREADS / TILE_CHANNELS) {
        bool inside = index[i] >= 0 && first + c < rows.width;
        to[c][i] = inside ? load(rows.x, rows.base + (int64_t)index[i] * rows.stride + first + c) : 0;
    }
}

/* A thread's part of a tile of scores: rows 4 y ... 4 y + 3, columns 4 x ... 4 x + 3. */
struct tile_place {
    int y, x;
};

__device__ __forceinline__ tile_place tile_here()
{
    return {(int)threadIdx.x / 16, (int)threadIdx.x % 16};
}

__device__ __forceinline__ void tile_multiply(const float4 a, const float4 b, float (*sums)[4])
{
    const float left[4] = {a.x, a.y, a.z, a.w}, right[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
}

/* sums = products of all rows of a with all rows of b. Begins and ends with a barrier before other uses of memory. */
__device__ __forceinline__ void tile_product(attention_rows a, const int *a_index, attention_rows b, const int *b_index,
                                             tile_channels left, tile_channels right, float sums[4][4])
{
    tile_place at = tile_here();
#pragma unroll
    for (int i = 0; i < 16; i++)
        sums[i / 4][i % 4] = 0;
    for (int first = 0; first < a.width; first += TILE_CHANNELS) {
        __syncthreads();
        tile_load(a, a_index, first, left);
        tile_load(b, b_index, first, right);
        __syncthreads();
#pragma unroll 8
        for (int c = 0; c < TILE_CHANNELS; c++)
            tile_multiply(*(const float4 *)&left[c][4 * at.y], *(const float4 *)&right[c][4 * at.x], sums);
    }
    __syncthreads();
}

/* Channels of the result that a thread computes for each of its 4 rows: C, those from 4 x on, or 2 x if C is 2; a
 * block computes 16 C of them. */
template <int C> __device__ __forceinline__ int tile_channel(int x, int c)
{
    return C == 2 ? 2 * x + c : c / 4 * TILE + 4 * x + c % 4;
}

/* Adds weights' rows to sums: for each row of the tile i the sum over tokens t of weights[t][i] rows[t]. channel: the
 * first channel. `rows` is memory for TILE_CHANNELS tokens of 16 C channels. */
template <int C>
__device__ __forceinline__ void tile_mix(const float (*weights)[TILE_PADDED], attention_rows x, const int *index,
                                         int channel, float *rows, float (*sums)[C])
{
    tile_place at = tile_here();
    for (int first = 0; first < TILE; first += TILE_CHANNELS) {
        __syncthreads();
        for (int e = threadIdx.x; e < TILE_CHANNELS * 16 * C; e += TILE_THREADS) {
            int t = e / (16 * C), c = e % (16 * C), token = index[first + t];
            bool inside = token >= 0 && channel + c < x.width;
            rows[e] = inside ? load(x.x, x.base + (int64_t)token * x.stride + channel + c) : 0;
        }
        __syncthreads();
#pragma unroll 4
        for (int t = 0; t < TILE_CHANNELS; t++) {
            float4 w = *(const float4 *)&weights[first + t][4 * at.y];
            const float weight[4] = {w.x, w.y, w.z, w.w};
            float value[C];
#pragma unroll
            for (int c = 0; c < C; c++)
                value[c] = rows[t * 16 * C + tile_channel<C>(at.x, c)];
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int c = 0; c < C; c++)
                    sums[i][c] = fmaf(weight[i], value[c], sums[i][c]);
        }
    }
    __syncthreads();
}

/* Writes 4 rows of results, times `factor` of each row. */
template <int C>
__device__ __forceinline__ void tile_store(attention_rows to, const int *index, int channel, float (*sums)[C],
                                           const float factor[4])
{
    tile_place at = tile_here();
    for (int i = 0; i < 4; i++) {
        int token = index[4 * at.y + i];
#pragma unroll
        for (int c = 0; c < C; c++) {
            int place = channel + tile_channel<C>(at.x, c);
            if (token >= 0 && place < to.width)
                store(to.x, to.base + (int64_t)token * to.stride + place, sums[i][c] * factor[i]);
        }
    }
}

/* Sum, largest and smallest over the 16 threads that share rows of a tile. */
__device__ __forceinline__ float row_sum(float value)
{
#pragma unroll
    for (int step = 8; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__device__ __forceinline__ float row_max(float value)
{
#pragma unroll
    for (int step = 8; step > 0; step /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

__device__ __forceinline__ int row_min(int value)
{
#pragma unroll
    for (int step = 8; step > 0; step /= 2)
        value = min(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

#endif
