/* Attention without content: mix_tokens, mix_axes, mix_pairs and pair_maps. */
#include "engine/kernels/cuda/ops.cuh"

#include "engine/kernels/cuda/attention.cuh"
#include "engine/kernels/cuda/teams.cuh"

/* --- mix_tokens --------------------------------------------------------------------------------------------------- */

/* v [N, value_heads e] and y [N, heads e], with a map [heads, N, N]. */
struct mix_shape {
    int64_t samples;
    int heads, values, tokens, width;
    __device__ int shared_by() const
    {
        return heads / values;
    }
};

/* of_heads: whether rows of input 0 hold all heads, else those of values. */
static mix_shape mix_shape_of(const att_call *call, bool of_heads)
{
    const att_attention_attrs *attrs = ATT_ATTRS(call->problem, attention);
    const int64_t *dims = call->problem->in[0].shape.dims;
    return {call->problem->group, attrs->heads, attrs->value_heads, (int)dims[0],
            (int)(dims[1] / (of_heads ? attrs->heads : attrs->value_heads))};
}

__device__ static attention_rows head_rows(const mix_shape &s, cuda_value x, int64_t sample, int heads, int head)
{
    int stride = heads * s.width;
    return {x, sample * s.tokens * stride + (int64_t)head * s.width, stride, s.width};
}

/* index[i] = first + i, -1 past the end; all threads call. */
__device__ static void number_tokens(int first, int tokens, int *index)
{
    if (threadIdx.x < TILE)
        index[threadIdx.x] = first + (int)threadIdx.x < tokens ? first + (int)threadIdx.x : -1;
}

/* weights[t][i] = a number of the map: of query `first_row` + i and key `first_key` + t, or, if `back`, of query
 * `first_key` + t and key `first_row` + i. 0 past the end. */
__device__ static void load_map(const float *map, int tokens, int first_row, int first_key, bool back,
                                float (*weights)[TILE_PADDED])
{
    for (int e = threadIdx.x; e < TILE * TILE; e += TILE_THREADS) {
        int t = back ? e / TILE : e % TILE, i = back ? e % TILE : e / TILE;
        bool inside = first_row + i < tokens && first_key + t < tokens;
        int64_t query = back ? first_key + t : first_row + i, key = back ? first_row + i : first_key + t;
        weights[t][i] = inside ? map[query * tokens + key] : 0;
    }
}

/* A block for each tile of tokens of a head of a sample, and each 16 C channels. BACK: dv from dy, a head of values
 * being summed over the heads that share it; else y from v. */
template <int C, bool BACK>
__global__ void __launch_bounds__(TILE_THREADS) mix_kernel(mix_shape s, cuda_value x, const float *map, cuda_value y)
{
    __shared__ float weights[TILE][TILE_PADDED], rows[TILE_CHANNELS * 16 * C];
    __shared__ int index[TILE], to_index[TILE];
    int tiles = (s.tokens + TILE - 1) / TILE, first = blockIdx.x % tiles * TILE, heads = BACK ? s.values : s.heads;
    int head = blockIdx.x / tiles % heads, channel = blockIdx.y * 16 * C;
    int64_t sample = blockIdx.x / tiles / heads;
    float sums[4][C] = {};
    number_tokens(first, s.tokens, to_index);
    for (int h = 0; h < (BACK ? s.shared_by() : 1); h++) {
        int of_map = BACK ? head * s.shared_by() + h : head;
        attention_rows from =
            BACK ? head_rows(s, x, sample, s.heads, of_map) : head_rows(s, x, sample, s.values, head / s.shared_by());
        for (int key = 0; key < s.tokens; key += TILE) {
            __syncthreads();
            number_tokens(key, s.tokens, index);
            load_map(map + (int64_t)of_map * s.tokens * s.tokens, s.tokens, first, key, BACK, weights);
            tile_mix<C>(weights, from, index, channel, rows, sums);
        }
    }
    const float one[4] = {1, 1, 1, 1};
    __syncthreads();
    tile_store<C>(head_rows(s, y, sample, heads, head), to_index, channel, sums, one);
}

template <bool BACK> static att_status run_mix_as(const att_call *call)
{
    mix_shape s = mix_shape_of(call, BACK);
    unsigned blocks = (unsigned)(s.samples * (BACK ? s.values : s.heads) * ((s.tokens + TILE - 1) / TILE));
    const float *map = (const float *)call->in[1];
    if (s.width <= 32)
        mix_kernel<2, BACK><<<blocks, TILE_THREADS, 0, cuda.stream>>>(s, cuda_in(call, 0), map, cuda_out(call, 0));
    else
        mix_kernel<4, BACK><<<dim3(blocks, (unsigned)((s.width + 63) / 64)), TILE_THREADS, 0, cuda.stream>>>(
            s, cuda_in(call, 0), map, cuda_out(call, 0));
    return att_cuda_launched(call);
}

static att_status run_mix_tokens(const att_call *call)
{
    return run_mix_as<false>(call);
}

static att_status run_mix_tokens_values_grad(const att_call *call)
{
    return run_mix_as<true>(call);
}

ATT_CUDA_KERNEL(mix_tokens, run_mix_tokens);
ATT_CUDA_KERNEL(mix_tokens_values_grad, run_mix_tokens_values_grad);

/* A block for each tile of a head's map: dy_i . v_j, summed over all samples. */
__global__ void __launch_bounds__(TILE_THREADS)
    mix_map_kernel(mix_shape s, cuda_value dy, cuda_value v, cuda_value gradient)
{
    __shared__ tile_channels left, right;
    __shared__ int queries[TILE], keys[TILE];
    int tiles = (s.tokens + TILE - 1) / TILE, head = blockIdx.x / tiles / tiles;
    int first_query = blockIdx.x / tiles % tiles * TILE, first_key = blockIdx.x % tiles * TILE;
    tile_place at = tile_here();
    float sums[4][4] = {};
    number_tokens(first_query, s.tokens, queries);
    number_tokens(first_key, s.tokens, keys);
    for (int64_t sample = 0; sample < s.samples; sample++) {
        float products[4][4];
        tile_product(head_rows(s, dy, sample, s.heads, head), queries,
                     head_rows(s, v, sample, s.values, head / s.shared_by()), keys, left, right, products);
        for (int e = 0; e < 16; e++)
            sums[e / 4][e % 4] += products[e / 4][e % 4];
    }
    for (int e = 0; e < 16; e++) {
        int i = first_query + 4 * at.y + e / 4, j = first_key + 4 * at.x + e % 4;
        if (i < s.tokens && j < s.tokens)
            add_to(gradient, ((int64_t)head * s.tokens + i) * s.tokens + j, sums[e / 4][e % 4]);
    }
}

static att_status run_mix_tokens_map_grad(const att_call *call)
{
    mix_shape s = mix_shape_of(call, true);
    int tiles = (s.tokens + TILE - 1) / TILE;
    mix_map_kernel<<<(unsigned)(s.heads * tiles * tiles), TILE_THREADS, 0, cuda.stream>>>(
        s, cuda_in(call, 0), cuda_in(call, 1), cuda_out(call, 0));
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(mix_tokens_map_grad, run_mix_tokens_map_grad);

/* --- mix_axes ----------------------------------------------------------------------------------------------------- */

/* Tokens of a grid; numbers of all heads of a token lie at ((sample h + y) w + x) H e. */
struct axes_shape {
    int64_t h, w, heads, values, width;
    const float *rows, *columns; /* maps [heads, h, h] and [heads, w, w] */
    __device__ int64_t at(int64_t sample, int64_t y, int64_t x, int64_t of, int64_t head, int64_t c) const
    {
        return (((sample * h + y) * w + x) * of + head) * width + c;
    }
    __device__ int64_t value_of(int64_t head) const
    {
        return head / (heads / values);
    }
    __device__ float row_weight(int64_t head, int64_t y, int64_t key) const
    {
        return rows[(head * h + y) * h + key];
    }
    __device__ float column_weight(int64_t head, int64_t x, int64_t key) const
    {
        return columns[(head * w + x) * w + key];
    }
};

/* first: the node's input v. */
static axes_shape axes_shape_of(const att_call *call, int first)
{
    const att_attention_attrs *attrs = ATT_ATTRS(call->problem, attention);
    return {attrs->grid_h,
            attrs->grid_w,
            attrs->heads,
            attrs->value_heads,
            call->problem->in[first].shape.dims[1] / attrs->value_heads,
            (const float *)call->in[first + 1],
            (const float *)call->in[first + 2]};
}

/* The place of element e of a value with `of` heads. */
struct axes_place {
    int64_t sample, y, x, head, c;
};

__device__ static axes_place axes_place_of(const axes_shape &s, int64_t e, int64_t of)
{
    int64_t c = e % s.width, head = e / s.width % of, token = e / s.width / of;
    return {token / s.w / s.h, token / s.w % s.h, token % s.w, head, c};
}

/* to[y', x] = sum over x' of c_xx' v[y', x'], of all heads. */
struct along_rows {
    axes_shape s;
    cuda_value v;
    float *to;
    __device__ void operator()(int64_t e) const
    {
        axes_place p = axes_place_of(s, e, s.heads);
        float sum = 0;
        for (int64_t key = 0; key < s.w; key++)
            sum = fmaf(s.column_weight(p.head, p.x, key),
                       load(v, s.at(p.sample, p.y, key, s.values, s.value_of(p.head), p.c)), sum);
        to[e] = sum;
    }
};

/* y[y, x] = sum over y' of r_yy' from[y', x]; or, if `back`, y[y', x] = sum over y of r_yy' from[y, x]. */
struct along_columns {
    axes_shape s;
    cuda_value from, to;
    bool back;
    __device__ void operator()(int64_t e) const
    {
        axes_place p = axes_place_of(s, e, s.heads);
        float sum = 0;
        for (int64_t key = 0; key < s.h; key++) {
            float weight = back ? s.row_weight(p.head, key, p.y) : s.row_weight(p.head, p.y, key);
            sum = fmaf(weight, load(from, s.at(p.sample, key, p.x, s.heads, p.head, p.c)), sum);
        }
        store(to, e, sum);
    }
};

static int64_t axes_elements(const att_problem *problem, const axes_shape &s)
{
    return problem->group * s.h * s.w * s.heads * s.width;
}

static att_status prepare_axes(const att_problem *problem, att_prepared *prepared)
{
    const att_attention_attrs *attrs = ATT_ATTRS(problem, attention);
    int64_t width = problem->in[0].shape.dims[1] / attrs->value_heads;
    prepared->scratch_bytes =
        (size_t)(problem->group * attrs->grid_h * attrs->grid_w * attrs->heads * width) * sizeof(float);
    return ATT_OK;
}

static att_status run_axes(const att_call *call)
{
    axes_shape s = axes_shape_of(call, 0);
    int64_t count = axes_elements(call->problem, s);
    float *between = (float *)call->scratch;
    att_cuda_each(count, along_rows{s, cuda_in(call, 0), between});
    att_cuda_each(count, along_columns{s, {between, ATT_F32}, cuda_out(call, 0), false});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(mix_axes, prepare_axes, run_axes, nullptr);

/* dv[y, x'] = sum over the heads that share a head of values, and over x, of c_xx' of_key[y, x]. */
struct axes_dv {
    axes_shape s;
    const float *of_key;
    cuda_value dv;
    __device__ void operator()(int64_t e) const
    {
        axes_place p = axes_place_of(s, e, s.values);
        int64_t shared_by = s.heads / s.values;
        float sum = 0;
        for (int64_t head = p.head * shared_by; head < (p.head + 1) * shared_by; head++)
            for (int64_t x = 0; x < s.w; x++)
                sum = fmaf(s.column_weight(head, x, p.x), of_key[s.at(p.sample, p.y, x, s.heads, head, p.c)], sum);
        store(dv, e, sum);
    }
};

/* Rows are numbers of the gradients of a sample's row maps: sum over x and channels of dy[y, x] along[y', x]. */
struct axes_row_map {
    axes_shape s;
    cuda_value dy;
    const float *along;
    cuda_value gradient;
    template <class Team> __device__ void operator()(int64_t number, Team team) const
    {
        int64_t key = number % s.h, y = number / s.h % s.h, head = number / s.h / s.h % s.heads;
        int64_t sample = number / s.h / s.h / s.heads;
        float sum = 0;
        for (int64_t i = team.first(); i < s.w * s.width; i += team.step) {
            int64_t x = i / s.width, c = i % s.width;
            sum = fmaf(load(dy, s.at(sample, y, x, s.heads, head, c)), along[s.at(sample, key, x, s.heads, head, c)],
                       sum);
        }
        sum = team.sum(sum);
        if (team.first() == 0)
            store(gradient, number, sum);
    }
};

/* The same of column maps: sum over y and channels of of_key[y, x] v[y, x']. */
struct axes_column_map {
    axes_shape s;
    const float *of_key;
    cuda_value v, gradient;
    template <class Team> __device__ void operator()(int64_t number, Team team) const
    {
        int64_t key = number % s.w, x = number / s.w % s.w, head = number / s.w / s.w % s.heads;
        int64_t sample = number / s.w / s.w / s.heads;
        float sum = 0;
        for (int64_t i = team.first(); i < s.h * s.width; i += team.step) {
            int64_t y = i / s.width, c = i % s.width;
            sum = fmaf(of_key[s.at(sample, y, x, s.heads, head, c)],
                       load(v, s.at(sample, y, key, s.values, s.value_of(head), c)), sum);
        }
        sum = team.sum(sum);
        if (team.first() == 0)
            store(gradient, number, sum);
    }
};

static att_status prepare_axes_grad(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = 2 * (size_t)att_problem_count(problem, &problem->in[0]) * sizeof(float);
    return ATT_OK;
}

static att_status run_axes_grad(const att_call *call)
{
    enum { DY, V };
    axes_shape s = axes_shape_of(call, V);
    int64_t count = axes_elements(call->problem, s), samples = call->problem->group;
    float *along = (float *)call->scratch, *of_key = along + count;
    att_cuda_each(count, along_columns{s, cuda_in(call, DY), {of_key, ATT_F32}, true});
    if (call->out[0])
        att_cuda_each(att_cuda_out_count(call, 0), axes_dv{s, of_key, cuda_out(call, 0)});
    if (call->out[1]) {
        att_cuda_each(count, along_rows{s, cuda_in(call, V), along});
        cuda_each_row(samples * s.heads * s.h * s.h, s.w * s.width,
                      axes_row_map{s, cuda_in(call, DY), along, cuda_out(call, 1)});
    }
    if (call->out[2])
        cuda_each_row(samples * s.heads * s.w * s.w, s.h * s.width,
                      axes_column_map{s, of_key, cuda_in(call, V), cuda_out(call, 2)});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(mix_axes_grad, prepare_axes_grad, run_axes_grad, nullptr);

/* --- mix_pairs ---------------------------------------------------------------------------------------------------- */

/* Keys are pixels of a map; keys between the first and the last weight of a query that is not 0 are read. */
struct pairs_shape {
    att_mix_pairs_attrs attrs;
    int64_t h, w, channels, row_maps, column_maps, queries_h, queries_w;
    const float *rows, *columns; /* [row_maps, queries_h, h + 2 ring], [column_maps, queries_w, w + 2 ring] */
    struct keys {
        const float *weights; /* of key 0 */
        int64_t begin, end;
        __device__ float at(int64_t key) const
        {
            return key >= begin && key < end ? weights[key] : 0;
        }
    };
    __device__ keys keys_of(const float *row, int64_t length) const
    {
        keys k = {row + attrs.ring, 0, 0};
        att_mix_pairs_keys(&attrs, row, length + 2 * attrs.ring, &k.begin, &k.end);
        return k;
    }
    __device__ keys row_keys(int64_t map, int64_t y) const
    {
        return keys_of(rows + (map * queries_h + y) * (h + 2 * attrs.ring), h);
    }
    __device__ keys column_keys(int64_t map, int64_t x) const
    {
        return keys_of(columns + (map * queries_w + x) * (w + 2 * attrs.ring), w);
    }
    __device__ int64_t value_at(int64_t sample, int64_t y, int64_t x, int64_t channel) const
    {
        return ((sample * h + y) * w + x) * channels + channel;
    }
    /* Numbers of a key row, a query column and a column map: [samples, h, queries_w, column_maps, channels]. */
    __device__ int64_t between_at(int64_t sample, int64_t y, int64_t x, int64_t map, int64_t channel) const
    {
        return (((sample * h + y) * queries_w + x) * column_maps + map) * channels + channel;
    }
    /* Of the result: channels of a token are ordered (group, row map, column map, channel of the group). */
    __device__ int64_t result_at(int64_t sample, int64_t y, int64_t x, int64_t row_map, int64_t column_map,
                                 int64_t channel) const
    {
        int64_t width = channels / attrs.groups, group = channel / width;
        int64_t head = (group * row_maps + row_map) * column_maps + column_map;
        return ((sample * queries_h + y) * queries_w + x) * channels * row_maps * column_maps + head * width +
               channel % width;
    }
};

/* first: the node's input v. */
static pairs_shape pairs_shape_of(const att_call *call, int first)
{
    const att_mix_pairs_attrs *attrs = ATT_ATTRS(call->problem, mix_pairs);
    const att_desc *in = call->problem->in + first;
    return {*attrs,
            in[0].shape.dims[0],
            in[0].shape.dims[1],
            in[0].shape.dims[2],
            in[1].shape.dims[0],
            in[2].shape.dims[0],
            attrs->attention.grid_h,
            attrs->attention.grid_w,
            (const float *)call->in[first + 1],
            (const float *)call->in[first + 2]};
}

static int64_t between_elements(const att_problem *problem, int first)
{
    const att_desc *in = problem->in + first;
    int64_t queries_w = ATT_ATTRS(problem, mix_pairs)->attention.grid_w;
    return problem->group * in[0].shape.dims[0] * queries_w * in[2].shape.dims[0] * in[0].shape.dims[2];
}

struct between_place {
    int64_t sample, y, x, map, channel;
};

__device__ static between_place between_place_of(const pairs_shape &s, int64_t e)
{
    int64_t channel = e % s.channels, map = e / s.channels % s.column_maps, row = e / s.channels / s.column_maps;
    return {row / s.queries_w / s.h, row / s.queries_w % s.h, row % s.queries_w, map, channel};
}

/* Sums over the key columns. */
struct pairs_along_rows {
    pairs_shape s;
    cuda_value v;
    float *to;
    __device__ void operator()(int64_t e) const
    {
        between_place p = between_place_of(s, e);
        pairs_shape::keys keys = s.column_keys(p.map, p.x);
        float sum = 0;
        for (int64_t x = keys.begin; x < keys.end; x++)
            sum = fmaf(keys.weights[x], load(v, s.value_at(p.sample, p.y, x, p.channel)), sum);
        to[e] = sum;
    }
};

/* Sums over the key rows: the result. */
struct pairs_along_columns {
    pairs_shape s;
    const float *from;
    cuda_value y;
    __device__ void operator()(int64_t e) const
    {
        int64_t width = s.channels / s.attrs.groups, head = e / width;
        int64_t column_map = head % s.column_maps, row_map = head / s.column_maps % s.row_maps;
        int64_t group = head / s.column_maps / s.row_maps % s.attrs.groups;
        int64_t token = e / (s.channels * s.row_maps * s.column_maps);
        int64_t sample = token / s.queries_w / s.queries_h, query = token / s.queries_w % s.queries_h;
        pairs_shape::keys keys = s.row_keys(row_map, query);
        float sum = 0;
        for (int64_t key = keys.begin; key < keys.end; key++)
            sum =
                fmaf(keys.weights[key],
                     from[s.between_at(sample, key, token % s.queries_w, column_map, group * width + e % width)], sum);
        store(y, e, sum);
    }
};

static att_status prepare_pairs(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)between_elements(problem, 0) * sizeof(float);
    return ATT_OK;
}

static att_status run_pairs(const att_call *call)
{
    pairs_shape s = pairs_shape_of(call, 0);
    float *between = (float *)call->scratch;
    att_cuda_each(between_elements(call->problem, 0), pairs_along_rows{s, cuda_in(call, 0), between});
    att_cuda_each(att_cuda_out_count(call, 0), pairs_along_columns{s, between, cuda_out(call, 0)});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(mix_pairs, prepare_pairs, run_pairs, nullptr);

/* The gradient of the sums over key columns. */
struct pairs_between_grad {
    pairs_shape s;
    cuda_value dy;
    float *to;
    __device__ void operator()(int64_t e) const
    {
        between_place p = between_place_of(s, e);
        float sum = 0;
        for (int64_t map = 0; map < s.row_maps; map++)
            for (int64_t query = 0; query < s.queries_h; query++) {
                float weight = s.row_keys(map, query).at(p.y);
                if (weight != 0)
                    sum = fmaf(weight, load(dy, s.result_at(p.sample, query, p.x, map, p.map, p.channel)), sum);
            }
        to[e] = sum;
    }
};

struct pairs_dv {
    pairs_shape s;
    const float *between;
    cuda_value dv;
    __device__ void operator()(int64_t e) const
    {
        int64_t channel = e % s.channels, x = e / s.channels % s.w, y = e / s.channels / s.w % s.h;
        int64_t sample = e / s.channels / s.w / s.h;
        float sum = 0;
        for (int64_t map = 0; map < s.column_maps; map++)
            for (int64_t query = 0; query < s.queries_w; query++) {
                float weight = s.column_keys(map, query).at(x);
                if (weight != 0)
                    sum = fmaf(weight, between[s.between_at(sample, y, query, map, channel)], sum);
            }
        store(dv, e, sum);
    }
};

/* Rows are numbers of the gradients of a sample's row maps. The gradient of a weight that is 0 is 0. */
struct pairs_row_map {
    pairs_shape s;
    const float *along;
    cuda_value dy, gradient;
    template <class Team> __device__ void operator()(int64_t number, Team team) const
    {
        int64_t length = s.h + 2 * s.attrs.ring, key = number % length - s.attrs.ring;
        int64_t query = number / length % s.queries_h, map = number / length / s.queries_h % s.row_maps;
        int64_t sample = number / length / s.queries_h / s.row_maps;
        int64_t count = s.queries_w * s.column_maps * s.channels;
        bool counts = s.row_keys(map, query).at(key) != 0;
        float sum = 0;
        for (int64_t i = team.first(); counts && i < count; i += team.step) {
            int64_t channel = i % s.channels, column_map = i / s.channels % s.column_maps;
            int64_t x = i / s.channels / s.column_maps;
            sum = fmaf(along[s.between_at(sample, key, x, column_map, channel)],
                       load(dy, s.result_at(sample, query, x, map, column_map, channel)), sum);
        }
        sum = team.sum(sum);
        if (team.first() == 0)
            store(gradient, number, sum);
    }
};

struct pairs_column_map {
    pairs_shape s;
    const float *between;
    cuda_value v, gradient;
    template <class Team> __device__ void operator()(int64_t number, Team team) const
    {
        int64_t length = s.w + 2 * s.attrs.ring, key = number % length - s.attrs.ring;
        int64_t query = number / length % s.queries_w, map = number / length / s.queries_w % s.column_maps;
        int64_t sample = number / length / s.queries_w / s.column_maps;
        bool counts = s.column_keys(map, query).at(key) != 0;
        float sum = 0;
        for (int64_t i = team.first(); counts && i < s.h * s.channels; i += team.step) {
            int64_t channel = i % s.channels, y = i / s.channels;
            sum = fmaf(between[s.between_at(sample, y, query, map, channel)],
                       load(v, s.value_at(sample, y, key, channel)), sum);
        }
        sum = team.sum(sum);
        if (team.first() == 0)
            store(gradient, number, sum);
    }
};

static att_status prepare_pairs_grad(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = 2 * (size_t)between_elements(problem, 1) * sizeof(float);
    return ATT_OK;
}

static att_status run_pairs_grad(const att_call *call)
{
    enum { DY, V };
    pairs_shape s = pairs_shape_of(call, V);
    int64_t count = between_elements(call->problem, V);
    float *along = (float *)call->scratch, *between = along + count;
    att_cuda_each(count, pairs_between_grad{s, cuda_in(call, DY), between});
    if (call->out[0])
        att_cuda_each(att_cuda_out_count(call, 0), pairs_dv{s, between, cuda_out(call, 0)});
    if (call->out[1]) {
        att_cuda_each(count, pairs_along_rows{s, cuda_in(call, V), along});
        cuda_each_row(att_cuda_out_count(call, 1), s.queries_w * s.column_maps * s.channels,
                      pairs_row_map{s, along, cuda_in(call, DY), cuda_out(call, 1)});
    }
    if (call->out[2])
        cuda_each_row(att_cuda_out_count(call, 2), s.h * s.channels,
                      pairs_column_map{s, between, cuda_in(call, V), cuda_out(call, 2)});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(mix_pairs_grad, prepare_pairs_grad, run_pairs_grad, nullptr);

/* --- pair_maps ---------------------------------------------------------------------------------------------------- */

/* Rows are queries of heads of samples. */
struct pair_query {
    att_mix_pairs_attrs attrs;
    const float *row_map, *column_map;
    float *stats, *map;
    int64_t row_maps, h, rows, column_maps, w, columns; /* queries h, w; keys rows, columns */
    template <class Team> __device__ void operator()(int64_t number, Team team) const
    {
        int64_t x = number % w, y = number / w % h, head = number / w / h, sample = head / (row_maps * column_maps);
        int64_t of_rows = sample * row_maps + head / column_maps % row_maps;
        int64_t of_columns = sample * column_maps + head % column_maps, keys = rows * columns;
        const float *row = row_map + (of_rows * h + y) * rows, *column = column_map + (of_columns * w + x) * columns;
        float largest = 0;
        int64_t first = keys;
        for (int64_t j = team.first(); j < keys; j += team.step) {
            float a = row[j / columns] * column[j % columns];
            if (map)
                map[number * keys + j] = a;
            if (a > largest)
                largest = a, first = j;
        }
        if (!stats)
            return;
        float most = team.max(largest);
        int64_t argmax = (int64_t)-team.max(largest == most && most > 0 ? -(float)first : -INFINITY);
        argmax = most > 0 ? argmax : keys;
        int64_t strongest = argmax < keys ? argmax : 0;
        double stat[ATT_STAT_COUNT] = {};
        for (int64_t j = team.first(); j < keys; j += team.step) {
            double a = (double)row[j / columns] * column[j % columns];
            add_key(j / columns, j % columns, y, x, a, j == argmax, stat);
            add_shift(j / columns - strongest / columns, j % columns - strongest % columns, a, stat);
        }
#pragma unroll
        for (int s = 0; s < ATT_STAT_COUNT; s++)
            stat[s] = team.sum(stat[s]);
        if (team.first() != 0)
            return;
        finish_shifts(shift(strongest / columns, y), shift(strongest % columns, x), stat);
        stat[ATT_STAT_ARGMAX] = (double)strongest;
#pragma unroll
        for (int s = 0; s < ATT_STAT_COUNT; s++)
            stats[number * ATT_STAT_COUNT + s] = (float)stat[s];
    }
    /* The shift, in rows or columns of queries, from a query to a row or column of keys. */
    __device__ double shift(int64_t key, int64_t from) const
    {
        return (double)(key - attrs.ring) / attrs.stride - (double)from;
    }
    /* Adds a key to the sums of moments about the strongest key, from which it is so many rows and columns of keys
       away. */
    __device__ void add_shift(int64_t down, int64_t right, double a, double *stat) const
    {
        double dy = (double)down / attrs.stride, dx = (double)right / attrs.stride;
        stat[ATT_STAT_Y] += a * dy;
        stat[ATT_STAT_X] += a * dx;
        stat[ATT_STAT_YY] += a * dy * dy;
        stat[ATT_STAT_XX] += a * dx * dx;
        stat[ATT_STAT_YX] += a * dy * dx;
    }
    /* Makes moments about the query and its mean shift of those about the strongest key, which has the shift (y, x). */
    __device__ static void finish_shifts(double y, double x, double *stat)
    {
        double weight = stat[ATT_STAT_MAX] + stat[ATT_STAT_OTHERS], inverse = weight > 0 ? 1 / weight : 0;
        stat[ATT_STAT_YY] -= stat[ATT_STAT_Y] * stat[ATT_STAT_Y] * inverse;
        stat[ATT_STAT_XX] -= stat[ATT_STAT_X] * stat[ATT_STAT_X] * inverse;
        stat[ATT_STAT_YX] -= stat[ATT_STAT_Y] * stat[ATT_STAT_X] * inverse;
        stat[ATT_STAT_Y] += weight * y;
        stat[ATT_STAT_X] += weight * x;
    }
    /* Adds the key in row `row` and column `column` of all keys to a thread's sums. */
    __device__ void add_key(int64_t row, int64_t column, int64_t y, int64_t x, double a, bool is_largest,
                            double *stat) const
    {
        double dy = shift(row, y), dx = shift(column, x), other = is_largest ? 0 : a;
        stat[ATT_STAT_ENTROPY] -= a > 0 ? a * log(a) : 0;
        stat[ATT_STAT_MAX] += is_largest ? a : 0;
        stat[ATT_STAT_OTHERS] += other;
        stat[ATT_STAT_OTHERS2] += other * other;
        stat[ATT_STAT_OTHERS3] += other * other * other;
        stat[ATT_STAT_DISTANCE] += a * hypot(dy * attrs.attention.step_h, dx * attrs.attention.step_w);
        stat[ATT_STAT_SELF] += row == attrs.stride * y + attrs.ring && column == attrs.stride * x + attrs.ring ? a : 0;
    }
};

static att_status run_pair_maps(const att_call *call)
{
    const int64_t *rows = call->problem->in[0].shape.dims, *columns = call->problem->in[1].shape.dims;
    pair_query query = {*ATT_ATTRS(call->problem, mix_pairs),
                        (const float *)call->in[0],
                        (const float *)call->in[1],
                        (float *)call->out[ATT_PAIR_MAPS_STATS],
                        (float *)call->out[ATT_PAIR_MAPS_MAP],
                        rows[0],
                        rows[1],
                        rows[2],
                        columns[0],
                        columns[1],
                        columns[2]};
    cuda_each_row(call->problem->group * rows[0] * columns[0] * rows[1] * columns[1], rows[2] * columns[2], query);
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(pair_maps, run_pair_maps);
