/* Builds the network: stem, stages of residual blocks, mean over the map. */
#include <math.h>

#include <attscope/ops.h>

#include "networks/models/resnet.h"

typedef struct resnet_build {
    att_graph *graph;
    const att_resnet *net;
    att_scope root;
} resnet_build;

/* A block's position in the network. */
typedef struct place {
    att_scope scope;
    int index; /* counted over the whole network */
    int64_t planes;
    int stride;
    int first_dilation, dilation; /* of the block's first convolution of 3 x 3, and of the one after it */
} place;

static att_value relu_in(const att_scope *scope, const char *name, int number, att_value x)
{
    att_scope act = att_scope_in(scope, "%s%d", name, number);
    att_scope_enter(&act);
    return att_relu(scope->graph, x);
}

/* A convolution, or attention in its place. */
static att_value convolve(const resnet_build *build, const att_scope *scope, att_value x, int64_t outputs,
                          const att_nn_conv_options *conv)
{
    const att_resnet_options *options = build->net->options;
    const att_shape shape = att_value_shape(build->graph, x);
    if (!att_resnet_attends(build->net, scope->path))
        return att_nn_conv(scope, x, outputs, conv);
    const att_nn_attention_conv_options attention = {.kernel = conv->kernel,
                                                     .stride = conv->stride,
                                                     .dilation = conv->dilation,
                                                     .groups = conv->groups,
                                                     .step_h = (double)options->img_size[0] / (double)shape.dims[0],
                                                     .step_w = (double)options->img_size[1] / (double)shape.dims[1]};
    return att_nn_attention_conv(scope, x, outputs, &attention);
}

static att_value conv_in(const resnet_build *build, const att_scope *scope, const char *name, att_value x,
                         int64_t outputs, int kernel, int stride)
{
    att_scope own = att_scope_in(scope, "%s", name);
    return convolve(build, &own, x, outputs, &(att_nn_conv_options){.kernel = kernel, .stride = stride});
}

/* An eps of 0 becomes the smallest normal number, because att_batch_norm() takes 0 for its default. */
static att_value normalise(const resnet_build *build, const att_scope *scope, att_value x, double start)
{
    const double eps = build->net->options->bn_eps;
    return att_nn_batch_norm_with(scope, x, start,
                                  &(att_batch_norm_options){.eps = eps == ATT_OPTION_UNSET ? 0 : fmax(eps, 0x1p-126)});
}

static att_value norm_in(const resnet_build *build, const att_scope *scope, const char *name, att_value x)
{
    att_scope own = att_scope_in(scope, "%s", name);
    return normalise(build, &own, x, 1);
}

/* --- a block ----------------------------------------------------------------------------------------------------- */

typedef struct layer {
    int64_t outputs;
    att_nn_conv_options conv;
} layer;

static void layers_of(const att_resnet *net, const place *at, layer layers[3])
{
    const att_resnet_options *options = net->options;
    if (att_resnet_is_basic(net->block)) {
        layers[0] = (layer){at->planes, {.kernel = 3, .stride = at->stride, .dilation = at->first_dilation}};
        layers[1] = (layer){at->planes, {.kernel = 3, .dilation = at->dilation}};
        return;
    }
    int64_t inner = att_resnet_inner(at->planes, options->cardinality, options->base_width);
    const bool early = options->stride_in_1x1;
    layers[0] = (layer){inner, {.kernel = 1, .stride = early ? at->stride : 1}};
    layers[1] = (layer){inner,
                        {.kernel = 3,
                         .stride = early ? 1 : at->stride,
                         .dilation = at->first_dilation,
                         .groups = options->cardinality}};
    layers[2] = (layer){at->planes * att_resnet_expansion(net->block), {.kernel = 1}};
}

static att_value normalise_and_relu(const resnet_build *build, const place *at, int number, att_value x)
{
    att_scope norm = att_scope_in(&at->scope, "bn%d", number);
    return relu_in(&at->scope, "act", number, normalise(build, &norm, x, 1));
}

/* x: what the first convolution reads, after the first norm and ReLU of a pre-activation block */
static att_value build_branch(const resnet_build *build, const place *at, att_value x)
{
    const att_resnet *net = build->net;
    bool before = att_resnet_is_preact(net->block);
    int count = att_resnet_convs(net->block);
    layer layers[3];
    layers_of(net, at, layers);
    for (int i = 0; i < count; i++) {
        bool last = i == count - 1;
        att_scope conv = att_scope_in(&at->scope, "conv%d", i + 1), norm = att_scope_in(&at->scope, "bn%d", i + 1);
        if (before && i > 0)
            x = normalise_and_relu(build, at, i + 1, x);
        x = convolve(build, &conv, x, layers[i].outputs, &layers[i].conv);
        if (!before)
            x = normalise(build, &norm, x, last && net->options->zero_init_last ? 0 : 1);
        if (!before && !last)
            x = relu_in(&at->scope, "act", i + 1, x);
    }
    return x;
}

static att_value pool_halves(const att_scope *scope, att_value x)
{
    att_scope_enter(scope);
    return att_avg_pool(scope->graph, x, &(att_pool_options){.kernel = 2, .stride = 2, .ceil = true});
}

/* opened: the block's input x, or what follows its first norm and ReLU */
static att_value build_shortcut(const resnet_build *build, const place *at, att_value x, att_value opened)
{
    const att_resnet *net = build->net;
    int64_t outputs = at->planes * att_resnet_expansion(net->block);
    att_shape shape = att_value_shape(build->graph, x);
    if (at->stride == 1 && shape.dims[2] == outputs)
        return x;
    x = opened;
    att_scope scope = att_scope_in(&at->scope, net->shortcut == ATT_PAD ? "shortcut" : "downsample");
    if (net->shortcut == ATT_PAD) {
        att_scope_enter(&scope);
        return att_shortcut_pad(build->graph, x, at->stride, (int)outputs);
    }
    bool pools = net->shortcut == ATT_AVG_CONV;
    att_scope pool = att_scope_in(&scope, "0");
    if (pools && at->stride == 2)
        x = pool_halves(&pool, x);
    x = conv_in(build, &scope, pools ? "1" : "0", x, outputs, 1, pools ? 1 : at->stride);
    return att_resnet_is_preact(net->block) ? x : norm_in(build, &scope, pools ? "2" : "1", x);
}

static att_value build_block(const resnet_build *build, const place *at, att_value x)
{
    const att_resnet *net = build->net;
    const att_value opened = att_resnet_is_preact(net->block) ? normalise_and_relu(build, at, 1, x) : x;
    att_value branch = build_branch(build, at, opened),
              identity = build_shortcut(build, at, x, net->options->act_shortcut ? opened : x);
    const att_module_site site = {.branch = branch, .identity = identity, .input = ATT_NONE};
    branch = att_modules_apply(&net->modules, ATT_AFTER_BRANCH, at->index, &at->scope, &site);
    att_scope drop = att_scope_in(&at->scope, "drop_path"), add = att_scope_in(&at->scope, "add");
    att_scope_enter(&drop);
    branch = att_drop_path(build->graph, branch,
                           att_drop_path_of(net->options->drop_path_rate, at->index, att_stages_total(&net->stages)));
    att_scope_enter(&add);
    x = att_add(build->graph, identity, branch);
    return att_resnet_is_preact(net->block) ? x : relu_in(&at->scope, "act", att_resnet_convs(net->block), x);
}

/* --- stem, stages, head ------------------------------------------------------------------------------------------ */

/* Three convolutions, the first with stride 2. The first convolution has width / 2 channels (3/8 width in the tiered
 * form), the second width / 2, the third width. */
static att_value build_deep_stem(const resnet_build *build, att_value x)
{
    static const char *const convs[] = {"0", "3", "6"}, *const norms[] = {"1", "4"};
    int64_t width = build->net->options->width,
            tier = build->net->stem == ATT_DEEP_TIERED ? 3 * (width / 8) : width / 2;
    const int64_t outputs[] = {tier, width / 2, width};
    att_scope scope = att_scope_in(&build->root, "conv1");
    for (int i = 0; i < 3; i++) {
        x = conv_in(build, &scope, convs[i], x, outputs[i], 3, i == 0 ? 2 : 1);
        if (i < 2)
            x = relu_in(&scope, "", 3 * i + 2, norm_in(build, &scope, norms[i], x));
    }
    return x;
}

static att_value build_stem(const resnet_build *build, att_value x)
{
    const att_resnet *net = build->net;
    const int64_t width = att_resnet_stem_channels(net);
    if (net->stem == ATT_DEEP || net->stem == ATT_DEEP_TIERED)
        x = build_deep_stem(build, x);
    else if (net->stem == ATT_CONV7)
        x = conv_in(build, &build->root, "conv1", x, width, 7, 2);
    else
        x = conv_in(build, &build->root, "conv1", x, width, 3, 1);
    if (!att_resnet_is_preact(net->block))
        x = relu_in(&build->root, "act", 1, norm_in(build, &build->root, "bn1", x));
    if (!net->options->stem_pool)
        return x;
    att_scope pool = att_scope_in(&build->root, "maxpool");
    att_scope_enter(&pool);
    return att_max_pool(build->graph, x, &(att_pool_options){.kernel = 3, .stride = 2, .padding = 1});
}

/* Where a stage would shrink the map beyond the option output_stride, it dilates its convolutions instead. The first
 * block of a stage has the dilation of the stage before, as in timm. */
static att_value build_stages(const resnet_build *build, att_value x, att_features *features)
{
    const att_resnet *net = build->net;
    const int most = net->options->output_stride;
    place at = {.planes = net->options->width, .first_dilation = 1, .dilation = 1};
    for (int s = 0, shrunk = att_resnet_stem_stride(net); s < net->stages.count; s++, at.planes *= 2) {
        const bool dilates = s > 0 && most != ATT_OPTION_UNSET && shrunk >= most;
        const int stride = s > 0 && !dilates ? 2 : 1;
        at.dilation *= dilates ? 2 : 1;
        shrunk *= stride;
        for (int b = 0; b < net->stages.blocks[s]; b++, at.index++, at.first_dilation = at.dilation) {
            at.scope = att_scope_in(&build->root, "layer%d.%d", s + 1, b);
            at.stride = b == 0 ? stride : 1;
            x = build_block(build, &at, x);
        }
        features->stages[features->stage_count++] = x;
    }
    return x;
}

void att_resnet_build(att_graph *graph, const void *options, att_features *features)
{
    const att_resnet_options *o = options;
    att_resnet net;
    if (att_resnet_read(att_graph_context(graph), o, &net) != ATT_OK)
        return; /* cannot happen: complete() has checked the options */
    resnet_build build = {.graph = graph, .net = &net, .root = att_scope_root(graph)};
    att_shape shape = att_shape_of(o->img_size[0], o->img_size[1], o->in_chans);
    att_value x = att_graph_input(graph, ATT_IMAGE, att_graph_dtype(graph), shape);
    x = build_stages(&build, build_stem(&build, x), features);
    if (att_resnet_is_preact(net.block) && o->final_norm)
        x = relu_in(&build.root, "act", 1, norm_in(&build, &build.root, "bn", x));
    att_scope pool = att_scope_in(&build.root, "global_pool");
    att_scope_enter(&pool);
    features->pooled = att_global_mean(graph, x);
}
