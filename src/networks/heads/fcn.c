#include <attscope/ops.h>

#include "networks/heads/heads.h"

att_value att_head_conv(const att_scope *scope, att_value x, int64_t outputs, int kernel)
{
    const att_scope conv = att_scope_in(scope, "conv"), norm = att_scope_in(scope, "bn");
    x = att_nn_conv(&conv, x, outputs, &(att_nn_conv_options){.kernel = kernel});
    return att_relu(scope->graph, att_nn_batch_norm(&norm, x, 1));
}

att_value att_head_classify(const att_scope *scope, att_value x, double drop_rate, int64_t outputs)
{
    const att_scope layer = att_scope_in(scope, "conv_seg");
    const att_init near_zero = {.rule = ATT_INIT_NORMAL, .value = 0.01}, zeros = {.rule = ATT_INIT_CONSTANT};
    const att_shape shape = att_value_shape(scope->graph, x);
    const int64_t channels = shape.rank > 0 ? shape.dims[shape.rank - 1] : 0;
    att_scope_enter(&layer);
    x = att_channel_dropout(scope->graph, x, drop_rate);
    att_value weight = att_scope_parameter(&layer, "weight", att_shape_of(outputs, channels, 1, 1), near_zero, true);
    att_value bias = att_scope_parameter(&layer, "bias", att_shape_of(outputs), zeros, false);
    return att_conv2d(scope->graph, x, weight, bias, &(att_conv_options){0});
}

att_value att_head_fcn(const att_scope *scope, att_value map, const att_conv_head_options *options, int64_t outputs)
{
    const att_scope conv = att_scope_in(scope, "convs.0");
    return att_head_classify(scope, att_head_conv(&conv, map, options->channels, 3), options->drop_rate, outputs);
}
