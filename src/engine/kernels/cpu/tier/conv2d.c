#include "engine/ops/conv2d.h"
#include "engine/kernels/cpu/conv_vectors.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/pairs.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/activation.h"

/* Convolutions of few channels, summed in registers: a tile of pixels and a panel of outputs is summed over the whole
 * window; norm, residual and ReLU are applied before anything is stored. The pixels of one row of a window are
 * contiguous, so a window consists of kernel_h runs of elements. An element is an f32 or a pair of bf16.
 *
 * Weights are packed as [panel][row of the window][element of the run][outputs of the panel], followed by the factors
 * and addends of the norm.
 */
enum {
    VECTORS = 2,            /* most vectors per panel */
    ROWS = 16,              /* most pixels per tile */
    PANEL_BYTES = 80 << 10, /* limit on a packed panel, so that it stays in cache from tile to tile */
    PADDED_BYTES = 1 << 20,
    CHUNK_BYTES = 16 << 10 /* bytes of x that every panel reads */
};

typedef struct conv {
    bool pairs, pointwise;   /* pointwise: 1 x 1 with stride 1; all pixels are one row */
    int64_t pixel, row;      /* elements of x per pixel, and per padded row */
    int64_t step;            /* elements between the windows of adjacent pixels */
    int64_t height, padding; /* height: of padded x */
    int64_t kernel_h, run;   /* runs per window, elements per run */
    int64_t stride, out_h, out_w, outputs;
    int64_t vectors; /* vectors per panel */
} conv;

static int64_t panel_of(const conv *c)
{
    return c->outputs % (VECTORS * VW) == 0 ? VECTORS : 1;
}

static conv conv_of(const att_problem *problem)
{
    const att_conv_attrs *attrs = problem->attrs;
    const int64_t *x = problem->in[ATT_CONV_X].shape.dims, *y = problem->out[0].shape.dims;
    const int64_t *kernel = problem->in[ATT_CONV_WEIGHT].shape.dims + 2;
    bool pairs = att_is_bf16(&problem->in[ATT_CONV_X]);
    int64_t pixel = pairs ? x[2] / 2 : x[2];
    conv c = {.pairs = pairs,
              .pointwise = kernel[0] == 1 && kernel[1] == 1 && attrs->stride == 1 && attrs->padding == 0,
              .pixel = pixel,
              .row = (x[1] + 2 * attrs->padding) * pixel,
              .step = attrs->stride * pixel,
              .height = x[0] + 2 * attrs->padding,
              .padding = attrs->padding,
              .kernel_h = kernel[0],
              .run = kernel[1] * pixel,
              .stride = attrs->stride,
              .out_h = y[0],
              .out_w = y[1],
              .outputs = y[2]};
    c.vectors = panel_of(&c);
    return c;
}

static size_t padded_bytes(const conv *c)
{
    return c->padding > 0 ? (size_t)(c->height * c->row) * sizeof(float) : 0;
}

/* Whether a norm, bias, residual or ReLU follows the sums. Convolutions without these, as in training, are left to
 * oneDNN. */
static bool finishes(const att_problem *problem)
{
    bool found = ATT_ATTRS(problem, conv)->activation == ATT_ACT_RELU;
    for (int i = ATT_CONV_BIAS; i < problem->in_count; i++)
        found = found || att_desc_present(&problem->in[i]);
    return found;
}

static bool accepts(const att_problem *problem)
{
    const att_conv_attrs *attrs = problem->attrs;
    conv c = conv_of(problem);
    bool fits = finishes(problem) && attrs->groups == 1 && attrs->dilation == 1 && c.outputs % VW == 0 &&
                (size_t)(c.kernel_h * c.run * c.vectors * VW) * sizeof(float) <= PANEL_BYTES &&
                padded_bytes(&c) <= PADDED_BYTES;
    bool even = problem->in[ATT_CONV_X].shape.dims[2] % 2 == 0;
    return VW == 16 && fits && (!c.pairs || (V_MULTIPLIES_PAIRS && even));
}

/* --- packing ------------------------------------------------------------------------------------------------------ */

static int64_t packed_weights(const conv *c)
{
    return c->outputs * c->kernel_h * c->run;
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    conv c = conv_of(problem);
    prepared->scratch_bytes = padded_bytes(&c);
    prepared->packed_bytes = (size_t)(packed_weights(&c) + 2 * c.outputs) * sizeof(float);
    prepared->packed_key = att_conv_vectors_key(problem, VW, c.pairs);
    return ATT_OK;
}

/* Packs one output as a column of its panel. */
static void pack_output(const att_problem *problem, const conv *c, const float *weight, int64_t width, void *packed)
{
    const int64_t *dims = problem->in[ATT_CONV_WEIGHT].shape.dims;
    int64_t halves = c->pairs ? 2 : 1;
    for (int64_t channel = 0; channel < dims[1]; channel++)
        for (int64_t i = 0; i < dims[2]; i++)
            for (int64_t j = 0; j < dims[3]; j++) {
                int64_t element = i * c->run + j * c->pixel + channel / halves;
                att_float_put(packed, element * width * halves + channel % halves, *weight++, c->pairs);
            }
}

static att_status pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)state;
    conv c = conv_of(problem);
    const float *weight = in[ATT_CONV_WEIGHT];
    int64_t width = c.vectors * VW, each = att_shape_count(problem->in[ATT_CONV_WEIGHT].shape) / c.outputs;
    for (int64_t o = 0; o < c.outputs; o++)
        pack_output(problem, &c, weight + o * each, width,
                    (float *)packed + o / width * width * c.kernel_h * c.run + o % width);
    float *scale = (float *)packed + packed_weights(&c);
    att_conv_fill_vectors(problem, in, scale, scale + c.outputs);
    return ATT_OK;
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

/* Operands of a tile besides its sums. */
typedef struct target {
    const float *scale, *shift;
    const void *residual; /* NULL: none */
    void *y;
    bool is_bf16, residual_is_bf16;
    float least; /* 0 or minus infinity; NaN stays NaN */
} target;

/* A pair of bf16 is only aligned to two bytes. */
ATT_INLINE vf spread(const char *element)
{
    float bits;
    memcpy(&bits, element, sizeof bits);
    return v_set(bits);
}

/* Finishes the sums of `rows` pixels and stores them; i is the index in y of the panel's first column. */
ATT_INLINE void finish(const target *t, int rows, int vectors, vf sum[ROWS][VECTORS], int64_t outputs, int64_t i,
                       int64_t column)
{
    const void *residual = t->residual;
    void *y = t->y;
    bool is_bf16 = t->is_bf16, residual_is_bf16 = t->residual_is_bf16;
    vf scale[VECTORS], shift[VECTORS], least = v_set(t->least);
    for (int v = 0; v < vectors; v++) {
        scale[v] = v_load(t->scale + column + v * VW);
        shift[v] = v_load(t->shift + column + v * VW);
    }
    for (int r = 0; r < rows; r++, i += outputs) {
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = v_fma(sum[r][v], scale[v], shift[v]);
            if (residual)
                sum[r][v] += v_get(residual, i + v * VW, residual_is_bf16);
            sum[r][v] = v_max(least, sum[r][v]);
        }
        if (vectors == 2)
            v_put_pair(y, i, sum[r][0], sum[r][1], is_bf16);
        else
            v_put(y, i, sum[r][0], is_bf16);
    }
}

/* Pixels per pointer: one pointer with 16 offsets would not fit into registers. */
enum { PIXELS_PER_POINTER = 4, POINTERS = ROWS / PIXELS_PER_POINTER, UNROLLED = 4 };

/* Adds the products of each pixel's next element with the panel's weights. */
ATT_INLINE void add_element(bool pairs, int rows, int vectors, const char *at[POINTERS], int64_t step,
                            const float *weight, vf sum[ROWS][VECTORS])
{
    vf w[VECTORS];
    for (int v = 0; v < vectors; v++)
        w[v] = v_load(weight + v * VW);
    for (int r = 0; r < rows; r++) {
        vf element = spread(at[r / PIXELS_PER_POINTER] + r % PIXELS_PER_POINTER * step);
        for (int v = 0; v < vectors; v++)
            sum[r][v] = pairs ? v_dot(element, w[v], sum[r][v]) : v_fma(element, w[v], sum[r][v]);
    }
    for (int p = 0; p * PIXELS_PER_POINTER < rows; p++)
        at[p] += sizeof(float);
}

/* Computes `rows` pixels from index `pixel` of y on, for a panel of `vectors` vectors from column `column` on. */
ATT_INLINE void tile(const conv *c, bool pairs, int rows, int vectors, const char *x, const float *weight,
                     const target *t, int64_t pixel, int64_t column)
{
    enum { ELEMENT = sizeof(float) };
    vf sum[ROWS][VECTORS];
    int64_t step = c->step * ELEMENT;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (vf){0};
    for (int64_t i = 0; i < c->kernel_h; i++, x += c->row * ELEMENT) {
        const char *at[POINTERS];
        for (int p = 0; p * PIXELS_PER_POINTER < rows; p++)
            at[p] = x + p * PIXELS_PER_POINTER * step;
        int64_t k = 0;
        for (; k + UNROLLED <= c->run; k += UNROLLED)
            for (int u = 0; u < UNROLLED; u++, weight += vectors * VW)
                add_element(pairs, rows, vectors, at, step, weight, sum);
        for (; k < c->run; k++, weight += vectors * VW)
            add_element(pairs, rows, vectors, at, step, weight, sum);
    }
    finish(t, rows, vectors, sum, c->outputs, pixel * c->outputs + column, column);
}

/* tile() with a constant number of rows, so that its sums are in registers. */
#define TILES(n)                             \
    for (; done + (n) <= count; done += (n)) \
        tile(c, pairs, n, vectors, x + done * c->step * (int64_t)sizeof(float), weight, t, pixel + done, column);

ATT_INLINE void run_panel(const conv *c, bool pairs, int vectors, const char *x, const float *weight, const target *t,
                          int64_t pixel, int64_t count, int64_t column)
{
    int64_t done = 0;
    if (vectors == 1)
        TILES(16)
    TILES(8)
    TILES(4)
    TILES(2)
    TILES(1)
}

#undef TILES

ATT_INLINE void run_pixels_as(const conv *c, bool pairs, const char *x, const float *weight, const target *t,
                              int64_t pixel, int64_t count)
{
    int64_t width = c->vectors * VW, depth = c->kernel_h * c->run;
    for (int64_t column = 0; column < c->outputs; column += width, weight += width * depth) {
        if (c->vectors == 2)
            run_panel(c, pairs, 2, x, weight, t, pixel, count, column);
        else
            run_panel(c, pairs, 1, x, weight, t, pixel, count, column);
    }
}

/* Computes `count` pixels from `pixel` on, whose windows begin at x. */
static void run_pixels(const conv *c, const char *x, const float *weight, const target *t, int64_t pixel, int64_t count)
{
    if (c->pairs)
        run_pixels_as(c, true, x, weight, t, pixel, count);
    else
        run_pixels_as(c, false, x, weight, t, pixel, count);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* Writes rows [begin, end) of padded x. */
static void pad(const conv *c, const char *x, int64_t begin, int64_t end, char *padded)
{
    const size_t element = sizeof(float), row = (size_t)c->row * element;
    const size_t side = (size_t)(c->padding * c->pixel) * element, inside = row - 2 * side;
    for (int64_t i = begin; i < end; i++) {
        char *to = padded + (size_t)i * row;
        if (i < c->padding || i >= c->height - c->padding) {
            memset(to, 0, row);
            continue;
        }
        memset(to, 0, side);
        memcpy(to + side, x + (size_t)(i - c->padding) * inside, inside);
        memset(to + side + inside, 0, side);
    }
}

/* Computes rows [begin, end) of y for one sample. */
static void run_rows(const att_call *call, const conv *c, const target *t, int64_t sample, int64_t begin, int64_t end)
{
    const size_t element = sizeof(float);
    int64_t rows = c->height - 2 * c->padding, columns = c->row / c->pixel - 2 * c->padding;
    const char *x = (const char *)call->in[ATT_CONV_X] + (size_t)(sample * rows * columns * c->pixel) * element;
    if (c->padding > 0) {
        pad(c, x, begin * c->stride, (end - 1) * c->stride + c->kernel_h, call->scratch);
        x = call->scratch;
    }
    for (int64_t i = begin; i < end; i++)
        run_pixels(c, x + (size_t)(i * c->stride * c->row) * element, call->packed, t,
                   (sample * c->out_h + i) * c->out_w, c->out_w);
}

static void run_pointwise(const att_call *call, const conv *c, const target *t)
{
    int64_t chunk = CHUNK_BYTES / (c->pixel * (int64_t)sizeof(float)) / ROWS * ROWS;
    chunk = chunk > ROWS ? chunk : ROWS;
    att_range part = att_part_of(call, call->problem->group * c->out_h * c->out_w, ROWS);
    for (int64_t pixel = part.begin; pixel < part.end; pixel += chunk)
        run_pixels(c, (const char *)call->in[ATT_CONV_X] + (size_t)(pixel * c->pixel) * sizeof(float), call->packed, t,
                   pixel, part.end - pixel < chunk ? part.end - pixel : chunk);
}

/* Parts share pixels if the kernel is 1 x 1, else rows. */
static att_status run(const att_call *call)
{
    conv c = conv_of(call->problem);
    const float *vectors = (const float *)call->packed + packed_weights(&c);
    target t = {.scale = vectors,
                .shift = vectors + c.outputs,
                .residual = call->in[ATT_CONV_RESIDUAL],
                .y = call->out[0],
                .is_bf16 = att_is_bf16(&call->problem->out[0]),
                .residual_is_bf16 = att_is_bf16(&call->problem->in[ATT_CONV_RESIDUAL]),
                .least = ATT_ATTRS(call->problem, conv)->activation == ATT_ACT_RELU ? 0 : -INFINITY};
    if (c.pointwise) {
        run_pointwise(call, &c, &t);
        return ATT_OK;
    }
    att_range part = att_part_of(call, call->problem->group * c.out_h, 1);
    for (int64_t row = part.begin, end; row < part.end; row = end) {
        int64_t sample = row / c.out_h;
        end = (sample + 1) * c.out_h < part.end ? (sample + 1) * c.out_h : part.end;
        run_rows(call, &c, &t, sample, row - sample * c.out_h, end - sample * c.out_h);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(conv2d, .bf16_in = 1u << ATT_CONV_X | 1u << ATT_CONV_RESIDUAL, .bf16_out = 1, .accepts = accepts,
                .prepare = prepare, .pack = pack, .packed_in = 1u << ATT_CONV_WEIGHT, .run = run);
