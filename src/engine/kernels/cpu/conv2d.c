#include <math.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/kernels/cpu/conv_vectors.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/onednn_conv.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/activation.h"
#include "engine/ops/conv2d.h"

enum { X, WEIGHT, BIAS, RESIDUAL, GAMMA, BETA, MEAN, VARIANCE }; /* inputs of conv2d and conv_transpose2d */
enum { DY, GRAD_RESIDUAL = 2, RELU_OUTPUT, POOLED };             /* inputs of conv2d_data_grad, besides WEIGHT */

/* The op. A transposed convolution is computed as a data gradient, and finished as a convolution. */
typedef enum conv_role { CONV, TRANSPOSED, DATA_GRAD } conv_role;

/* Block size in elements for everything after the convolution, so that its input is still cached: of whole samples, at
 * least one, and of slices of a sample, at least one row. */
enum { BLOCK_ELEMENTS = 1 << 18, SLICE_ELEMENTS = 1 << 16 };

/* A call's work. The group is split into pieces of `samples` samples, the last one possibly smaller. Where slices_of()
 * says so, each sample is split into `slices` slices of rows of y instead, and of the rows of x that belong to them. */
typedef struct conv2d {
    conv_role role;
    const att_tier_functions *functions;
    att_conv_spec spec;                 /* of a piece of whole samples */
    int64_t group, slices, pieces;      /* pieces: number of all pieces or slices */
    int64_t from_elements, to_elements; /* elements of one row of a sample's map */
    att_dtype from, to;                 /* types of the convolution's input and output */
    /* widened: operands are bf16, the convolution runs in f32. finishes: a step follows the convolution. sums: the f32
     * result of the convolution is in scratch. */
    bool widened, finishes, sums, relu;
    size_t from_at, sums_at, vectors_at; /* offsets: of the widened input and of the sums in scratch; of the factors for
                                            finish_channels() in packed memory */
    int convs;
    att_conv *conv[]; /* one per slice; or one for all pieces and one for a smaller last piece */
} conv2d;

/* --- description-------------------------------------------------------------------------------------------------- */

static att_conv_spec spec_of(const att_problem *problem, conv_role role)
{
    const att_conv_attrs *attrs = problem->attrs;
    bool forward = role == CONV;
    const int64_t *x = (forward ? &problem->in[X] : &problem->out[0])->shape.dims;
    const int64_t *y = (forward ? &problem->out[0] : &problem->in[DY])->shape.dims;
    const int64_t *weight = problem->in[WEIGHT].shape.dims;
    return (att_conv_spec){.kind = forward ? ATT_CONV_FORWARD : ATT_CONV_DATA_GRAD,
                           .height = x[0],
                           .width = x[1],
                           .inputs = x[2],
                           .out_h = y[0],
                           .out_w = y[1],
                           .outputs = y[2],
                           .kernel_h = weight[2],
                           .kernel_w = weight[3],
                           .stride = attrs->stride,
                           .dilation = attrs->dilation,
                           .groups = attrs->groups,
                           .above = attrs->padding,
                           .left = attrs->padding,
                           .plain = role == DATA_GRAD};
}

/* Channels of the output. */
static int64_t channels_of(const conv2d *c)
{
    return c->role == CONV ? c->spec.outputs : c->spec.inputs;
}

static int64_t rows_of_window(const att_conv_spec *spec)
{
    return spec->dilation * (spec->kernel_h - 1) + 1;
}

/* Number of slices: for a convolution as many as there are parts for a sample. Every window must contain a row of x, so
 * that no slice is without rows. If windows do not overlap, rows of dx can be sliced, too, into blocks. */
static int64_t slices_of(const att_problem *problem, const att_conv_spec *spec)
{
    int64_t needed = (problem->parts + problem->group - 1) / problem->group;
    int64_t blocks = (spec->height * spec->width * spec->inputs + SLICE_ELEMENTS - 1) / SLICE_ELEMENTS;
    if (spec->kind == ATT_CONV_FORWARD ? spec->above >= rows_of_window(spec) : !att_conv_is_apart(spec))
        return 1;
    if (spec->kind != ATT_CONV_FORWARD && blocks > needed)
        needed = blocks;
    return needed < spec->out_h ? needed : spec->out_h;
}

/* Elements of one sample of the output. */
static int64_t sample_elements(const conv2d *c)
{
    return c->to_elements * (c->spec.kind == ATT_CONV_FORWARD ? c->spec.out_h : c->spec.height);
}

static int64_t sample_elements_before(const conv2d *c)
{
    return c->from_elements * (c->spec.kind == ATT_CONV_FORWARD ? c->spec.height : c->spec.out_h);
}

static void split_samples(const att_problem *problem, conv2d *c)
{
    int64_t group = problem->group, each = sample_elements(c);
    int64_t samples = (group + problem->parts - 1) / problem->parts;
    if (c->finishes && samples * each > BLOCK_ELEMENTS)
        samples = BLOCK_ELEMENTS / each > 1 ? BLOCK_ELEMENTS / each : 1;
    c->group = group;
    c->spec.samples = c->slices > 1 ? 1 : samples;
    c->pieces = c->slices > 1 ? group * c->slices : (group + samples - 1) / samples;
}

static void describe(const att_problem *problem, conv_role role, bool widened, conv2d *c)
{
    bool forward = role == CONV;
    c->role = role;
    c->spec = spec_of(problem, role);
    c->functions = att_cpu_functions(problem->context);
    c->from = problem->in[0].dtype;
    c->to = problem->out[0].dtype;
    c->widened = widened;
    c->relu = role != DATA_GRAD && ATT_ATTRS(problem, conv)->activation == ATT_ACT_RELU;
    bool after = c->relu;
    for (int i = WEIGHT + 1; i < problem->in_count; i++)
        after |= att_desc_present(&problem->in[i]);
    c->finishes = after || (c->widened && c->to == ATT_BF16);
    c->sums = c->finishes && c->to == ATT_BF16;
    c->spec.dtype = c->widened ? ATT_F32 : c->from;
    c->spec.to = c->sums ? ATT_F32 : c->to;
    int64_t x = c->spec.width * c->spec.inputs, y = c->spec.out_w * c->spec.outputs;
    c->from_elements = forward ? x : y;
    c->to_elements = forward ? y : x;
}

/* Rows [begin, end) of y, and the rows of x that they read. */
typedef struct slice {
    int64_t begin, end, from, above, height;
} slice;

static slice slice_of(const conv2d *c, int64_t number)
{
    const att_conv_spec *spec = &c->spec;
    slice s = {.begin = spec->out_h * number / c->slices, .end = spec->out_h * (number + 1) / c->slices};
    int64_t first = s.begin * spec->stride - spec->above;
    int64_t last = (s.end - 1) * spec->stride - spec->above + rows_of_window(spec);
    s.from = first > 0 ? first : 0;
    s.above = s.from - first;
    s.height = (last < spec->height ? last : spec->height) - s.from;
    return s;
}

/* One piece: reads `elements` elements of the input from index `from`, writes `out_elements` elements of the output
 * from index `to`. */
typedef struct piece {
    const att_conv *conv;
    int64_t from, elements, to, out_elements;
} piece;

static piece piece_of(const conv2d *c, int64_t number)
{
    const att_conv_spec *spec = &c->spec;
    int64_t from = sample_elements_before(c), to = sample_elements(c);
    if (c->slices > 1) {
        int64_t sample = number / c->slices;
        slice s = slice_of(c, number % c->slices);
        int64_t rows = s.end - s.begin;
        bool forward = c->role == CONV;
        return (piece){c->conv[number % c->slices], sample * from + (forward ? s.from : s.begin) * c->from_elements,
                       (forward ? s.height : rows) * c->from_elements,
                       sample * to + (forward ? s.begin : s.from) * c->to_elements,
                       (forward ? rows : s.height) * c->to_elements};
    }
    int64_t first = number * spec->samples, left = c->group - first;
    int64_t samples = left < spec->samples ? left : spec->samples;
    return (piece){c->conv[samples < spec->samples], first * from, samples * from, first * to, samples * to};
}

/* --- preparing---------------------------------------------------------------------------------------------------- */

static att_status make_convs(const att_problem *problem, conv2d *c, int count)
{
    for (; c->convs < count; c->convs++) {
        att_conv_spec spec = c->spec;
        spec.layout_of = c->convs > 0 ? c->conv[0] : NULL;
        if (c->slices > 1) {
            slice s = slice_of(c, c->convs);
            spec.out_h = s.end - s.begin;
            spec.height = s.height;
            spec.above = s.above;
        } else if (c->convs > 0) {
            spec.samples = c->group - (c->pieces - 1) * c->spec.samples;
        }
        ATT_TRY(att_conv_create(problem->context, &spec, &c->conv[c->convs]));
    }
    return ATT_OK;
}

static void release(att_context *context, void *state)
{
    conv2d *c = state;
    while (c->convs > 0)
        att_conv_destroy(context, c->conv[--c->convs]);
    att_free(context, c);
}

static size_t take(size_t *top, size_t bytes)
{
    size_t at = (*top + 63) / 64 * 64;
    *top = at + bytes;
    return at;
}

static void lay_out(const att_problem *problem, conv2d *c, att_prepared *prepared)
{
    const att_conv_spec *spec = &c->spec;
    int64_t from = 0, to = 0;
    size_t top = 0;
    for (int i = 0; i < c->convs; i++) {
        size_t bytes = att_conv_scratch_bytes(c->conv[i]);
        top = bytes > top ? bytes : top;
    }
    for (int64_t i = 0; i < c->slices; i++) {
        piece p = piece_of(c, i);
        from = p.elements > from ? p.elements : from;
        to = p.out_elements > to ? p.out_elements : to;
    }
    c->from_at = take(&top, c->widened ? (size_t)from * sizeof(float) : 0);
    c->sums_at = take(&top, c->sums ? (size_t)to * sizeof(float) : 0);
    prepared->scratch_bytes = top;
    if (!att_conv_is_packed(spec))
        return;
    prepared->packed_key = att_conv_vectors_key(problem, att_conv_packed_key(c->conv[0]), c->finishes);
    prepared->packed_bytes = att_conv_packed_bytes(c->conv[0]);
    c->vectors_at = take(&prepared->packed_bytes, c->finishes ? 2 * (size_t)channels_of(c) * sizeof(float) : 0);
}

static att_status prepare_as(const att_problem *problem, conv_role role, bool widened, att_prepared *prepared)
{
    att_conv_spec whole = spec_of(problem, role);
    int64_t slices = slices_of(problem, &whole);
    size_t most = slices > 2 ? (size_t)slices : 2, bytes = sizeof(conv2d) + most * sizeof(att_conv *);
    conv2d *c = att_allocate(problem->context, bytes);
    if (!c)
        return att_fail_memory(problem->context, bytes, "a convolution");
    c->slices = slices;
    describe(problem, role, widened, c);
    split_samples(problem, c);
    bool even = c->group % c->spec.samples == 0;
    att_status status = make_convs(problem, c, slices > 1 ? (int)slices : even ? 1 : 2);
    if (status != ATT_OK) {
        release(problem->context, c);
        return status;
    }
    prepared->state = c;
    lay_out(problem, c, prepared);
    return ATT_OK;
}

/* If oneDNN has no bf16 convolution, although the processor supports bf16, the operands are widened to f32. */
static att_status prepare_role(const att_problem *problem, conv_role role, att_prepared *prepared)
{
    bool is_bf16 = problem->in[0].dtype == ATT_BF16, has_bf16 = att_context_has_bf16(problem->context);
    att_status status = prepare_as(problem, role, is_bf16 && !has_bf16, prepared);
    return status == ATT_ERR_UNSUPPORTED && is_bf16 && has_bf16 ? prepare_as(problem, role, true, prepared) : status;
}

/* --- packing ------------------------------------------------------------------------------------------------------ */

static att_status pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    const conv2d *c = state;
    if (c->finishes && c->role != DATA_GRAD) {
        float *vectors = (float *)((char *)packed + c->vectors_at);
        att_conv_fill_vectors(problem, in, vectors, vectors + channels_of(c));
    }
    return att_conv_pack(c->conv[0], in[WEIGHT], packed);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* Element `from` of input i; NULL if the input is absent. */
static const void *input_at(const att_call *call, int i, int64_t from)
{
    return call->in[i] ? att_float_at(call->in[i], from, att_is_bf16(&call->problem->in[i])) : NULL;
}

/* Finishes elements [first, first + count) of the output; with a pooled vector they belong to one sample. */
static void finish_gradient(const att_call *call, const conv2d *c, int64_t first, int64_t count, const float *sums,
                            void *y)
{
    const att_desc *in = call->problem->in;
    const float *pooled = call->in[POOLED];
    int64_t channels = c->spec.inputs, each = sample_elements(c);
    att_gradient_form form = {.residual = input_at(call, GRAD_RESIDUAL, first),
                              .relu_output = input_at(call, RELU_OUTPUT, first),
                              .residual_is_bf16 = att_is_bf16(&in[GRAD_RESIDUAL]),
                              .relu_output_is_bf16 = att_is_bf16(&in[RELU_OUTPUT]),
                              .is_bf16 = c->sums,
                              .pooled = pooled ? pooled + first / each * channels : NULL,
                              .share = (float)channels / (float)each};
    c->functions->finish_gradient(sums, &form, count / channels, channels, y);
}

static void finish(const att_call *call, const conv2d *c, const piece *p, const float *sums, void *y)
{
    if (c->role == DATA_GRAD) {
        int64_t each = call->in[POOLED] && c->slices == 1 ? sample_elements(c) : p->out_elements;
        for (int64_t at = 0; at < p->out_elements; at += each)
            finish_gradient(call, c, p->to + at, each, sums + at, (char *)y + (size_t)at * att_dtype_size(c->to));
        return;
    }
    const float *vectors = (const float *)((const char *)call->packed + c->vectors_at);
    int64_t channels = channels_of(c);
    c->functions->finish_channels(sums, vectors, vectors + channels, input_at(call, RESIDUAL, p->to),
                                  att_is_bf16(&call->problem->in[RESIDUAL]), c->relu ? 0 : -INFINITY,
                                  p->out_elements / channels, channels, y, c->sums);
}

static att_status run_piece(const att_call *call, const conv2d *c, int64_t number)
{
    piece p = piece_of(c, number);
    const void *from = att_float_at(call->in[0], p.from, c->from == ATT_BF16);
    char *y = (char *)call->out[0] + (size_t)p.to * att_dtype_size(c->to);
    void *sums = c->sums ? (char *)call->scratch + c->sums_at : y;
    if (c->widened) {
        float *wide = (float *)((char *)call->scratch + c->from_at);
        c->functions->widen(from, p.elements, wide);
        from = wide;
    }
    const void *weight = call->packed ? call->packed : call->in[WEIGHT];
    ATT_TRY(att_conv_run(p.conv, from, weight, sums, call->scratch));
    if (c->finishes)
        finish(call, c, &p, sums, y);
    return ATT_OK;
}

static att_status run(const att_call *call)
{
    const conv2d *c = call->state;
    att_range part = att_part_of(call, c->pieces, 1);
    for (int64_t number = part.begin; number < part.end; number++)
        ATT_TRY(run_piece(call, c, number));
    return ATT_OK;
}

static bool takes_bf16(const att_problem *problem)
{
    return problem->in[0].dtype == ATT_BF16;
}

static att_status prepare_forward(const att_problem *problem, att_prepared *prepared)
{
    return prepare_role(problem, CONV, prepared);
}

static att_status prepare_transposed(const att_problem *problem, att_prepared *prepared)
{
    return prepare_role(problem, TRANSPOSED, prepared);
}

static att_status prepare_data_grad(const att_problem *problem, att_prepared *prepared)
{
    return prepare_role(problem, DATA_GRAD, prepared);
}

#define KERNEL(symbol, op, name, prepare_, ...)                                                                      \
    ATT_CPU_KERNEL(symbol, op, name, .f32 = true, .prepare = prepare_, .pack = pack, .run = run, .release = release, \
                   .packed_in = 1u << WEIGHT, __VA_ARGS__);
#define FORWARD_BF16 .bf16_in = 1u << X | 1u << RESIDUAL, .bf16_out = 1, .accepts = takes_bf16
#define GRAD_BF16 .bf16_in = 1u << DY | 1u << GRAD_RESIDUAL | 1u << RELU_OUTPUT, .bf16_out = 1, .accepts = takes_bf16

KERNEL(conv2d, "conv2d", "onednn", prepare_forward, .features = 0)
KERNEL(conv2d_bf16, "conv2d", "onednn-bf16", prepare_forward, .features = ATT_AVX512_BF16, FORWARD_BF16)
/* For processors without bf16 products; slower than f32. */
KERNEL(conv2d_widened, "conv2d", "onednn-widened", prepare_forward, FORWARD_BF16)
KERNEL(conv_transpose2d, "conv_transpose2d", "onednn", prepare_transposed, .features = 0)
KERNEL(conv_transpose2d_bf16, "conv_transpose2d", "onednn-bf16", prepare_transposed, .features = ATT_AVX512_BF16,
       FORWARD_BF16)
KERNEL(conv_transpose2d_widened, "conv_transpose2d", "onednn-widened", prepare_transposed, FORWARD_BF16)
KERNEL(conv2d_data_grad, "conv2d_data_grad", "onednn", prepare_data_grad, .features = 0)
KERNEL(conv2d_data_grad_bf16, "conv2d_data_grad", "onednn-bf16", prepare_data_grad, .features = ATT_AVX512_BF16,
       GRAD_BF16)
KERNEL(conv2d_data_grad_widened, "conv2d_data_grad", "onednn-widened", prepare_data_grad, GRAD_BF16)
