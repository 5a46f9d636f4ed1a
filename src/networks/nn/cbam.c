/* Convolutional block attention. Woo et al.: "CBAM", ECCV 2018. As in timm: batch norm after the spatial convolution,
 * no biases. */
#include <attscope/ops.h>

#include "networks/nn/gates.h"

enum { RATIO, KERNEL, HIDDEN };

static att_value gate_channels(const att_scope *scope, const double *values, att_value x)
{
    att_graph *graph = scope->graph;
    int64_t channels = att_width_of(scope, x);
    att_bottleneck_options options = {.names = {"fc1", "fc2"},
                                      .inputs = channels,
                                      .hidden = att_bottleneck_hidden(channels, values[RATIO], 1, values[HIDDEN]),
                                      .outputs = channels,
                                      .convolution = true};
    att_bottleneck shared = att_bottleneck_declare(scope, &options);
    att_scope_enter(scope);
    att_value of_mean = att_bottleneck_apply(scope, &shared, att_global_mean(graph, x));
    att_value of_maximum = att_bottleneck_apply(scope, &shared, att_global_max(graph, x));
    return att_gates_apply(scope, x, att_add(graph, of_mean, of_maximum), ATT_START_RANDOM);
}

static att_value gate_pixels(const att_scope *scope, int kernel, att_value x)
{
    att_scope outer = att_scope_in(scope, "conv"), conv = att_scope_in(&outer, "conv");
    att_scope_enter(&conv);
    att_shape shape = att_shape_of(1, 2, kernel, kernel);
    att_value weight = att_scope_parameter(&conv, "weight", shape, att_init_fan_in(2 * (int64_t)kernel * kernel), true);
    att_value z = att_conv2d(scope->graph, att_channel_pool(scope->graph, x), weight, ATT_NONE,
                             &(att_conv_options){.padding = kernel / 2});
    return att_gates_apply(scope, x, att_gates_norm(&outer, z), ATT_START_RANDOM);
}

static att_value apply(const att_scope *scope, const double *values, const att_module_site *site)
{
    att_scope channel = att_scope_in(scope, "channel"), spatial = att_scope_in(scope, "spatial");
    att_value gated = gate_channels(&channel, values, site->branch);
    return gate_pixels(&spatial, values[KERNEL] > 0 ? 7 : 3, gated);
}

static const char *const kernels[] = {"3", "7", NULL};

extern const att_module att_module_cbam;

const att_module att_module_cbam = {
    .name = "cbam",
    .meaning =
        "as se from mean and maximum, then a gate per pixel from a convolution (Woo et al., ECCV 2018; as timm's)",
    .places = ATT_ON_MAPS,
    .options = {[RATIO] = {.name = "ratio", .meaning = "C over the hidden width", .start = 16, .low = 1, .high = 1024},
                [KERNEL] = {.name = "kernel",
                            .meaning = "side of the spatial convolution",
                            .start = 1,
                            .high = 1,
                            .choices = kernels},
                [HIDDEN] = ATT_HIDDEN_OPTION},
    .option_count = 3,
    .scope = "se", /* timm gives the attention of a block this name, whatever its kind */
    .parameter = "channel.fc1.weight",
    .apply = apply,
};
