#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "networks/heads/heads.h"

static const double NORM_EPS = 1e-5;
enum { LEVELS = 4 };

bool att_head_has_stages(att_graph *graph, const att_backbone *backbone)
{
    if (backbone->features.stage_count > 0)
        return true;
    att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_UNSUPPORTED,
                                   "this network has no map of features, so that it cannot answer for each pixel; "
                                   "networks of vit, eva, swin and resnet have one"));
    return false;
}

bool att_head_lacks(att_graph *graph, const att_option_values *options, const char *const *keys, int count,
                    const char *having)
{
    for (int i = 0; i < count; i++)
        if (att_options_find(options, keys[i])) {
            att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT,
                                           "%s is an option of %s, which this network does not have", keys[i], having));
            return false;
        }
    return true;
}

/* Whether the stages are those of a family of tokens, and not maps of convolutions or blocks that the task chose. */
static bool has_token_stages(const att_features *features)
{
    return features->tokens != ATT_NONE && features->block_count == 0;
}

static bool are_of_one_size(const att_graph *graph, const att_value *maps, int count)
{
    const att_shape first = att_value_shape(graph, maps[0]);
    for (int i = 1; i < count; i++)
        if (!att_shape_equal(att_value_shape(graph, maps[i]), first))
            return false;
    return true;
}

/* A convolution with bias, which keeps the channels and starts as Glorot's, U(-b, b) with b = sqrt(6 / (in + out)). */
static att_value conv_in(const att_scope *scope, const char *name, int index, att_value x, int kernel)
{
    const att_scope conv = att_scope_in(scope, name, index);
    const int64_t channels = att_value_shape(scope->graph, x).dims[2];
    const att_init start = {.rule = ATT_INIT_UNIFORM, .value = sqrt(3 / ((double)channels * kernel * kernel))},
                   zeros = {.rule = ATT_INIT_CONSTANT};
    att_scope_enter(&conv);
    att_value weight =
        att_scope_parameter(&conv, "weight", att_shape_of(channels, channels, kernel, kernel), start, true);
    att_value bias = att_scope_parameter(&conv, "bias", att_shape_of(channels), zeros, false);
    return att_conv2d(scope->graph, x, weight, bias, &(att_conv_options){.padding = kernel / 2});
}

/* Bilinear resizing to half the size is the mean of 2 x 2 places. */
static void make_multi_level(const att_scope *scope, att_value maps[LEVELS])
{
    for (int i = 0; i < LEVELS; i++) {
        maps[i] = conv_in(scope, "lateral_convs.%d.conv", i, maps[i], 1);
        const att_shape size = att_value_shape(scope->graph, maps[i]);
        att_scope_enter(scope);
        if (i < 2)
            maps[i] = att_upsample_bilinear(scope->graph, maps[i], (int)size.dims[0] * (4 >> i),
                                            (int)size.dims[1] * (4 >> i));
        if (i == 3)
            maps[i] = att_avg_pool(scope->graph, maps[i], &(att_pool_options){.kernel = 2});
        maps[i] = conv_in(scope, "convs.%d.conv", i, maps[i], 3);
    }
}

static att_value double_sides(const att_scope *scope, const char *name, att_value x)
{
    const att_scope conv = att_scope_in(scope, "%s", name);
    const int64_t channels = att_value_shape(scope->graph, x).dims[2];
    return att_nn_conv_transpose(&conv, x, channels,
                                 &(att_nn_conv_transpose_options){.kernel = 2, .stride = 2, .bias = true});
}

static void make_pyramid(const att_scope *scope, att_value maps[LEVELS])
{
    const att_scope norm = att_scope_in(scope, "fpn1.1"), pool = att_scope_in(scope, "fpn4");
    maps[0] = att_gelu(scope->graph, att_nn_batch_norm(&norm, double_sides(scope, "fpn1.0", maps[0]), 1));
    maps[0] = double_sides(scope, "fpn1.3", maps[0]);
    maps[1] = double_sides(scope, "fpn2.0", maps[1]);
    att_scope_enter(&pool);
    maps[3] = att_max_pool(scope->graph, maps[3], &(att_pool_options){.kernel = 2});
}

static const struct neck {
    const char *name;
    void (*make)(const att_scope *scope, att_value maps[LEVELS]);
} necks[] = {{ATT_NECK_PYRAMID, make_pyramid}, {ATT_NECK_MULTI_LEVEL, make_multi_level}};

static const struct neck *find_neck(const char *name)
{
    for (size_t i = 0; i < sizeof necks / sizeof *necks; i++)
        if (strcmp(necks[i].name, name) == 0)
            return &necks[i];
    return NULL;
}

int att_head_maps(const att_scope *scope, const att_backbone *backbone, att_value maps[ATT_FEATURE_STAGES])
{
    const att_features *features = &backbone->features;
    const struct neck *neck = find_neck(att_options_text(backbone->options, "neck"));
    const att_scope in_neck = att_scope_in(scope, "neck");
    if (!att_head_has_stages(scope->graph, backbone))
        return 0;
    for (int i = 0; i < features->stage_count; i++) {
        const att_scope norm = att_scope_in(scope, "norms.%d", i);
        maps[i] = features->stages[i];
        if (has_token_stages(features))
            maps[i] = att_nn_layer_norm(&norm, maps[i], NORM_EPS);
    }
    if (!neck)
        return features->stage_count;
    if (features->stage_count == LEVELS && are_of_one_size(scope->graph, maps, LEVELS)) {
        neck->make(&in_neck, maps);
        return LEVELS;
    }
    att_graph_fail(scope->graph, att_fail(att_graph_context(scope->graph), ATT_ERR_UNSUPPORTED,
                                          "the neck %s (--neck) reads four maps of one size, as four blocks of a ViT "
                                          "give them",
                                          neck->name));
    return 0;
}
