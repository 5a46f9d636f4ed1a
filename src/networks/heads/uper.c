#include <attscope/ops.h>

#include "networks/heads/heads.h"

static const int pool_scales[] = {1, 2, 3, 6};
enum { POOLS = sizeof pool_scales / sizeof *pool_scales };

typedef struct uper_build {
    att_graph *graph;
    const att_scope *scope;
    int64_t channels;
} uper_build;

/* Resizes x to the size of `like`. */
static att_value resize_like(const uper_build *build, att_value x, att_value like)
{
    const att_shape from = att_value_shape(build->graph, x), to = att_value_shape(build->graph, like);
    if (from.dims[0] == to.dims[0] && from.dims[1] == to.dims[1])
        return x;
    return att_upsample_bilinear(build->graph, x, (int)to.dims[0], (int)to.dims[1]);
}

static att_value conv_in(const uper_build *build, const char *name, int index, att_value x, int kernel)
{
    const att_scope scope = att_scope_in(build->scope, name, index);
    x = att_head_conv(&scope, x, build->channels, kernel);
    att_scope_enter(build->scope);
    return x;
}

static att_value pool_pyramid(const uper_build *build, att_value last)
{
    att_value parts[1 + POOLS] = {last};
    for (int i = 0; i < POOLS; i++) {
        att_value pooled = att_adaptive_avg_pool(build->graph, last, pool_scales[i], pool_scales[i]);
        parts[1 + i] = conv_in(build, "psp_modules.%d.1", i, pooled, 1);
    }
    return conv_in(build, "bottleneck", 0, att_concat_maps(build->graph, parts, 1 + POOLS), 3);
}

att_value att_head_uper(const att_scope *scope, const att_value *maps, int count, const att_conv_head_options *options,
                        int64_t outputs)
{
    const uper_build build = {scope->graph, scope, options->channels};
    att_value levels[ATT_FEATURE_STAGES];
    att_scope_enter(scope);
    for (int i = 0; i < count - 1; i++)
        levels[i] = conv_in(&build, "lateral_convs.%d", i, maps[i], 1);
    levels[count - 1] = pool_pyramid(&build, maps[count - 1]);
    for (int i = count - 1; i > 0; i--)
        levels[i - 1] = att_add(scope->graph, levels[i - 1], resize_like(&build, levels[i], levels[i - 1]));
    for (int i = 0; i < count - 1; i++)
        levels[i] = conv_in(&build, "fpn_convs.%d", i, levels[i], 3);
    att_value x = conv_in(&build, "fpn_bottleneck", 0, att_concat_maps(scope->graph, levels, count), 3);
    return att_head_classify(scope, x, options->drop_rate, outputs);
}
