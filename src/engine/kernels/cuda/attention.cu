#include "engine/kernels/cuda/attention_softmax.cuh"

enum { OUT, LSE, STATS, MAP };

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
    row_state<MEASURES> state = first_state<MEASURES>();
    float sums[4][C] = {};
    attention_fill_tokens(p, tile.window, tile.first, p.queries, &m.queries);
    int end = p.causal && !to.map && tile.first + TILE < p.keys ? tile.first + TILE : p.keys;
    for (int first = 0; first < end; first += TILE) {
        float scores[4][4], shrink[4];
        attention_fill_tokens(p, tile.window, first, p.keys, &m.keys);
        tile_product(q, m.queries.index, k, m.keys.index, m.of.operands.left, m.of.operands.right, scores);
        soften<true, MEASURES, false>(p, tile, &m.queries, &m.keys, first, is_first ? to.map : nullptr, scores, &state,
                                      shrink);
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
    finish_rows<MEASURES, false>(p, tile, &m.queries, is_first ? to : attention_outputs{}, &state, share);
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
    if (attention_mma(p, to) || attention_f32(p, to))
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
