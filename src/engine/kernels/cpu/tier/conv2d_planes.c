#include "engine/kernels/cpu/conv_vectors.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/activation.h"
#include "engine/ops/conv2d.h"

/* Convolutions between few maps, such as the 7 x 7 convolution over a mean and a maximum in pixel attention. With so
 * few channels, vectors hold pixels instead: each map becomes a padded plane, and each output is a sum of shifted rows.
 * The data gradient is the same computation with the kernel rotated. The weight gradient is a sum of products with
 * shifted rows. */
enum { MOST_MAPS = 4, ROWS = 4, MOST_TAPS = 7 };

enum { WEIGHT = ATT_CONV_WEIGHT };

typedef struct planes {
    bool back;
    int64_t inputs, outputs, height, width; /* height, width: of the input */
    int64_t out_h, out_w, kernel_h, kernel_w;
    int64_t above, left; /* padding */
    int64_t row, rows;   /* size of a padded plane */
} planes;

static planes planes_of(const att_problem *problem, bool back)
{
    const int64_t *from = problem->in[0].shape.dims, *to = problem->out[0].shape.dims;
    const int64_t *kernel = problem->in[WEIGHT].shape.dims + 2;
    int64_t padding = ATT_ATTRS(problem, conv)->padding;
    return (planes){.back = back,
                    .inputs = from[2],
                    .outputs = to[2],
                    .height = from[0],
                    .width = from[1],
                    .out_h = to[0],
                    .out_w = to[1],
                    .kernel_h = kernel[0],
                    .kernel_w = kernel[1],
                    .above = back ? kernel[0] - 1 - padding : padding,
                    .left = back ? kernel[1] - 1 - padding : padding,
                    .row = whole_vectors(to[1]) + kernel[1] - 1,
                    .rows = to[0] + kernel[0] - 1};
}

/* Whether the problem has an operand that this kernel does not support: a residual, a pooled gradient, or the output of
 * a ReLU that masks the data gradient. */
static bool adds(const att_problem *problem, bool back)
{
    enum { GRAD_RESIDUAL = 2, RELU_OUTPUT, POOLED };
    const att_desc *in = problem->in;
    return back ? att_desc_present(&in[GRAD_RESIDUAL]) || att_desc_present(&in[RELU_OUTPUT]) ||
                      att_desc_present(&in[POOLED])
                : att_desc_present(&in[ATT_CONV_RESIDUAL]);
}

static bool accepts(const att_problem *problem, bool back)
{
    const att_conv_attrs *attrs = problem->attrs;
    planes p = planes_of(problem, back);
    return p.inputs <= MOST_MAPS && p.outputs <= MOST_MAPS && attrs->stride == 1 && attrs->dilation == 1 &&
           attrs->groups == 1 && p.above >= 0 && p.left >= 0 && !adds(problem, back);
}

static bool forward_accepts(const att_problem *problem)
{
    return accepts(problem, false);
}

static bool back_accepts(const att_problem *problem)
{
    return accepts(problem, true);
}

/* --- packing: [output][input][row][column], factors, addends------------------------------------------------------ */

static int64_t weights_of(const planes *p)
{
    return p->outputs * p->inputs * p->kernel_h * p->kernel_w;
}

static att_status prepare(const att_problem *problem, bool back, att_prepared *prepared)
{
    planes p = planes_of(problem, back);
    prepared->scratch_bytes = (size_t)(p.inputs * p.rows * p.row) * sizeof(float);
    prepared->packed_bytes = (size_t)(weights_of(&p) + 2 * p.outputs) * sizeof(float);
    prepared->packed_key = att_conv_vectors_key(problem, VW, back);
    return ATT_OK;
}

static att_status forward_prepare(const att_problem *problem, att_prepared *prepared)
{
    return prepare(problem, false, prepared);
}

static att_status back_prepare(const att_problem *problem, att_prepared *prepared)
{
    return prepare(problem, true, prepared);
}

static att_status forward_pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)state;
    planes p = planes_of(problem, false);
    float *scale = (float *)packed + weights_of(&p);
    memcpy(packed, in[WEIGHT], (size_t)weights_of(&p) * sizeof(float));
    att_conv_fill_vectors(problem, in, scale, scale + p.outputs);
    return ATT_OK;
}

static att_status back_pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)state;
    planes p = planes_of(problem, true);
    int64_t taps = p.kernel_h * p.kernel_w;
    const float *weight = in[WEIGHT];
    float *to = packed, *scale = to + weights_of(&p);
    for (int64_t o = 0; o < p.outputs; o++) {
        for (int64_t i = 0; i < p.inputs; i++)
            for (int64_t tap = 0; tap < taps; tap++)
                *to++ = weight[(i * p.outputs + o) * taps + taps - 1 - tap];
        scale[o] = 1;
        scale[p.outputs + o] = 0;
    }
    return ATT_OK;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* Writes a sample's maps as padded planes. */
static void spread_planes(const planes *p, const void *x, int64_t first, bool is_bf16, float *to)
{
    memset(to, 0, (size_t)(p->inputs * p->rows * p->row) * sizeof *to);
    for (int64_t map = 0; map < p->inputs; map++)
        for (int64_t i = 0; i < p->height && p->above + i < p->rows; i++) {
            float *line = to + (map * p->rows + p->above + i) * p->row + p->left;
            int64_t from = first + i * p->width * p->inputs + map;
            for (int64_t j = 0; j < p->width && p->left + j < p->row; j++)
                line[j] = att_float_get(x, from + j * p->inputs, is_bf16);
        }
}

/* Sums for a vector of pixels in each of `rows` rows. */
ATT_INLINE void sum_rows(const planes *p, int rows, const float *plane, const float *weight, vf sum[ROWS])
{
    for (int r = 0; r < rows; r++)
        sum[r] = (vf){0};
    for (int64_t map = 0; map < p->inputs; map++, plane += p->rows * p->row)
        for (int64_t i = 0; i < p->kernel_h; i++)
            for (int64_t j = 0; j < p->kernel_w; j++, weight++)
                for (int r = 0; r < rows; r++)
                    sum[r] = v_fma(v_set(*weight), v_load(plane + (i + r) * p->row + j), sum[r]);
}

/* Stores output `o` of `count` pixels. */
static void put(const planes *p, vf value, void *y, int64_t pixel, int64_t count, int64_t o, bool is_bf16)
{
    if (p->outputs == 1) {
        v_put_until(y, pixel, pixel + count, value, is_bf16);
        return;
    }
    float lane[VW];
    v_store(lane, value);
    for (int64_t j = 0; j < count && j < VW; j++)
        att_float_put(y, (pixel + j) * p->outputs + o, lane[j], is_bf16);
}

ATT_INLINE void run_rows(const att_call *call, const planes *p, int rows, int64_t sample, int64_t row)
{
    bool is_bf16 = att_is_bf16(&call->problem->out[0]);
    bool relu = !p->back && ATT_ATTRS(call->problem, conv)->activation == ATT_ACT_RELU;
    const float *weight = call->packed, *scale = weight + weights_of(p), *plane = call->scratch;
    vf sum[ROWS], least = v_set(relu ? 0 : -INFINITY);
    for (int64_t o = 0; o < p->outputs; o++, weight += p->inputs * p->kernel_h * p->kernel_w)
        for (int64_t j = 0; j < p->out_w; j += VW) {
            sum_rows(p, rows, plane + row * p->row + j, weight, sum);
            for (int r = 0; r < rows; r++) {
                vf value = v_max(least, v_fma(sum[r], v_set(scale[o]), v_set(scale[p->outputs + o])));
                put(p, value, call->out[0], (sample * p->out_h + row + r) * p->out_w + j, p->out_w - j, o, is_bf16);
            }
        }
}

/* Parts share the rows of each sample. */
static att_status run(const att_call *call, bool back)
{
    planes p = planes_of(call->problem, back);
    att_range part = att_part_of(call, p.out_h, ROWS);
    for (int64_t sample = 0; sample < call->problem->group && part.begin < part.end; sample++) {
        spread_planes(&p, call->in[0], sample * p.height * p.width * p.inputs, att_is_bf16(&call->problem->in[0]),
                      call->scratch);
        int64_t row = part.begin;
        for (; row + ROWS <= part.end; row += ROWS)
            run_rows(call, &p, ROWS, sample, row);
        for (; row < part.end; row++)
            run_rows(call, &p, 1, sample, row);
    }
    return ATT_OK;
}

static att_status forward_run(const att_call *call)
{
    return run(call, false);
}

static att_status back_run(const att_call *call)
{
    return run(call, true);
}

#define KERNEL(op, which)                                                                         \
    ATT_TIER_KERNEL(op##_planes, #op, "simd-planes", .f32 = true, .bf16_in = 1, .bf16_out = 1,    \
                    .accepts = which##_accepts, .prepare = which##_prepare, .pack = which##_pack, \
                    .packed_in = 1u << WEIGHT, .run = which##_run);

KERNEL(conv2d, forward)
KERNEL(conv2d_data_grad, back)

/* --- weight gradient---------------------------------------------------------------------------------------------- */

enum { DY, DATA };

/* x: planes as in the forward pass. dy: planes of the gradient; their rows are whole vectors. */
typedef struct weight_planes {
    planes x, dy;
} weight_planes;

static weight_planes weight_planes_of(const att_problem *problem)
{
    const att_conv_attrs *attrs = problem->attrs;
    const int64_t *x = problem->in[DATA].shape.dims, *dy = problem->in[DY].shape.dims;
    int64_t row = whole_vectors(dy[1]);
    return (weight_planes){.x = {.inputs = x[2],
                                 .outputs = dy[2],
                                 .height = x[0],
                                 .width = x[1],
                                 .out_h = dy[0],
                                 .out_w = dy[1],
                                 .kernel_h = attrs->kernel_h,
                                 .kernel_w = attrs->kernel_w,
                                 .above = attrs->padding,
                                 .left = attrs->padding,
                                 .row = row + attrs->kernel_w - 1,
                                 .rows = dy[0] + attrs->kernel_h - 1},
                           .dy = {.inputs = dy[2], .height = dy[0], .width = dy[1], .row = row, .rows = dy[0]}};
}

static bool weight_accepts(const att_problem *problem)
{
    const att_conv_attrs *attrs = problem->attrs;
    return att_columns(&problem->in[DATA]) <= MOST_MAPS && att_columns(&problem->in[DY]) <= MOST_MAPS &&
           attrs->stride == 1 && attrs->dilation == 1 && attrs->groups == 1;
}

static int64_t plane_elements(const planes *p)
{
    return p->inputs * p->rows * p->row;
}

/* Scratch: a vector of sums per weight, and the planes of a sample. */
static att_status weight_prepare(const att_problem *problem, att_prepared *prepared)
{
    weight_planes p = weight_planes_of(problem);
    int64_t floats = weights_of(&p.x) * VW + plane_elements(&p.x) + plane_elements(&p.dy);
    prepared->scratch_bytes = (size_t)floats * sizeof(float);
    return ATT_OK;
}

/* Adds to the sums of `taps` adjacent weights. x: the first row that the first of these weights reads. */
ATT_INLINE void add_taps(const planes *p, int taps, const float *dy, const float *x, float *sums)
{
    vf sum[MOST_TAPS];
    for (int tap = 0; tap < taps; tap++)
        sum[tap] = v_load(sums + tap * VW);
    for (int64_t i = 0; i < p->out_h; i++)
        for (int64_t j = 0; j < p->out_w; j += VW) {
            vf factor = v_load(dy + i * whole_vectors(p->out_w) + j);
            for (int tap = 0; tap < taps; tap++)
                sum[tap] = v_fma(factor, v_load(x + i * p->row + j + tap), sum[tap]);
        }
    for (int tap = 0; tap < taps; tap++)
        v_store(sums + tap * VW, sum[tap]);
}

/* Adds to the sums of one row of the window, for several taps at a time, because their sums are independent. */
static void add_window_row(const planes *p, const float *dy, const float *x, float *sums)
{
    int64_t tap = 0;
    for (; tap + MOST_TAPS <= p->kernel_w; tap += MOST_TAPS)
        add_taps(p, MOST_TAPS, dy, x + tap, sums + tap * VW);
    for (; tap + 3 <= p->kernel_w; tap += 3)
        add_taps(p, 3, dy, x + tap, sums + tap * VW);
    for (; tap < p->kernel_w; tap++)
        add_taps(p, 1, dy, x + tap, sums + tap * VW);
}

/* Adds a sample's planes to the part's rows of windows: [output][input][row]. */
static void add_sample(const weight_planes *p, const float *x, const float *dy, att_range part, float *sums)
{
    for (int64_t at = part.begin; at < part.end; at++) {
        int64_t row = at % p->x.kernel_h, map = at / p->x.kernel_h;
        add_window_row(&p->x, dy + map / p->x.inputs * p->dy.rows * p->dy.row,
                       x + (map % p->x.inputs * p->x.rows + row) * p->x.row, sums + at * p->x.kernel_w * VW);
    }
}

/* Parts share the rows of windows. */
static att_status weight_run(const att_call *call)
{
    weight_planes p = weight_planes_of(call->problem);
    att_range part = att_part_of(call, p.x.outputs * p.x.inputs * p.x.kernel_h, 1);
    float *sums = call->scratch, *x = sums + weights_of(&p.x) * VW, *dy = x + plane_elements(&p.x), *dw = call->out[0];
    memset(sums, 0, (size_t)(weights_of(&p.x) * VW) * sizeof *sums);
    for (int64_t sample = 0; sample < call->problem->group && part.begin < part.end; sample++) {
        spread_planes(&p.x, call->in[DATA], sample * p.x.height * p.x.width * p.x.inputs,
                      att_is_bf16(&call->problem->in[DATA]), x);
        spread_planes(&p.dy, call->in[DY], sample * p.dy.height * p.dy.width * p.dy.inputs,
                      att_is_bf16(&call->problem->in[DY]), dy);
        add_sample(&p, x, dy, part, sums);
    }
    for (int64_t i = part.begin * p.x.kernel_w; i < part.end * p.x.kernel_w; i++)
        dw[i] += v_sum(v_load(sums + i * VW));
    return ATT_OK;
}

ATT_TIER_KERNEL(conv2d_weight_grad_planes, "conv2d_weight_grad", "simd-planes", .f32 = true,
                .bf16_in = 1u << DY | 1u << DATA, .accepts = weight_accepts, .prepare = weight_prepare,
                .run = weight_run);
