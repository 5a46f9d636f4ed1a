#include <math.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/activation.h"
#include "engine/ops/conv2d.h"

enum { X, WEIGHT, BIAS, RESIDUAL, GAMMA, BETA, MEAN, VARIANCE };

/* Sizes of a convolution: x [group, height, width, inputs], y [group, out_h, out_w, outputs], weight [outputs, seen,
 * kernel_h, kernel_w]; seen: input channels per output. */
typedef struct conv {
    const att_conv_attrs *attrs;
    int64_t group, height, width, inputs, out_h, out_w, outputs, seen, kernel_h, kernel_w;
} conv;

static conv conv_of(const att_call *call, const att_desc *x, const att_desc *y, const att_desc *weight)
{
    return (conv){call->problem->attrs,  call->problem->group,  x->shape.dims[0],     x->shape.dims[1],
                  x->shape.dims[2],      y->shape.dims[0],      y->shape.dims[1],     y->shape.dims[2],
                  weight->shape.dims[1], weight->shape.dims[2], weight->shape.dims[3]};
}

static int64_t weight_at(const conv *c, int64_t output, int64_t channel, int64_t u, int64_t v)
{
    return ((output * c->seen + channel) * c->kernel_h + u) * c->kernel_w + v;
}

/* The first channel of x that `output` reads. */
static int64_t first_channel(const conv *c, int64_t output)
{
    return output / (c->outputs / c->attrs->groups) * c->seen;
}

/* The element of channel 0 of x that tap (u, v) of position (i, j) of y reads; -1 in the padding. */
static int64_t pixel_at(const conv *c, int64_t sample, int64_t i, int64_t j, int64_t u, int64_t v)
{
    int64_t row = i * c->attrs->stride + u * c->attrs->dilation - c->attrs->padding;
    int64_t column = j * c->attrs->stride + v * c->attrs->dilation - c->attrs->padding;
    if (row < 0 || row >= c->height || column < 0 || column >= c->width)
        return -1;
    return ((sample * c->height + row) * c->width + column) * c->inputs;
}

static double bias_of(const att_call *call, int64_t output)
{
    return ref_has(call, BIAS) ? ref_in(call, BIAS, output) : 0;
}

static double sum_of(const att_call *call, const conv *c, int64_t sample, int64_t i, int64_t j, int64_t output)
{
    double sum = bias_of(call, output);
    int64_t first = first_channel(c, output);
    for (int64_t u = 0; u < c->kernel_h; u++)
        for (int64_t v = 0; v < c->kernel_w; v++) {
            int64_t pixel = pixel_at(c, sample, i, j, u, v);
            for (int64_t k = 0; pixel >= 0 && k < c->seen; k++)
                sum += ref_in(call, X, pixel + first + k) * ref_in(call, WEIGHT, weight_at(c, output, k, u, v));
        }
    return sum;
}

static double finished(const att_call *call, double y, int64_t output, int64_t e)
{
    const att_conv_attrs *attrs = call->problem->attrs;
    if (ref_has(call, GAMMA))
        y = (y - ref_in(call, MEAN, output)) / sqrt(ref_in(call, VARIANCE, output) + attrs->eps) *
                ref_in(call, GAMMA, output) +
            ref_in(call, BETA, output);
    if (ref_has(call, RESIDUAL))
        y += ref_in(call, RESIDUAL, e);
    return attrs->activation == ATT_ACT_RELU && y < 0 ? 0 : y;
}

static att_status run_conv2d(const att_call *call)
{
    const att_problem *problem = call->problem;
    conv c = conv_of(call, &problem->in[X], &problem->out[0], &problem->in[WEIGHT]);
    ref_range places = ref_share(call, c.group * c.out_h * c.out_w);
    for (int64_t place = places.begin; place < places.end; place++) {
        int64_t j = place % c.out_w, i = place / c.out_w % c.out_h, sample = place / (c.out_w * c.out_h);
        for (int64_t o = 0; o < c.outputs; o++) {
            int64_t e = place * c.outputs + o;
            ref_out(call, 0, e, finished(call, sum_of(call, &c, sample, i, j, o), o, e));
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_conv2d = {.op = "conv2d", .name = "ref", .run = run_conv2d};

/* --- gradients ---------------------------------------------------------------------------------------------------- */

enum { DY, X_OF_GRAD = 1 };

/* The row (or column) of y whose tap `u` reads row (or column) `at` of x; -1 if there is none. */
static int64_t place_of(const att_conv_attrs *attrs, int64_t at, int64_t u, int64_t places)
{
    int64_t distance = at + attrs->padding - u * attrs->dilation;
    return distance >= 0 && distance % attrs->stride == 0 && distance / attrs->stride < places
               ? distance / attrs->stride
               : -1;
}

static double data_grad_at(const att_call *call, const conv *c, int64_t sample, int64_t row, int64_t column,
                           int64_t channel)
{
    int64_t outputs = c->outputs / c->attrs->groups, first = channel / c->seen * outputs;
    double sum = 0;
    for (int64_t u = 0; u < c->kernel_h; u++)
        for (int64_t v = 0; v < c->kernel_w; v++) {
            int64_t i = place_of(c->attrs, row, u, c->out_h), j = place_of(c->attrs, column, v, c->out_w);
            if (i < 0 || j < 0)
                continue;
            int64_t dy = ((sample * c->out_h + i) * c->out_w + j) * c->outputs;
            for (int64_t o = first; o < first + outputs; o++)
                sum += ref_in(call, DY, dy + o) * ref_in(call, WEIGHT, weight_at(c, o, channel % c->seen, u, v));
        }
    return sum;
}

static double finished_gradient(const att_call *call, const conv *c, int64_t sample, double dx, int64_t e)
{
    enum { RESIDUAL_OF_GRAD = 2, RELU_OUTPUT, POOLED };
    if (ref_has(call, RESIDUAL_OF_GRAD))
        dx += ref_in(call, RESIDUAL_OF_GRAD, e);
    if (ref_has(call, POOLED))
        dx += ref_in(call, POOLED, sample * c->inputs + e % c->inputs) / (double)(c->height * c->width);
    return ref_has(call, RELU_OUTPUT) && !(ref_in(call, RELU_OUTPUT, e) > 0) ? 0 : dx;
}

/* The gradient of x, or a transposed convolution, which is the same sum and ends as conv2d does. */
static att_status run_transposed(const att_call *call, bool gradient)
{
    const att_problem *problem = call->problem;
    conv c = conv_of(call, &problem->out[0], &problem->in[DY], &problem->in[WEIGHT]);
    ref_range pixels = ref_share(call, c.group * c.height * c.width);
    for (int64_t pixel = pixels.begin; pixel < pixels.end; pixel++) {
        int64_t column = pixel % c.width, row = pixel / c.width % c.height, sample = pixel / (c.width * c.height);
        for (int64_t k = 0; k < c.inputs; k++) {
            int64_t e = pixel * c.inputs + k;
            double sum = data_grad_at(call, &c, sample, row, column, k);
            ref_out(call, 0, e,
                    gradient ? finished_gradient(call, &c, sample, sum, e)
                             : finished(call, bias_of(call, k) + sum, k, e));
        }
    }
    return ATT_OK;
}

static att_status run_data_grad(const att_call *call)
{
    return run_transposed(call, true);
}

const att_kernel att_ref_conv2d_data_grad = {.op = "conv2d_data_grad", .name = "ref", .run = run_data_grad};

static att_status run_conv_transpose2d(const att_call *call)
{
    return run_transposed(call, false);
}

const att_kernel att_ref_conv_transpose2d = {.op = "conv_transpose2d", .name = "ref", .run = run_conv_transpose2d};

static double weight_grad_at(const att_call *call, const conv *c, int64_t output, int64_t channel, int64_t u, int64_t v)
{
    int64_t k = first_channel(c, output) + channel;
    double sum = 0;
    for (int64_t sample = 0; sample < c->group; sample++)
        for (int64_t i = 0; i < c->out_h; i++)
            for (int64_t j = 0; j < c->out_w; j++) {
                int64_t pixel = pixel_at(c, sample, i, j, u, v);
                int64_t dy = ((sample * c->out_h + i) * c->out_w + j) * c->outputs + output;
                if (pixel >= 0)
                    sum += ref_in(call, DY, dy) * ref_in(call, X_OF_GRAD, pixel + k);
            }
    return sum;
}

static att_status run_weight_grad(const att_call *call)
{
    const att_problem *problem = call->problem;
    conv c = conv_of(call, &problem->in[X_OF_GRAD], &problem->in[DY], &problem->out[0]);
    ref_range share = ref_share(call, c.outputs);
    for (int64_t o = share.begin; o < share.end; o++)
        for (int64_t k = 0; k < c.seen; k++)
            for (int64_t u = 0; u < c.kernel_h; u++)
                for (int64_t v = 0; v < c.kernel_w; v++)
                    ref_sum(call, 0, weight_at(&c, o, k, u, v), weight_grad_at(call, &c, o, k, u, v));
    return ATT_OK;
}

const att_kernel att_ref_conv2d_weight_grad = {.op = "conv2d_weight_grad", .name = "ref", .run = run_weight_grad};
