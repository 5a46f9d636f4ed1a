#include <math.h>

#include <attscope/nn.h>
#include <attscope/ops.h>

#include "networks/nn/width.h"

static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};
static const att_init ones = {.rule = ATT_INIT_CONSTANT, .value = 1};

att_init att_init_linear(void)
{
    return (att_init){.rule = ATT_INIT_TRUNC_NORMAL, .value = 0.02};
}

att_value att_nn_linear(const att_scope *scope, att_value x, int64_t outputs, bool bias)
{
    att_scope_enter(scope);
    att_shape shape = att_shape_of(outputs, att_width_of(scope, x));
    att_value weight = att_scope_parameter(scope, "weight", shape, att_init_linear(), true);
    att_value shift = bias ? att_scope_parameter(scope, "bias", att_shape_of(outputs), zeros, false) : ATT_NONE;
    return att_linear(scope->graph, x, weight, shift);
}

att_value att_nn_layer_norm(const att_scope *scope, att_value x, double eps)
{
    att_scope_enter(scope);
    att_shape shape = att_shape_of(att_width_of(scope, x));
    att_value gamma = att_scope_parameter(scope, "weight", shape, ones, false);
    att_value beta = att_scope_parameter(scope, "bias", shape, zeros, false);
    return att_layer_norm(scope->graph, x, gamma, beta, eps);
}

att_value att_nn_attention(const att_scope *scope, att_value x, const att_nn_attention_options *options)
{
    int64_t width = att_width_of(scope, x), inner = options->head_width ? options->heads * options->head_width : width;
    att_scope in = att_scope_in(scope, "qkv"), out = att_scope_in(scope, "proj");
    att_value qkv = att_nn_linear(&in, x, 3 * inner, options->qkv_bias);
    att_scope_enter(scope);
    att_attention_options attention = {.heads = options->heads,
                                       .prefix = options->prefix,
                                       .grid_h = options->grid_h,
                                       .grid_w = options->grid_w,
                                       .step_h = options->step_h,
                                       .step_w = options->step_w};
    att_value mixed = att_attention(scope->graph, qkv, ATT_NONE, ATT_NONE, &attention);
    return att_nn_linear(&out, mixed, width, true);
}

att_value att_nn_mlp(const att_scope *scope, att_value x, int64_t hidden)
{
    att_scope first = att_scope_in(scope, "fc1"), second = att_scope_in(scope, "fc2");
    att_value inner = att_gelu(scope->graph, att_nn_linear(&first, x, hidden, true));
    return att_nn_linear(&second, inner, att_width_of(scope, x), true);
}

att_value att_nn_patch_embed(const att_scope *scope, att_value image, int patch_h, int patch_w, int64_t width,
                             bool bias)
{
    att_scope proj = att_scope_in(scope, "proj");
    att_scope_enter(&proj);
    int64_t channels = att_width_of(scope, image);
    /* torch.nn.Conv2d: kaiming_uniform_ with a = sqrt(5) is U(-1 / sqrt(fan_in), ..), and the bias has the same bound.
     */
    double fan_in = (double)channels * patch_h * patch_w;
    att_init init = {.rule = ATT_INIT_UNIFORM, .value = fan_in > 0 ? 1 / sqrt(fan_in) : 0};
    att_value weight =
        att_scope_parameter(&proj, "weight", att_shape_of(width, channels, patch_h, patch_w), init, true);
    att_value shift = bias ? att_scope_parameter(&proj, "bias", att_shape_of(width), init, false) : ATT_NONE;
    return att_linear(scope->graph, att_patchify(scope->graph, image, patch_h, patch_w), weight, shift);
}

att_value att_nn_layer_scale(const att_scope *scope, att_value x, double start)
{
    att_scope_enter(scope);
    att_init init = {.rule = ATT_INIT_CONSTANT, .value = start};
    att_value gamma = att_scope_parameter(scope, "gamma", att_shape_of(att_width_of(scope, x)), init, false);
    return att_scale(scope->graph, x, gamma);
}
