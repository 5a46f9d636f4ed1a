/* The gradient of attention, from the logarithms of sums of exponentials: scores are computed again, once for dq and
 * the terms, and once for dk and dv, so that every sum has a fixed order. */
#include "engine/kernels/cuda/attention_gradient.cuh"

static constexpr int DO = 0, O = 1, LSE = 2, Q = 3;

/* Size of the gradients of scores that are kept for the gradients of the terms: the samples of a call are worked on in
 * portions whose gradients fit. */
static const int64_t kept_bytes = (int64_t)64 << 20;

/* --- do . o ------------------------------------------------------------------------------------------------------- */

/* A warp for each query of each head. */
__global__ void __launch_bounds__(TILE_THREADS) products_kernel(attention_problem p, gradient_inputs in, int64_t rows)
{
    int64_t row = blockIdx.x * (int64_t)(TILE_THREADS / 32) + threadIdx.x / 32; /* [sample, query, head] */
    if (row >= rows)
        return;
    int width = p.operand[HEAD_V].width;
    float sum = 0;
    for (int c = threadIdx.x % 32; c < width; c += 32)
        sum = fmaf(load(in.dout, row * width + c), load(in.out, row * width + c), sum);
    sum = warp_sum(sum);
    int head = (int)(row % p.heads), token = (int)(row / p.heads % p.tokens), sample = (int)(row / p.heads / p.tokens);
    if (threadIdx.x % 32 == 0)
        in.do_o[attention_row(p, {sample, head}, token)] = sum;
}

/* The same with 4 threads for each query of each head, which read 16 bytes at a time. */
template <class T>
__global__ void __launch_bounds__(TILE_THREADS)
    products_pieces_kernel(attention_problem p, const T *dout, const T *out, float *do_o, int64_t rows)
{
    constexpr int PIECE = 16 / sizeof(T);
    int64_t row = blockIdx.x * (int64_t)(TILE_THREADS / 4) + threadIdx.x / 4; /* [sample, query, head] */
    int width = p.operand[HEAD_V].width;
    float sum = 0;
    for (int c = threadIdx.x % 4 * PIECE; row < rows && c < width; c += 4 * PIECE) {
        float a[PIECE], b[PIECE];
        load_pack<PIECE>(dout, row * width + c, a);
        load_pack<PIECE>(out, row * width + c, b);
#pragma unroll
        for (int i = 0; i < PIECE; i++)
            sum = fmaf(a[i], b[i], sum);
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    int head = (int)(row % p.heads), token = (int)(row / p.heads % p.tokens), sample = (int)(row / p.heads / p.tokens);
    if (row < rows && threadIdx.x % 4 == 0)
        do_o[attention_row(p, {sample, head}, token)] = sum;
}

/* --- gradients of scores ------------------------------------------------------------------------------------------ */

struct gradient_memory {
    union {
        struct {
            tile_channels left, right;
        } operands;
        float values[TILE_CHANNELS * 128];
    } of;
    float weights[TILE][TILE_PADDED];
    attention_tokens queries, keys;
    float lse[TILE], do_o[TILE];
};

/* The rows of a tile of queries and a tile of keys of one head. */
struct gradient_tile {
    attention_head head;
    attention_rows q, k, v, dout;
    int window, first_query, first_key;
};

__device__ __forceinline__ gradient_tile tile_of(const attention_problem &p, const gradient_inputs &in,
                                                 attention_head head, int window)
{
    return {head,
            attention_rows_of(p, HEAD_Q, head),
            attention_rows_of(p, HEAD_K, head),
            attention_rows_of(p, HEAD_V, head),
            attention_rows_like_out(p, in.dout, head),
            window,
            0,
            0};
}

/* All threads call. */
__device__ __forceinline__ void fill_queries(const attention_problem &p, const gradient_inputs &in,
                                             const gradient_tile &t, gradient_memory *m)
{
    attention_fill_tokens(p, t.window, t.first_query, p.queries, &m->queries);
    int i = threadIdx.x;
    if (i >= TILE || m->queries.index[i] < 0)
        return;
    int64_t row = attention_row(p, t.head, m->queries.index[i]);
    m->lse[i] = in.lse[row], m->do_o[i] = in.do_o[row];
}

/* A thread's part of the tile: weights after dropout, and gradients of scores; rows are queries. */
__device__ __forceinline__ void find_gradients(const attention_problem &p, const gradient_tile &t, gradient_memory *m,
                                               float weights[4][4], float ds[4][4])
{
    tile_place at = tile_here();
    tile_product(t.q, m->queries.index, t.k, m->keys.index, m->of.operands.left, m->of.operands.right, weights);
    tile_product(t.dout, m->queries.index, t.v, m->keys.index, m->of.operands.left, m->of.operands.right, ds);
#pragma unroll
    for (int r = 0; r < 4; r++) {
        int i = t.first_query + 4 * at.y + r;
        attention_token q = attention_token_of(&m->queries, 4 * at.y + r);
        float factors[4] = {1, 1, 1, 1}, lse = m->lse[4 * at.y + r], do_o = m->do_o[4 * at.y + r];
        if (p.drops && q.index >= 0)
            attention_factors(p, t.head, q.index, t.first_key + 4 * at.x, factors);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            int j = t.first_key + 4 * at.x + c;
            attention_token k = attention_token_of(&m->keys, 4 * at.x + c);
            if (q.index < 0 || k.index < 0 || (p.causal && j > i)) {
                weights[r][c] = ds[r][c] = 0;
                continue;
            }
            float weight = expf(attention_score(p, t.head, q, k, j, weights[r][c]) - lse);
            weights[r][c] = factors[c] * weight;
            ds[r][c] = weight * (factors[c] * ds[r][c] - do_o);
        }
    }
}

/* --- dq and the norms of gradients of scores
 * ----------------------------------------------------------------------------------------------- */

/* A block for each tile of queries of a window of a head of a sample, and each 16 C channels of dq. */
template <int C>
__global__ void __launch_bounds__(TILE_THREADS)
    queries_kernel(attention_problem p, gradient_inputs in, gradient_outputs to, int first_sample)
{
    __shared__ gradient_memory m;
    int tiles = (p.queries + TILE - 1) / TILE, window = blockIdx.x / tiles, channel = blockIdx.y * 16 * C;
    attention_head head = {first_sample + window / p.windows / p.heads, window / p.windows % p.heads};
    gradient_tile t = tile_of(p, in, head, window % p.windows);
    t.first_query = blockIdx.x % tiles * TILE;
    tile_place at = tile_here();
    float sums[4][C] = {};
    double squares[4] = {};
    fill_queries(p, in, t, &m);
    for (t.first_key = 0; t.first_key < p.keys; t.first_key += TILE) {
        float weights[4][4], ds[4][4];
        attention_fill_tokens(p, t.window, t.first_key, p.keys, &m.keys);
        find_gradients(p, t, &m, weights, ds);
#pragma unroll
        for (int c = 0; c < 4; c++)
            *(float4 *)&m.weights[4 * at.x + c][4 * at.y] = make_float4(ds[0][c], ds[1][c], ds[2][c], ds[3][c]);
        for (int e = 0; e < 16; e++)
            squares[e / 4] += to.norms.data ? (double)ds[e / 4][e % 4] * (double)ds[e / 4][e % 4] : 0;
        for (int r = 0; r < 4 && to.kept && channel == 0; r++) {
            int token = m.queries.index[4 * at.y + r];
            int64_t row = attention_row(p, {head.sample - first_sample, head.number}, token) * p.keys;
            for (int c = 0; c < 4 && token >= 0; c++)
                if (t.first_key + 4 * at.x + c < p.keys)
                    to.kept[row + t.first_key + 4 * at.x + c] = ds[r][c];
        }
        tile_mix<C>(m.weights, t.k, m.keys.index, channel, m.of.values, sums);
    }
    if (to.norms.data && channel == 0)
        for (int r = 0; r < 4; r++) {
            double sum = squares[r];
            for (int step = 8; step > 0; step /= 2)
                sum += __shfl_xor_sync(0xffffffffu, sum, step);
            int token = m.queries.index[4 * at.y + r];
            if (token >= 0 && at.x == 0)
                store(to.norms, attention_row(p, head, token), (float)sqrt(sum));
        }
    if (!to.of[HEAD_Q].data)
        return;
    const float scale[4] = {p.scale, p.scale, p.scale, p.scale};
    t.q.x = to.of[HEAD_Q];
    tile_store<C>(t.q, m.queries.index, channel, sums, scale);
}

/* --- dk and dv ---------------------------------------------------------------------------------------------------- */

/* Which gradients a launch computes: of keys, of values, or, if their heads are shared by the same queries, of both. */
struct keys_launch {
    bool keys, values;
    int shared_by, heads; /* heads of these keys or values, and of queries that share one */
};

/* A block for each tile of keys of a window of a head of keys of a sample, and each 16 C channels. */
template <int C>
__global__ void __launch_bounds__(TILE_THREADS)
    keys_kernel(attention_problem p, gradient_inputs in, gradient_outputs to, keys_launch launch)
{
    __shared__ gradient_memory m;
    int tiles = (p.keys + TILE - 1) / TILE, window = blockIdx.x / tiles, channel = blockIdx.y * 16 * C;
    int sample = window / p.windows / launch.heads, first_head = window / p.windows % launch.heads * launch.shared_by;
    tile_place at = tile_here();
    gradient_tile t = {};
    float dk[4][C] = {}, dv[4][C] = {};
    for (int h = 0; h < launch.shared_by; h++) {
        t = tile_of(p, in, {sample, first_head + h}, window % p.windows);
        t.first_key = blockIdx.x % tiles * TILE;
        if (h == 0)
            attention_fill_tokens(p, t.window, t.first_key, p.keys, &m.keys);
        int begin = p.causal ? t.first_key / TILE * TILE : 0; /* causality: as many queries as keys */
        for (t.first_query = begin; t.first_query < p.queries; t.first_query += TILE) {
            float weights[4][4], ds[4][4];
            __syncthreads();
            fill_queries(p, in, t, &m);
            find_gradients(p, t, &m, weights, ds);
            if (launch.values) {
#pragma unroll
                for (int r = 0; r < 4; r++)
                    *(float4 *)&m.weights[4 * at.y + r][4 * at.x] =
                        make_float4(weights[r][0], weights[r][1], weights[r][2], weights[r][3]);
                tile_mix<C>(m.weights, t.dout, m.queries.index, channel, m.of.values, dv);
            }
            if (launch.keys) {
#pragma unroll
                for (int r = 0; r < 4; r++)
                    *(float4 *)&m.weights[4 * at.y + r][4 * at.x] = make_float4(ds[r][0], ds[r][1], ds[r][2], ds[r][3]);
                tile_mix<C>(m.weights, t.q, m.queries.index, channel, m.of.values, dk);
            }
        }
    }
    const float scale[4] = {p.scale, p.scale, p.scale, p.scale}, one[4] = {1, 1, 1, 1};
    t.k.x = to.of[HEAD_K], t.v.x = to.of[HEAD_V];
    if (launch.keys && t.k.x.data)
        tile_store<C>(t.k, m.keys.index, channel, dk, scale);
    if (launch.values && t.v.x.data)
        tile_store<C>(t.v, m.keys.index, channel, dv, one);
}

/* --- the gradients of terms ----------------------------------------------------------------------------------- */

/* The sum of the kept gradients of all queries and keys of a window whose shift is `shift`. */
__device__ static float sum_of_shift(const attention_problem &p, const float *kept, attention_head h, int window,
                                     int shift)
{
    int on_grid = (2 * p.height - 1) * (2 * p.width - 1);
    float sum = 0;
    if (shift >= on_grid) { /* prefix tokens; windows have none */
        int kind = shift - on_grid;
        int queries = kind == 1 ? p.queries : p.prefix, keys = kind == 0 ? p.keys : p.prefix;
        for (int i = kind == 1 ? p.prefix : 0; i < queries; i++)
            for (int j = kind == 0 ? p.prefix : 0; j < keys; j++)
                sum += kept[attention_row(p, h, i) * p.keys + j];
        return sum;
    }
    int dy = shift / (2 * p.width - 1) - p.height + 1, dx = shift % (2 * p.width - 1) - p.width + 1;
    for (int y = max(0, dy); y < p.height + min(0, dy); y++)
        for (int x = max(0, dx); x < p.width + min(0, dx); x++) {
            int i = p.prefix + y * p.width + x, j = p.prefix + (y - dy) * p.width + x - dx;
            sum += kept[attention_row(p, h, attention_token_at(p, window, i).index) * p.keys + j];
        }
    return sum;
}

/* A thread for each shift of each head of each sample. kept: of the first sample */
__global__ void __launch_bounds__(TILE_THREADS)
    relative_kernel(attention_problem p, const float *kept, cuda_value relative, int first_sample, int64_t count)
{
    int64_t e = blockIdx.x * (int64_t)TILE_THREADS + threadIdx.x;
    if (e >= count)
        return;
    int shift = (int)(e % p.terms.shifts);
    attention_head h = {(int)(e / p.terms.shifts / p.heads), (int)(e / p.terms.shifts % p.heads)};
    float sum = 0;
    for (int window = 0; window < p.windows; window++)
        sum += sum_of_shift(p, kept, h, window, shift);
    store(relative, ((int64_t)(first_sample + h.sample) * p.terms.shifts + shift) * p.heads + h.number, sum);
}

/* A thread for each row, or column, of keys of each query of each head of each sample. These terms have no windows. */
__global__ void __launch_bounds__(TILE_THREADS)
    axis_kernel(attention_problem p, const float *kept, bool rows, cuda_value gradient, int first_sample, int64_t count)
{
    int64_t e = blockIdx.x * (int64_t)TILE_THREADS + threadIdx.x;
    if (e >= count)
        return;
    int length = rows ? p.height : p.width, others = rows ? p.width : p.height, place = (int)(e % length);
    int head = (int)(e / length % p.heads), query = (int)(e / length / p.heads % p.tokens);
    int sample = (int)(e / length / p.heads / p.tokens);
    const float *ds = kept + attention_row(p, {sample, head}, query) * p.keys + p.prefix;
    float sum = 0;
    for (int i = 0; i < others; i++)
        sum += rows ? ds[place * p.width + i] : ds[i * p.width + place];
    store(gradient, attention_axes_row(p, {first_sample + sample, head}, query) * length + place, sum);
}

/* --- a call ------------------------------------------------------------------------------------------------------- */

/* The output for the gradient of input `input` of the attention; for ATT_ATTENTION_INPUTS, that for the norms. */
static int output_of(const att_problem *problem, int input)
{
    int output = 0;
    for (int i = Q; i < Q + input && i < problem->in_count; i++)
        output += att_desc_present(&problem->in[i]);
    return output;
}

static cuda_value gradient_of_term(const att_call *call, int input)
{
    if (!attention_has(call->problem, Q + input))
        return {nullptr, ATT_F32};
    return cuda_out(call, output_of(call->problem, input));
}

static gradient_outputs outputs_of(const att_call *call)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    att_attention_divide(call->problem->in + Q, (const att_attention_attrs *)call->problem->attrs, operand);
    gradient_outputs to = {};
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        to.of[o] = cuda_out(call, output_of(call->problem, (int)operand[o].input));
    to.relative = gradient_of_term(call, ATT_ATTENTION_RELATIVE);
    to.rows = gradient_of_term(call, ATT_ATTENTION_ROWS);
    to.columns = gradient_of_term(call, ATT_ATTENTION_COLUMNS);
    to.norms = cuda_out(call, output_of(call->problem, ATT_ATTENTION_INPUTS));
    return to;
}

static int tiles_of(int count)
{
    return (count + TILE - 1) / TILE;
}

template <int C>
static void launch_queries(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
                           int first_sample, int samples)
{
    dim3 grid((unsigned)(samples * p.heads * p.windows * tiles_of(p.queries)),
              (unsigned)((p.operand[HEAD_Q].width + 16 * C - 1) / (16 * C)));
    queries_kernel<C><<<grid, TILE_THREADS, 0, cuda.stream>>>(p, in, to, first_sample);
}

template <int C>
static void launch_keys(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
                        keys_launch launch, int width)
{
    dim3 grid((unsigned)(p.samples * launch.heads * p.windows * tiles_of(p.keys)),
              (unsigned)((width + 16 * C - 1) / (16 * C)));
    keys_kernel<C><<<grid, TILE_THREADS, 0, cuda.stream>>>(p, in, to, launch);
}

static void launch_keys_of(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to, bool keys,
                           bool values)
{
    if (attention_grad_fits_mma(p, in)) {
        attention_grad_mma_keys(p, in, to, keys, values);
        return;
    }
    if (attention_grad_fits_f32(p, in)) {
        attention_grad_f32_keys(p, in, to, keys, values);
        return;
    }
    int shared_by = p.operand[keys ? HEAD_K : HEAD_V].shared_by;
    int of_keys = keys ? p.operand[HEAD_K].width : 0, of_values = values ? p.operand[HEAD_V].width : 0;
    int width = of_keys > of_values ? of_keys : of_values;
    keys_launch launch = {keys, values, shared_by, p.heads / shared_by};
    if (width <= 32)
        launch_keys<2>(p, in, to, launch, width);
    else if (width <= 64)
        launch_keys<4>(p, in, to, launch, width);
    else
        launch_keys<8>(p, in, to, launch, width);
}

static void find_dk_dv(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to)
{
    bool keys = to.of[HEAD_K].data, values = to.of[HEAD_V].data;
    if (keys && values && p.operand[HEAD_K].shared_by == p.operand[HEAD_V].shared_by) {
        launch_keys_of(p, in, to, true, true);
        return;
    }
    if (keys)
        launch_keys_of(p, in, to, true, false);
    if (values)
        launch_keys_of(p, in, to, false, true);
}

static int64_t kept_of_sample(const attention_problem &p)
{
    return (int64_t)p.heads * p.tokens * p.keys;
}

/* Samples whose gradients of scores are kept at once. */
static int portion_of(const attention_problem &p)
{
    int64_t samples = kept_bytes / (kept_of_sample(p) * (int64_t)sizeof(float));
    return (int)(samples < 1 ? 1 : samples < p.samples ? samples : p.samples);
}

static unsigned blocks_of(int64_t threads)
{
    return (unsigned)((threads + TILE_THREADS - 1) / TILE_THREADS);
}

/* Computes the gradients of terms of the samples whose gradients of scores are kept. */
static void find_terms(const attention_problem &p, const gradient_outputs &to, int first, int samples)
{
    int64_t shifts = (int64_t)samples * p.heads * p.terms.shifts, queries = (int64_t)samples * p.tokens * p.heads;
    if (to.relative.data)
        relative_kernel<<<blocks_of(shifts), TILE_THREADS, 0, cuda.stream>>>(p, to.kept, to.relative, first, shifts);
    if (to.rows.data)
        axis_kernel<<<blocks_of(queries * p.height), TILE_THREADS, 0, cuda.stream>>>(p, to.kept, true, to.rows, first,
                                                                                     queries * p.height);
    if (to.columns.data)
        axis_kernel<<<blocks_of(queries * p.width), TILE_THREADS, 0, cuda.stream>>>(p, to.kept, false, to.columns,
                                                                                    first, queries * p.width);
}

static void find_dq(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to)
{
    int portion = to.kept ? portion_of(p) : p.samples, width = p.operand[HEAD_Q].width;
    bool mma = attention_grad_fits_mma(p, in), f32 = attention_grad_fits_f32(p, in);
    for (int first = 0; first < p.samples; first += portion) {
        int samples = p.samples - first < portion ? p.samples - first : portion;
        if (mma)
            attention_grad_mma_queries(p, in, to, first, samples);
        else if (f32)
            attention_grad_f32_queries(p, in, to, first, samples);
        else if (width <= 32)
            launch_queries<2>(p, in, to, first, samples);
        else if (width <= 64)
            launch_queries<4>(p, in, to, first, samples);
        else
            launch_queries<8>(p, in, to, first, samples);
        if (to.kept)
            find_terms(p, to, first, samples);
    }
}

/* Whether rows of heads of both values can be read 16 bytes at a time. */
template <class T> static bool has_pieces(const attention_problem &p, const T *dout, const T *out)
{
    const int piece = 16 / (int)sizeof(T);
    return p.operand[HEAD_V].width % piece == 0 && ATT_CUDA_ALIGNED(dout, piece) && ATT_CUDA_ALIGNED(out, piece);
}

static void find_products(const attention_problem &p, const gradient_inputs &in, int64_t rows)
{
    bool found =
        in.dout.dtype == in.out.dtype && att_cuda_typed(in.dout.dtype, (const void *)in.dout.data, [&](auto *dout) {
            auto *out = (decltype(dout))in.out.data;
            if (!has_pieces(p, dout, out))
                return false;
            products_pieces_kernel<<<blocks_of(4 * rows), TILE_THREADS, 0, cuda.stream>>>(p, dout, out, in.do_o, rows);
            return true;
        });
    if (!found)
        products_kernel<<<blocks_of(32 * rows), TILE_THREADS, 0, cuda.stream>>>(p, in, rows);
}

/* Scratch: do . o of all queries, then the kept gradients. */
static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    const att_desc *lse = &problem->in[LSE];
    size_t floats = (size_t)att_problem_count(problem, lse);
    if (attention_has(problem, Q + ATT_ATTENTION_RELATIVE) || attention_has(problem, Q + ATT_ATTENTION_ROWS)) {
        att_attention_operand operand[ATT_ATTENTION_OPERANDS];
        const att_attention_attrs *attrs = (const att_attention_attrs *)problem->attrs;
        att_attention_divide(problem->in + Q, attrs, operand);
        attention_problem p = {};
        p.heads = attrs->heads, p.tokens = (int)operand[HEAD_Q].tokens, p.samples = (int)problem->group;
        p.keys = (int)(operand[HEAD_K].tokens / att_attention_windows(attrs));
        floats += (size_t)(portion_of(p) * kept_of_sample(p));
    }
    prepared->scratch_bytes = floats * sizeof(float);
    return ATT_OK;
}

static att_status run(const att_call *call)
{
    attention_problem p = attention_problem_of(call, Q);
    gradient_inputs in = {cuda_in(call, DO), cuda_in(call, O), (const float *)call->in[LSE], (float *)call->scratch};
    gradient_outputs to = outputs_of(call);
    int64_t rows = (int64_t)p.samples * p.heads * p.tokens;
    if (to.relative.data || to.rows.data || to.columns.data)
        to.kept = in.do_o + rows;
    find_products(p, in, rows);
    if (to.of[HEAD_Q].data || to.kept || to.norms.data)
        find_dq(p, in, to);
    find_dk_dv(p, in, to);
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(attention_grad, prepare, run, nullptr);
