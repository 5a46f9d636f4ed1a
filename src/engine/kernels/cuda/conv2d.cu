/* Convolutions are matrix products: for each position of the result, the elements of the map under the kernel become a
 * row of `columns`, which is multiplied by the weights. Rows are made in chunks that stay in the level 2 cache, so a
 * map is never copied as a whole. A 1 x 1 convolution with stride 1 multiplies the map itself. */
#include "engine/kernels/cuda/product.cuh"

#include <climits>

extern "C" {
#include "engine/ops/conv2d.h"
}

namespace
{

static const int64_t columns_bytes_at_once = (int64_t)48 << 20;

/* A row of columns gathers taps x channels numbers for each group of channels, padded to `k`, a multiple of 8. The map
 * is what is gathered, and places are the rows: in the forward pass and for the weight's gradient, x and the positions
 * of y; for the gradient of x, dy and the pixels of x. */
struct conv {
    int map_h, map_w, channels; /* channels of the map, for each group */
    int places_h, places_w;
    int kernel_h, kernel_w, stride, padding, dilation, groups;
    int64_t rows, k;
    bool direct; /* the map is its own columns */
};

static conv conv_of(const att_problem *problem, const att_desc *map, const att_desc *places, int64_t kernel_h,
                    int64_t kernel_w)
{
    const att_conv_attrs *attrs = (const att_conv_attrs *)problem->attrs;
    conv c = {};
    c.map_h = (int)map->shape.dims[0];
    c.map_w = (int)map->shape.dims[1];
    c.channels = (int)map->shape.dims[2] / attrs->groups;
    c.places_h = (int)places->shape.dims[0];
    c.places_w = (int)places->shape.dims[1];
    c.kernel_h = (int)kernel_h;
    c.kernel_w = (int)kernel_w;
    c.stride = attrs->stride;
    c.padding = attrs->padding;
    c.dilation = attrs->dilation;
    c.groups = attrs->groups;
    c.rows = problem->group * c.places_h * c.places_w;
    c.direct = kernel_h == 1 && kernel_w == 1 && c.stride == 1 && c.padding == 0 && c.groups == 1;
    c.k = kernel_h * kernel_w * c.channels;
    c.k = c.direct ? c.k : (c.k + 7) / 8 * 8;
    return c;
}

static int64_t chunk_of(const conv *c, att_dtype type)
{
    int64_t row_bytes = c->groups * c->k * (int64_t)att_dtype_size(type);
    int64_t chunk = columns_bytes_at_once / row_bytes / 128 * 128;
    chunk = chunk < 128 ? 128 : chunk;
    return chunk < c->rows ? chunk : c->rows;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* The row (or column) of the map that place `at` sees through tap `u`; -1 if there is none. */
template <bool Transposed> __device__ static int map_at(const conv &c, int at, int u, int size)
{
    if (!Transposed) {
        int place = at * c.stride + u * c.dilation - c.padding;
        return place >= 0 && place < size ? place : -1;
    }
    int distance = at + c.padding - u * c.dilation;
    return distance >= 0 && distance % c.stride == 0 && distance / c.stride < size ? distance / c.stride : -1;
}

/* 32 threads for the packs of V elements of a row, 8 rows at a time. */
template <bool Transposed, int V, class From, class To>
__global__ void __launch_bounds__(256) columns_kernel(conv c, const From *map, int64_t first, int rows, To *columns)
{
    int width = c.groups * (int)(c.k / V), channel_packs = c.channels / V, taps = c.kernel_h * c.kernel_w;
    for (int local = blockIdx.x * 8 + threadIdx.y; local < rows; local += gridDim.x * 8) {
        int64_t row = first + local, line = row / c.places_w, sample = line / c.places_h;
        int j = (int)(row - line * c.places_w), i = (int)(line - sample * c.places_h);
        for (int p = threadIdx.x; p < width; p += 32) {
            int group = p / (int)(c.k / V), inside = p - group * (int)(c.k / V);
            int tap = inside / channel_packs, pack = inside - tap * channel_packs;
            int y = tap < taps ? map_at<Transposed>(c, i, tap / c.kernel_w, c.map_h) : -1;
            int x = y >= 0 ? map_at<Transposed>(c, j, tap % c.kernel_w, c.map_w) : -1;
            float values[V] = {};
            if (x >= 0)
                load_pack<V>(map,
                             ((sample * c.map_h + y) * c.map_w + x) * (int64_t)(c.channels * c.groups) +
                                 group * c.channels + pack * V,
                             values);
            store_pack<V>(columns, ((int64_t)local * width + p) * V, values);
        }
    }
}

/* Where an element of a row of columns comes from, relative to the first tap: offset in the map; row and column of the
 * tap. offset INT_MIN: padding. */
struct tap_source {
    int offset;
    short row, column;
};

enum { MOST_TABLE = 1024 };

/* For maps of few channels, which allow no wide loads: each thread gathers V neighbouring elements and stores them at
 * once. */
template <int V, class From, class To>
__global__ void __launch_bounds__(256)
    narrow_columns_kernel(conv c, const From *map, int64_t first, unsigned packs, To *columns)
{
    __shared__ tap_source table[MOST_TABLE];
    int k = (int)c.k, filled = c.kernel_h * c.kernel_w * c.channels;
    for (int t = threadIdx.x; t < k; t += blockDim.x) {
        int tap = t / c.channels, u = tap / c.kernel_w * c.dilation, v = tap % c.kernel_w * c.dilation;
        table[t] = {t < filled ? (u * c.map_w + v) * c.channels + t % c.channels : INT_MIN, (short)u, (short)v};
    }
    __syncthreads();
    unsigned row_packs = (unsigned)k / V;
    for (unsigned p = blockIdx.x * blockDim.x + threadIdx.x; p < packs; p += gridDim.x * blockDim.x) {
        unsigned local = p / row_packs, begin = (p - local * row_packs) * V;
        int64_t row = first + local, line = row / c.places_w, sample = line / c.places_h;
        int y = (int)(line - sample * c.places_h) * c.stride - c.padding;
        int x = (int)(row - line * c.places_w) * c.stride - c.padding;
        const From *from = map + ((sample * c.map_h + y) * c.map_w + x) * c.channels;
        float values[V];
#pragma unroll
        for (int i = 0; i < V; i++) {
            tap_source source = table[begin + i];
            bool inside = source.offset != INT_MIN && (unsigned)(y + source.row) < (unsigned)c.map_h &&
                          (unsigned)(x + source.column) < (unsigned)c.map_w;
            values[i] = inside ? load(from, source.offset) : 0;
        }
        store_pack<V>(columns, (int64_t)p * V, values);
    }
}

template <bool Transposed, class From, class To>
static void make_columns(const conv *c, const From *map, int64_t first, int64_t rows, To *columns)
{
    unsigned most = (unsigned)cuda.multiprocessors * 32, blocks = (unsigned)((rows + 7) / 8);
    blocks = blocks < most ? blocks : most;
    constexpr int V = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To)), N = 16 / sizeof(To);
    bool tabled = !Transposed && c->groups == 1 && c->k <= MOST_TABLE && c->k % N == 0 &&
                  c->kernel_h * c->dilation < INT16_MAX && c->kernel_w * c->dilation < INT16_MAX &&
                  rows * c->k / N <= INT32_MAX;
    if (c->channels % V == 0 && ATT_CUDA_ALIGNED(map, V))
        columns_kernel<Transposed, V><<<blocks, dim3(32, 8), 0, cuda.stream>>>(*c, map, first, (int)rows, columns);
    else if (tabled) {
        unsigned packs = (unsigned)(rows * c->k / N);
        narrow_columns_kernel<N>
            <<<att_cuda_blocks(packs), ATT_CUDA_THREADS, 0, cuda.stream>>>(*c, map, first, packs, columns);
    } else
        columns_kernel<Transposed, 1><<<blocks, dim3(32, 8), 0, cuda.stream>>>(*c, map, first, (int)rows, columns);
}

/* --- forward and the gradient of x -------------------------------------------------------------------------------- */

enum { X, WEIGHT, BIAS, RESIDUAL, GAMMA, BETA, MEAN, VARIANCE };
enum { DY, RESIDUAL_OF_GRAD = 2, RELU_OUTPUT, POOLED };

/* Scratch: sums of the product, then columns. Packed: the weights in the order of a row of columns, [groups, n, k], in
 * the type of the map, then the bias [outputs]. */
struct conv_product {
    conv c;
    att_product product;
    size_t columns, bias; /* offsets in scratch and in the packed copy */
    bool packed;
};

static void release_product(att_context *context, void *state)
{
    if (state)
        att_product_close(&((conv_product *)state)->product);
    att_free(context, state);
}

static att_status prepare_product(const att_problem *problem, const conv *c, int64_t outputs, bool b_transposed,
                                  att_finish_parts parts, bool packed, att_prepared *prepared)
{
    att_dtype type = problem->in[0].dtype;
    conv_product *state = (conv_product *)att_allocate(problem->context, sizeof *state);
    if (!state)
        return att_fail_memory(problem->context, sizeof *state, "a convolution");
    att_product_shape s = {};
    s.rows = c->rows;
    s.n = outputs / c->groups;
    s.k = c->k;
    s.groups = c->groups;
    s.lda = c->groups * c->k;
    s.b_transposed = b_transposed;
    s.ldb = b_transposed ? c->k : s.n;
    s.in = type;
    s.out = problem->out[0].dtype;
    s.chunk = c->direct ? 0 : chunk_of(c, type);
    s.finish = parts;
    att_status status = att_product_open(problem->context, &s, &state->product);
    if (status != ATT_OK) {
        att_free(problem->context, state);
        return status;
    }
    state->c = *c;
    state->packed = packed;
    state->columns = aligned(state->product.sums_bytes);
    state->bias = aligned((size_t)(outputs * c->k) * att_dtype_size(type));
    prepared->state = state;
    prepared->scratch_bytes =
        state->columns + (c->direct ? 0 : (size_t)(state->product.chunk * s.lda) * att_dtype_size(type));
    if (packed) {
        prepared->packed_bytes = state->bias + (size_t)outputs * sizeof(float);
        prepared->packed_key =
            ((uint64_t)type * 2 + (uint64_t)b_transposed) * 8 + (uint64_t)att_product_bias_type(&state->product);
    }
    return ATT_OK;
}

/* Runs a product whose weights are `b`, chunk by chunk. */
template <bool Transposed> static att_status run_product(const att_call *call, const att_finish *finish, const void *b)
{
    const conv_product *state = (const conv_product *)call->state;
    const att_product *product = &state->product;
    att_context *context = call->problem->context;
    if (state->c.direct)
        return att_product_run(context, product, finish, call->in[0], b, call->scratch, call->out[0]);
    void *columns = (char *)call->scratch + state->columns;
    for (int64_t first = 0; first < product->rows; first += product->chunk) {
        int64_t rows = product->rows - first < product->chunk ? product->rows - first : product->chunk;
        att_cuda_in(call, 0, [&](auto *map) {
            typedef std::remove_const_t<std::remove_pointer_t<decltype(map)>> type;
            make_columns<Transposed>(&state->c, map, first, rows, (type *)columns);
        });
        ATT_TRY(att_product_chunk(context, product, finish, first, columns, b, call->scratch, call->out[0]));
    }
    return att_cuda_launched(call);
}

static att_finish_parts forward_parts(const att_problem *problem)
{
    att_finish_parts parts = {};
    parts.bias = att_desc_present(&problem->in[GAMMA]) || att_desc_present(&problem->in[BIAS]);
    parts.residual = att_desc_present(&problem->in[RESIDUAL]);
    parts.residual_type = problem->in[RESIDUAL].dtype;
    parts.relu = ATT_ATTRS(problem, conv)->activation == ATT_ACT_RELU;
    return parts;
}

static att_status prepare_conv2d(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *weight = problem->in[WEIGHT].shape.dims;
    conv c = conv_of(problem, &problem->in[X], &problem->out[0], weight[2], weight[3]);
    bool packed = att_desc_present(&problem->in[GAMMA]) || !c.direct || problem->in[X].dtype == ATT_BF16;
    return prepare_product(problem, &c, weight[0], true, forward_parts(problem), packed, prepared);
}

/* The numbers of a batch norm, which is folded into the weights. */
struct folded_norm {
    const float *bias, *gamma, *beta, *mean, *variance;
    double eps;
    __device__ float slope(int64_t output) const
    {
        return gamma ? (float)(gamma[output] / sqrt((double)variance[output] + eps)) : 1;
    }
    __device__ float shift(int64_t output) const
    {
        float own = bias ? bias[output] : 0;
        return gamma ? (own - mean[output]) * slope(output) + beta[output] : own;
    }
};

/* Element i of [outputs, taps, channels], padded to rows of k. */
template <class T> struct pack_forward {
    conv c;
    folded_norm norm;
    const float *weight; /* [outputs, channels, taps] */
    T *packed;
    __device__ void operator()(int64_t i) const
    {
        int64_t output = i / c.k, inside = i % c.k, taps = (int64_t)c.kernel_h * c.kernel_w;
        int64_t tap = inside / c.channels, channel = inside % c.channels;
        store(packed, i, tap < taps ? weight[(output * c.channels + channel) * taps + tap] * norm.slope(output) : 0);
    }
};

template <class T> struct pack_bias {
    folded_norm norm;
    T *packed;
    __device__ void operator()(int64_t output) const
    {
        store(packed, output, norm.shift(output));
    }
};

static folded_norm norm_of(const att_problem *problem, const void *const *in)
{
    return {(const float *)in[BIAS], (const float *)in[GAMMA],    (const float *)in[BETA],
            (const float *)in[MEAN], (const float *)in[VARIANCE], ATT_ATTRS(problem, conv)->eps};
}

static void write_bias(const att_problem *problem, const conv_product *p, folded_norm norm, void *packed)
{
    att_cuda_typed(att_product_bias_type(&p->product), (void *)((char *)packed + p->bias), [&](auto *to) {
        att_cuda_each(problem->out[0].shape.dims[2], pack_bias{norm, to});
    });
}

static att_status pack_conv2d(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    const conv_product *p = (const conv_product *)state;
    int64_t outputs = problem->in[WEIGHT].shape.dims[0];
    folded_norm norm = norm_of(problem, in);
    const float *weight = (const float *)in[WEIGHT];
    att_cuda_typed(problem->in[X].dtype, packed, [&](auto *to) {
        typedef std::remove_pointer_t<decltype(to)> type;
        att_cuda_each(outputs * p->c.k, pack_forward<type>{p->c, norm, weight, to});
    });
    write_bias(problem, p, norm, packed);
    return att_cuda_check(problem->context, cudaPeekAtLastError(), "packing a weight");
}

static att_finish forward_finish(const att_call *call)
{
    const conv_product *state = (const conv_product *)call->state;
    const att_problem *problem = call->problem;
    bool has_bias = call->in[BIAS] || call->in[GAMMA];
    att_finish finish = {};
    if (has_bias)
        finish.bias =
            call->packed ? (const float *)((const char *)call->packed + state->bias) : (const float *)call->in[BIAS];
    finish.residual = call->in[RESIDUAL];
    finish.residual_type = problem->in[RESIDUAL].dtype;
    finish.relu = ATT_ATTRS(problem, conv)->activation == ATT_ACT_RELU;
    return finish;
}

static att_status run_conv2d(const att_call *call)
{
    att_finish finish = forward_finish(call);
    return run_product<false>(call, &finish, call->packed ? call->packed : call->in[WEIGHT]);
}

static att_status prepare_data_grad(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *weight = problem->in[WEIGHT].shape.dims;
    conv c = conv_of(problem, &problem->in[DY], &problem->out[0], weight[2], weight[3]);
    att_finish_parts parts = {};
    parts.residual = att_desc_present(&problem->in[RESIDUAL_OF_GRAD]);
    parts.residual_type = problem->in[RESIDUAL_OF_GRAD].dtype;
    parts.mask = att_desc_present(&problem->in[RELU_OUTPUT]);
    parts.pooled = att_desc_present(&problem->in[POOLED]);
    bool packed = !c.direct || problem->in[DY].dtype == ATT_BF16;
    /* The weight of a 1 x 1 convolution, [outputs, channels], is multiplied as it is stored. */
    return prepare_product(problem, &c, problem->out[0].shape.dims[2], !c.direct, parts, packed, prepared);
}

/* Element i of [groups, channels of x, taps, outputs of the group], padded to rows of k; c.channels: the outputs of a
 * group. norm: of the channels of x, in a transposed convolution. */
template <class T> struct pack_backward {
    conv c;
    folded_norm norm;
    int64_t seen;        /* channels of x in a group */
    const float *weight; /* [outputs, seen, taps] */
    T *packed;
    __device__ void operator()(int64_t i) const
    {
        int64_t row = i / c.k, inside = i % c.k, group = row / seen, channel = row % seen;
        int64_t taps = (int64_t)c.kernel_h * c.kernel_w, tap = inside / c.channels;
        int64_t output = group * c.channels + inside % c.channels;
        store(packed, i, tap < taps ? weight[(output * seen + channel) * taps + tap] * norm.slope(row) : 0);
    }
};

struct narrow_weight {
    const float *weight;
    bf16 *packed;
    __device__ void operator()(int64_t i) const
    {
        store(packed, i, weight[i]);
    }
};

static att_status pack_data_grad(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    const conv_product *p = (const conv_product *)state;
    const float *weight = (const float *)in[WEIGHT];
    int64_t inputs = problem->out[0].shape.dims[2];
    if (p->c.direct)
        att_cuda_each(att_problem_count(problem, &problem->in[WEIGHT]), narrow_weight{weight, (bf16 *)packed});
    else
        att_cuda_typed(problem->in[DY].dtype, packed, [&](auto *to) {
            typedef std::remove_pointer_t<decltype(to)> type;
            att_cuda_each(inputs * p->c.k, pack_backward<type>{p->c, {}, inputs / p->c.groups, weight, to});
        });
    return att_cuda_check(problem->context, cudaPeekAtLastError(), "packing a weight");
}

static att_status run_data_grad(const att_call *call)
{
    const att_problem *problem = call->problem;
    const int64_t *x = problem->out[0].shape.dims;
    att_finish finish = {};
    finish.residual = call->in[RESIDUAL_OF_GRAD];
    finish.residual_type = problem->in[RESIDUAL_OF_GRAD].dtype;
    finish.mask = call->in[RELU_OUTPUT];
    finish.mask_type = problem->in[RELU_OUTPUT].dtype;
    finish.pooled = (const float *)call->in[POOLED];
    finish.rows_per_sample = x[0] * x[1];
    return run_product<true>(call, &finish, call->packed ? call->packed : call->in[WEIGHT]);
}

/* A transposed convolution computes the gradient of x, and ends as a convolution. It always gathers. */
static att_status prepare_conv_transpose2d(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *weight = problem->in[WEIGHT].shape.dims;
    conv c = conv_of(problem, &problem->in[X], &problem->out[0], weight[2], weight[3]);
    c.direct = false;
    c.k = (c.k + 7) / 8 * 8;
    return prepare_product(problem, &c, problem->out[0].shape.dims[2], true, forward_parts(problem), true, prepared);
}

static att_status pack_conv_transpose2d(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    const conv_product *p = (const conv_product *)state;
    const float *weight = (const float *)in[WEIGHT];
    int64_t outputs = problem->out[0].shape.dims[2];
    folded_norm norm = norm_of(problem, in);
    att_cuda_typed(problem->in[X].dtype, packed, [&](auto *to) {
        typedef std::remove_pointer_t<decltype(to)> type;
        att_cuda_each(outputs * p->c.k, pack_backward<type>{p->c, norm, outputs / p->c.groups, weight, to});
    });
    write_bias(problem, p, norm, packed);
    return att_cuda_check(problem->context, cudaPeekAtLastError(), "packing a weight");
}

static att_status run_conv_transpose2d(const att_call *call)
{
    att_finish finish = forward_finish(call);
    return run_product<true>(call, &finish, call->packed);
}

/* --- the gradient of the weight ----------------------------------------------------------------------------------- */

enum { X_OF_GRAD = 1 };

/* Scratch: columns; dy of a chunk in f32, if only one operand is bf16; the gradient in the order of columns, [groups,
 * outputs, k]; that of the product. */
struct conv_weight_grad {
    conv c;
    int64_t outputs, chunk; /* outputs of a group */
    att_dtype type;
    att_row_product whole, rest;
    size_t wide_dy, sums, slices;
};

static void release_weight_grad(att_context *context, void *state)
{
    conv_weight_grad *s = (conv_weight_grad *)state;
    if (s) {
        att_row_product_close(&s->whole);
        att_row_product_close(&s->rest);
    }
    att_free(context, state);
}

static att_status open_rows(att_context *context, const conv_weight_grad *s, int64_t rows, att_row_product *product)
{
    const att_row_product_shape shape = {rows, s->outputs, s->c.k, s->c.groups, s->type};
    return att_row_product_open(context, &shape, product);
}

static att_status prepare_weight_grad(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *weight = problem->out[0].shape.dims;
    conv_weight_grad *s = (conv_weight_grad *)att_allocate(problem->context, sizeof *s);
    if (!s)
        return att_fail_memory(problem->context, sizeof *s, "a convolution");
    bool both = problem->in[DY].dtype == ATT_BF16 && problem->in[X_OF_GRAD].dtype == ATT_BF16;
    s->c = conv_of(problem, &problem->in[X_OF_GRAD], &problem->in[DY], weight[2], weight[3]);
    s->outputs = weight[0] / s->c.groups;
    s->type = both ? ATT_BF16 : ATT_F32;
    bool widens = !both && (problem->in[DY].dtype == ATT_BF16 || problem->in[X_OF_GRAD].dtype == ATT_BF16);
    bool columns = !s->c.direct || widens;
    s->chunk = columns ? chunk_of(&s->c, s->type) : s->c.rows;
    size_t element = att_dtype_size(s->type), scratch = 0;
    scratch += columns ? aligned((size_t)(s->chunk * s->c.groups * s->c.k) * element) : 0;
    s->wide_dy = scratch;
    scratch += widens ? aligned((size_t)(s->chunk * weight[0]) * element) : 0;
    s->sums = scratch;
    scratch += s->c.direct ? 0 : aligned((size_t)(weight[0] * s->c.k) * sizeof(float));
    s->slices = scratch;
    att_status status = open_rows(problem->context, s, s->chunk, &s->whole);
    if (status == ATT_OK && s->c.rows % s->chunk)
        status = open_rows(problem->context, s, s->c.rows % s->chunk, &s->rest);
    if (status != ATT_OK) {
        release_weight_grad(problem->context, s);
        return status;
    }
    prepared->state = s;
    prepared->scratch_bytes =
        scratch + (s->whole.scratch_bytes > s->rest.scratch_bytes ? s->whole.scratch_bytes : s->rest.scratch_bytes);
    return ATT_OK;
}

struct add_weight_grad {
    conv c;
    const float *sums; /* [outputs, k] */
    float *dw;         /* [outputs, channels, taps] */
    __device__ void operator()(int64_t i) const
    {
        int64_t taps = (int64_t)c.kernel_h * c.kernel_w, tap = i % taps, channel = i / taps % c.channels;
        int64_t output = i / (taps * c.channels);
        dw[i] += sums[output * c.k + tap * c.channels + channel];
    }
};

struct widen {
    const bf16 *from;
    float *to;
    __device__ void operator()(int64_t i) const
    {
        to[i] = load(from, i);
    }
};

/* Rows of dy, in the type of the product. */
static const void *dy_rows(const att_call *call, const conv_weight_grad *s, int64_t first, int64_t rows)
{
    int64_t width = s->outputs * s->c.groups;
    att_dtype type = call->problem->in[DY].dtype;
    if (type == s->type)
        return (const char *)call->in[DY] + (size_t)(first * width) * att_dtype_size(type);
    float *wide = (float *)((char *)call->scratch + s->wide_dy);
    att_cuda_each(rows * width, widen{(const bf16 *)call->in[DY] + first * width, wide});
    return wide;
}

static const void *x_rows(const att_call *call, const conv_weight_grad *s, int64_t first, int64_t rows)
{
    att_dtype type = call->problem->in[X_OF_GRAD].dtype;
    if (s->c.direct && type == s->type)
        return (const char *)call->in[X_OF_GRAD] + (size_t)(first * s->c.k) * att_dtype_size(type);
    if (type == s->type)
        att_cuda_in(call, X_OF_GRAD, [&](auto *x) {
            typedef std::remove_const_t<std::remove_pointer_t<decltype(x)>> same;
            make_columns<false>(&s->c, x, first, rows, (same *)call->scratch);
        });
    else
        make_columns<false>(&s->c, (const bf16 *)call->in[X_OF_GRAD], first, rows, (float *)call->scratch);
    return call->scratch;
}

static att_status run_weight_grad(const att_call *call)
{
    const conv_weight_grad *s = (const conv_weight_grad *)call->state;
    if (!call->out[0])
        return ATT_OK;
    void *sums = s->c.direct ? call->out[0] : (char *)call->scratch + s->sums;
    for (int64_t first = 0; first < s->c.rows; first += s->chunk) {
        int64_t rows = s->c.rows - first < s->chunk ? s->c.rows - first : s->chunk;
        const void *x = x_rows(call, s, first, rows), *dy = dy_rows(call, s, first, rows);
        ATT_TRY(att_row_product_run(call->problem->context, rows == s->chunk ? &s->whole : &s->rest, dy, x,
                                    (char *)call->scratch + s->slices, !s->c.direct && first == 0, (float *)sums));
    }
    if (!s->c.direct)
        att_cuda_each(att_shape_count(call->problem->out[0].shape),
                      add_weight_grad{s->c, (const float *)sums, (float *)call->out[0]});
    return att_cuda_launched(call);
}

} // namespace

ATT_CUDA_PREPARED_KERNEL(conv2d_weight_grad, prepare_weight_grad, run_weight_grad, release_weight_grad);
ATT_CUDA_DESCRIPTOR(conv2d, "cublaslt", att_cuda_accepts, prepare_conv2d, pack_conv2d, run_conv2d, release_product);
ATT_CUDA_DESCRIPTOR(conv2d_data_grad, "cublaslt", att_cuda_accepts, prepare_data_grad, pack_data_grad, run_data_grad,
                    release_product);
ATT_CUDA_DESCRIPTOR(conv_transpose2d, "cublaslt", att_cuda_accepts, prepare_conv_transpose2d, pack_conv_transpose2d,
                    run_conv_transpose2d, release_product);
