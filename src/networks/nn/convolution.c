/* Layers of convolutional networks. */
#include <math.h>

#include <attscope/nn.h>
#include <attscope/ops.h>

#include "networks/nn/width.h"

static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};

/* The weight of a convolution, [outputs, channels / groups, kernel, kernel]. */
static att_value conv_weight(const att_scope *scope, att_value x, int64_t outputs, int kernel, int groups)
{
    att_init init = {.rule = ATT_INIT_NORMAL, .value = sqrt(2 / ((double)outputs * kernel * kernel))};
    att_shape shape = att_shape_of(outputs, att_width_of(scope, x) / groups, kernel, kernel);
    return att_scope_parameter(scope, "weight", shape, init, true);
}

static att_value conv_bias(const att_scope *scope, int64_t outputs, bool bias)
{
    return bias ? att_scope_parameter(scope, "bias", att_shape_of(outputs), zeros, false) : ATT_NONE;
}

att_value att_nn_conv(const att_scope *scope, att_value x, int64_t outputs, const att_nn_conv_options *options)
{
    att_scope_enter(scope);
    int kernel = options->kernel, groups = options->groups ? options->groups : 1;
    int dilation = options->dilation ? options->dilation : 1;
    att_conv_options conv = {
        .stride = options->stride, .padding = dilation * (kernel / 2), .dilation = dilation, .groups = groups};
    att_value weight = conv_weight(scope, x, outputs, kernel, groups);
    return att_conv2d(scope->graph, x, weight, conv_bias(scope, outputs, options->bias), &conv);
}

att_value att_nn_conv_transpose(const att_scope *scope, att_value x, int64_t outputs,
                                const att_nn_conv_transpose_options *options)
{
    att_scope_enter(scope);
    int kernel = options->kernel;
    att_conv_transpose_options conv = {.stride = options->stride, .padding = options->padding};
    att_init init = {.rule = ATT_INIT_UNIFORM, .value = 1 / sqrt((double)outputs * kernel * kernel)};
    att_shape shape = att_shape_of(att_width_of(scope, x), outputs, kernel, kernel);
    att_value weight = att_scope_parameter(scope, "weight", shape, init, true);
    att_value bias = options->bias ? att_scope_parameter(scope, "bias", att_shape_of(outputs), init, false) : ATT_NONE;
    return att_conv_transpose2d(scope->graph, x, weight, bias, &conv);
}

/* --- convolutions as attention ------------------------------------------------------------------------------------ */

/* Sizes of one axis: a query for each output of the convolution. */
typedef struct conv_axis {
    const char *centers, *sharpness;
    int64_t keys, queries;
} conv_axis;

static conv_axis axis_of(const char *centers, const char *sharpness, int64_t keys, int ring, int reach, int stride)
{
    return (conv_axis){centers, sharpness, keys, (keys + 2 * (int64_t)ring - reach) / stride + 1};
}

static att_value axis_scores(const att_scope *scope, const conv_axis *axis, const att_nn_attention_conv_options *o,
                             int ring)
{
    const att_init at_taps = {.rule = ATT_INIT_CENTERED, .value = o->dilation ? o->dilation : 1};
    const att_init sharp = {.rule = ATT_INIT_CONSTANT, .value = sqrt(2 * ATT_ATTENTION_ALPHA)};
    att_value centers = att_scope_parameter(scope, axis->centers, att_shape_of(o->kernel), at_taps, false);
    att_value sharpness = att_scope_parameter(scope, axis->sharpness, att_shape_of(o->kernel), sharp, false);
    return att_axis_scores(scope->graph, (int)axis->queries, (int)axis->keys, ring, o->stride ? o->stride : 1, centers,
                           sharpness);
}

/* The projections of all heads, [outputs, kernel kernel channels / groups, 1, 1]. */
static att_value projections(const att_scope *scope, att_value weight)
{
    static const int channels_last[] = {0, 2, 3, 1};
    const att_shape shape = att_value_shape(scope->graph, weight);
    return att_reshape(scope->graph, att_transpose(scope->graph, weight, channels_last, 4),
                       att_shape_of(shape.dims[0], shape.dims[1] * shape.dims[2] * shape.dims[3], 1, 1));
}

att_value att_nn_attention_conv(const att_scope *scope, att_value x, int64_t outputs,
                                const att_nn_attention_conv_options *options)
{
    att_scope_enter(scope);
    const att_shape shape = att_value_shape(scope->graph, x);
    const int kernel = options->kernel, groups = options->groups ? options->groups : 1;
    const int dilation = options->dilation ? options->dilation : 1, stride = options->stride ? options->stride : 1;
    const int ring = dilation * (kernel / 2), reach = dilation * (kernel - 1) + 1;
    const conv_axis rows = axis_of("row_centers", "row_sharpness", shape.dims[0], ring, reach, stride);
    const conv_axis columns = axis_of("column_centers", "column_sharpness", shape.dims[1], ring, reach, stride);
    const att_pair_attention_options attention = {
        .ring = ring, .stride = stride, .groups = groups, .step_h = options->step_h, .step_w = options->step_w};
    att_value row_scores = axis_scores(scope, &rows, options, ring);
    att_value column_scores = axis_scores(scope, &columns, options, ring);
    att_value heads = att_pair_attention(scope->graph, x, row_scores, column_scores, &attention);
    att_value weight = conv_weight(scope, x, outputs, kernel, groups);
    return att_conv2d(scope->graph, heads, projections(scope, weight), conv_bias(scope, outputs, options->bias),
                      &(att_conv_options){.groups = groups});
}

att_value att_nn_batch_norm(const att_scope *scope, att_value x, double start)
{
    return att_nn_batch_norm_with(scope, x, start, &(att_batch_norm_options){0});
}

att_value att_nn_batch_norm_with(const att_scope *scope, att_value x, double start,
                                 const att_batch_norm_options *options)
{
    att_scope_enter(scope);
    att_shape shape = att_shape_of(att_width_of(scope, x));
    att_init gain = {.rule = ATT_INIT_CONSTANT, .value = start};
    att_value gamma = att_scope_parameter(scope, "weight", shape, gain, false);
    att_value beta = att_scope_parameter(scope, "bias", shape, zeros, false);
    att_value mean = att_scope_buffer(scope, "running_mean", shape, 0);
    att_value variance = att_scope_buffer(scope, "running_var", shape, 1);
    return att_batch_norm(scope->graph, x, gamma, beta, mean, variance, options);
}

att_value att_nn_classifier(const att_scope *scope, att_value x, int64_t outputs)
{
    att_scope_enter(scope);
    int64_t width = att_width_of(scope, x);
    att_init init = {.rule = ATT_INIT_UNIFORM, .value = width > 0 ? 1 / sqrt((double)width) : 0};
    att_value weight = att_scope_parameter(scope, "weight", att_shape_of(outputs, width), init, true);
    att_value bias = att_scope_parameter(scope, "bias", att_shape_of(outputs), init, false);
    return att_linear(scope->graph, x, weight, bias);
}
