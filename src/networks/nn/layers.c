#include <math.h>

#include <attscope/nn.h>
#include <attscope/ops.h>

#include "networks/nn/patch_layer.h"
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

att_value att_nn_patch_embed(const att_scope *scope, att_value image, int patch_h, int patch_w, int64_t width,
                             bool bias)
{
    return att_nn_patch_layer(scope, image, ATT_NONE, patch_h, patch_w, width, bias);
}

att_value att_nn_patch_layer(const att_scope *scope, att_value image, att_value patches, int patch_h, int patch_w,
                             int64_t width, bool bias)
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
    if (patches == ATT_NONE)
        patches = att_patchify(scope->graph, image, patch_h, patch_w);
    return att_linear(scope->graph, patches, weight, shift);
}
