#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/ops/conv2d.h"

/* The gradient of a convolution's weight, computed like that of a linear layer whose inputs are the columns of x
 * (im2col): [places, C kernel_h kernel_w], for each output position the elements of x in its window, in the weight's
 * order. Columns are computed for a chunk of positions at a time. For 1 x 1 kernels the columns are x itself. */

enum { DY, X, IN };

/* positions per chunk: the rows that one pass of the product takes */
enum { PLACES = 128, PLACES_BF16 = 256 };

/* The product, prepared for one number of positions. */
typedef struct product {
    const att_kernel *kernel;
    att_problem problem; /* a linear_weight_grad problem; nobody reads its second output */
    att_desc in[IN], out[2];
    void *state;
    size_t scratch_bytes;
} product;

typedef struct columns {
    product whole, rest; /* whole: for `chunk` positions; rest: for the last ones */
    int64_t places, chunk, width, outputs;
    bool direct;
    size_t scratch_at; /* offset of the product's scratch, after the columns */
} columns;

static att_status prepare_product(const att_problem *problem, const columns *c, int64_t places, product *p)
{
    p->in[DY] = (att_desc){problem->in[DY].dtype, ATT_SAMPLE, att_shape_of(places, c->outputs)};
    p->in[X] = (att_desc){problem->in[X].dtype, ATT_SAMPLE, att_shape_of(places, c->width)};
    p->out[0] = (att_desc){problem->out[0].dtype, ATT_SUMMED, att_shape_of(c->outputs, c->width)};
    p->out[1] = (att_desc){problem->out[0].dtype, ATT_SUMMED, {.rank = -1}};
    p->problem = *problem;
    p->problem.op = "linear_weight_grad";
    p->problem.in = p->in;
    p->problem.out = p->out;
    p->problem.out_count = 2;
    p->problem.group = 1;
    const att_kernel *kernel = att_kernel_for(att_kernels_cpu, &p->problem);
    att_prepared prepared = {0};
    if (kernel->prepare)
        ATT_TRY(kernel->prepare(&p->problem, &prepared));
    p->kernel = kernel;
    p->state = prepared.state;
    p->scratch_bytes = prepared.scratch_bytes;
    return ATT_OK;
}

/* Does nothing if the product was not prepared. */
static void release_product(att_context *context, product *p)
{
    if (p->kernel && p->kernel->release)
        p->kernel->release(context, p->state);
}

static void release(att_context *context, void *state)
{
    columns *c = state;
    release_product(context, &c->whole);
    release_product(context, &c->rest);
    att_free(context, c);
}

static bool is_pointwise(const att_conv_attrs *attrs)
{
    return attrs->kernel_h == 1 && attrs->kernel_w == 1 && attrs->stride == 1 && attrs->padding == 0 &&
           attrs->groups == 1;
}

static void describe(const att_problem *problem, columns *c)
{
    const att_conv_attrs *attrs = problem->attrs;
    int64_t most = problem->in[X].dtype == ATT_BF16 ? PLACES_BF16 : PLACES;
    c->direct = is_pointwise(attrs);
    c->outputs = att_columns(&problem->in[DY]);
    c->width = att_columns(&problem->in[X]) * attrs->kernel_h * attrs->kernel_w;
    c->places = att_problem_count(problem, &problem->in[DY]) / c->outputs;
    c->chunk = c->direct || c->places < most ? c->places : most;
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    columns *c;
    ATT_TRY(att_new(problem->context, &c, 1, "a weight's gradient"));
    describe(problem, c);
    att_status status = prepare_product(problem, c, c->chunk, &c->whole);
    if (status == ATT_OK && c->places % c->chunk)
        status = prepare_product(problem, c, c->places % c->chunk, &c->rest);
    if (status != ATT_OK) {
        release(problem->context, c);
        return status;
    }
    size_t bytes = c->direct ? 0 : (size_t)(c->chunk * c->width) * att_dtype_size(problem->in[X].dtype);
    size_t a = c->whole.scratch_bytes, b = c->rest.scratch_bytes;
    c->scratch_at = (bytes + 63) / 64 * 64;
    *prepared = (att_prepared){.state = c, .scratch_bytes = c->scratch_at + (a > b ? a : b)};
    return ATT_OK;
}

/* --- columns ------------------------------------------------------------------------------------------------------ */

/* Copies the channels of one pixel of x, which begin at index `from`, to every `taps`-th element of `to`; writes zeros
 * if the pixel is outside the map. */
ATT_INLINE void spread_pixel(const void *x, int64_t from, int64_t channels, bool inside, void *to, int64_t tap,
                             int64_t taps, bool is_bf16)
{
    const uint16_t *x_bf16 = (const uint16_t *)x + (is_bf16 ? from : 0);
    const float *x_f32 = (const float *)x + (is_bf16 ? 0 : from);
    for (int64_t c = 0; c < channels; c++) {
        if (is_bf16)
            ((uint16_t *)to)[c * taps + tap] = inside ? x_bf16[c] : 0;
        else
            ((float *)to)[c * taps + tap] = inside ? x_f32[c] : 0;
    }
}

/* Writes the column of position (i, j) of a sample. */
ATT_INLINE void fill_place(const att_call *call, int64_t sample, int64_t i, int64_t j, void *to, bool is_bf16)
{
    const att_conv_attrs *attrs = call->problem->attrs;
    const int64_t *x = call->problem->in[X].shape.dims;
    int64_t taps = (int64_t)attrs->kernel_h * attrs->kernel_w;
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t row = i * attrs->stride - attrs->padding + tap / attrs->kernel_w * attrs->dilation;
        int64_t column = j * attrs->stride - attrs->padding + tap % attrs->kernel_w * attrs->dilation;
        bool inside = row >= 0 && row < x[0] && column >= 0 && column < x[1];
        spread_pixel(call->in[X], inside ? ((sample * x[0] + row) * x[1] + column) * x[2] : 0, x[2], inside, to, tap,
                     taps, is_bf16);
    }
}

ATT_INLINE void fill_as(const att_call *call, int64_t first, int64_t count, int64_t width, void *to, bool is_bf16)
{
    const int64_t *dy = call->problem->in[DY].shape.dims;
    for (int64_t place = first; place < first + count; place++) {
        int64_t row = place / dy[1];
        fill_place(call, row / dy[0], row % dy[0], place % dy[1], to, is_bf16);
        to = (char *)to + (size_t)width * att_float_size(is_bf16);
    }
}

/* Writes the columns of `count` positions from `first` on. */
static void fill(const att_call *call, int64_t first, int64_t count, int64_t width, void *to)
{
    if (att_is_bf16(&call->problem->in[X]))
        fill_as(call, first, count, width, to, true);
    else
        fill_as(call, first, count, width, to, false);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static att_status run_chunk(const att_call *call, const columns *c, int64_t first)
{
    int64_t count = c->places - first < c->chunk ? c->places - first : c->chunk;
    const product *p = count == c->chunk ? &c->whole : &c->rest;
    const void *dy = att_float_at(call->in[DY], first * c->outputs, att_is_bf16(&call->problem->in[DY]));
    const void *in[IN] = {dy, c->direct ? call->in[X] : call->scratch};
    void *out[] = {call->out[0], NULL};
    if (!c->direct)
        fill(call, first, count, c->width, call->scratch);
    att_call inner = *call;
    inner.problem = &p->problem;
    inner.in = in;
    inner.out = out;
    inner.state = p->state;
    inner.scratch = (char *)call->scratch + c->scratch_at;
    return p->kernel->run(&inner);
}

/* Parts share the outputs, as in a linear layer. Every part computes all columns. */
static att_status run(const att_call *call)
{
    const columns *c = call->state;
    for (int64_t first = 0; first < c->places; first += c->chunk)
        ATT_TRY(run_chunk(call, c, first));
    return ATT_OK;
}

/* Accepts the shapes for which this kernel is faster than oneDNN, measured on ResNet-50 and ResNet-164. oneDNN computes
 * gradients in its own layout and then adds them, which is slow for maps with few pixels per channel. Computing columns
 * is slow for few outputs. */
static bool accepts(const att_problem *problem)
{
    const att_conv_attrs *attrs = problem->attrs;
    int64_t outputs = att_columns(&problem->in[DY]), taps = (int64_t)attrs->kernel_h * attrs->kernel_w;
    bool is_worthwhile = taps == 1 || outputs >= 192 || (attrs->stride > 1 && outputs >= 128);
    return is_worthwhile && attrs->groups == 1;
}

ATT_CPU_KERNEL(conv2d_weight_grad_columns, "conv2d_weight_grad", "simd-columns", .f32 = true,
               .bf16_in = 1u << DY | 1u << X, .accepts = accepts, .prepare = prepare, .run = run, .release = release);
