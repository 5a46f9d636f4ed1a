/* Layers of convolutional networks. */
#include <math.h>

#include <attscope/nn.h>
#include <attscope/ops.h>

#include "nn/width.h"

static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};

att_value att_nn_conv(const att_scope *scope, att_value x, int64_t outputs, const att_nn_conv_options *options)
{
    att_scope_enter(scope);
    int kernel = options->kernel, groups = options->groups ? options->groups : 1;
    att_conv_options conv = {.stride = options->stride, .padding = kernel / 2, .groups = groups};
    att_init init = {.rule = ATT_INIT_NORMAL, .value = sqrt(2 / ((double)outputs * kernel * kernel))};
    att_shape shape = att_shape_of(outputs, att_width_of(scope, x) / groups, kernel, kernel);
    att_value weight = att_scope_parameter(scope, "weight", shape, init, true);
    att_value bias = options->bias ? att_scope_parameter(scope, "bias", att_shape_of(outputs), zeros, false) : ATT_NONE;
    return att_conv2d(scope->graph, x, weight, bias, &conv);
}

att_value att_nn_batch_norm(const att_scope *scope, att_value x, double start)
{
    static const att_batch_norm_options options = {0};
    att_scope_enter(scope);
    att_shape shape = att_shape_of(att_width_of(scope, x));
    att_init gain = {.rule = ATT_INIT_CONSTANT, .value = start};
    att_value gamma = att_scope_parameter(scope, "weight", shape, gain, false);
    att_value beta = att_scope_parameter(scope, "bias", shape, zeros, false);
    att_value mean = att_scope_buffer(scope, "running_mean", shape, 0);
    att_value variance = att_scope_buffer(scope, "running_var", shape, 1);
    return att_batch_norm(scope->graph, x, gamma, beta, mean, variance, &options);
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
