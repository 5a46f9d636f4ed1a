/* ConvNeXt (Liu et al., CVPR 2022) as in timm: a stem; stages of blocks with a depthwise convolution, a norm and an
 * MLP, the next stage at half the resolution; the mean over the map; a norm, or the norm before the mean. Dimensions
 * and preprocessing are those of timm 1.0. */
#include <stdlib.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/checkpoint.h"
#include "networks/models/family.h"
#include "networks/models/token_block.h"
#include "networks/models/variants.h"
#include "networks/nn/width.h"

/* --- variants ----------------------------------------------------------------------------------------------------- */

static const char CONVNEXT[] = "ConvNeXt (Liu et al., CVPR 2022)";

#define ATTO "depths=2,2,6,2 dims=40,80,160,320 conv_mlp=true "
#define FEMTO "depths=2,2,6,2 dims=48,96,192,384 conv_mlp=true "
#define PICO "depths=2,2,6,2 dims=64,128,256,512 conv_mlp=true "
#define NANO "depths=2,2,8,2 dims=80,160,320,640 conv_mlp=true "
#define TINY "depths=3,3,9,3 dims=96,192,384,768 "
#define SMALL "depths=3,3,27,3 dims=96,192,384,768 "
#define BASE "depths=3,3,27,3 dims=128,256,512,1024 "
#define LARGE "depths=3,3,27,3 dims=192,384,768,1536 "
#define XLARGE "depths=3,3,27,3 dims=256,512,1024,2048 "
#define XXLARGE "depths=3,4,30,3 dims=384,768,1536,3072 "
#define SHALLOW "depths=1,1,1,1 dims=32,64,96,128 "
#define TEST "norm_eps=1e-5 " ATT_HALF

static const att_variant_row rows[] = {
    {"convnext_tiny", CONVNEXT, 224, 1000, 0.95, TINY},
    {"convnext_small", CONVNEXT, 224, 1000, 0.95, SMALL},
    {"convnext_base", CONVNEXT, 224, 1000, 0.875, BASE},
    {"convnext_large", CONVNEXT, 224, 1000, 0.875, LARGE},
    {"convnext_large_mlp", CONVNEXT, 320, 1000, 1, LARGE "head_hidden_size=1536 " ATT_CLIP},
    {"convnext_xlarge", CONVNEXT, 224, 1000, 0.875, XLARGE},
    {"convnext_xxlarge", CONVNEXT, 256, 1000, 1, XXLARGE "norm_eps=1e-5 " ATT_CLIP},
    {"convnext_tiny_hnf", CONVNEXT, 224, 1000, 0.95, TINY "head_norm_first=true conv_mlp=true "},
    {"convnext_nano", CONVNEXT, 224, 1000, 0.95, NANO},
    {"convnext_nano_ols", CONVNEXT, 224, 1000, 0.95, NANO "stem=overlap "},
    {"convnext_pico", CONVNEXT, 224, 1000, 0.875, PICO},
    {"convnext_pico_ols", CONVNEXT, 224, 1000, 0.95, PICO "stem=overlap_tiered "},
    {"convnext_femto", CONVNEXT, 224, 1000, 0.875, FEMTO},
    {"convnext_femto_ols", CONVNEXT, 224, 1000, 0.875, FEMTO "stem=overlap_tiered "},
    {"convnext_atto", CONVNEXT, 224, 1000, 0.875, ATTO},
    {"convnext_atto_ols", CONVNEXT, 224, 1000, 0.875, ATTO "stem=overlap_tiered "},
    {"convnext_atto_rms", CONVNEXT, 224, 1000, 0.875, ATTO "norm_layer=rmsnorm "},
    {"test_convnext", CONVNEXT, 160, 1000, 0.95, "depths=1,2,4,2 dims=24,32,48,64 act_layer=gelu_tanh " TEST},
    {"test_convnext2", CONVNEXT, 160, 1000, 0.95, SHALLOW "act_layer=gelu_tanh " TEST},
    {"test_convnext3", CONVNEXT, 160, 1000, 0.95, SHALLOW "kernel_sizes=7,5,5,3 act_layer=silu " TEST},
};

static const att_variants variants = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .shared =
        "stem=patch patch_size=4 kernel_sizes=7 init_values=1e-6 norm_layer=layernorm norm_eps=1e-6 "
        "act_layer=gelu conv_mlp=false head_norm_first=false head_hidden_size=0 "
        "global_pool=avg " ATT_IMAGENET};

/* --- options ------------------------------------------------------------------------------------------------------ */

typedef struct convnext_options {
    ATT_IMAGE_MEMBERS;
    ATT_SHARED_MEMBERS;
    int patch_size[2], conv_mlp, head_norm_first, head_hidden_size;
    double init_values, norm_eps;
    char stem[16], depths[24], dims[28], kernel_sizes[24], norm_layer[12], act_layer[12], global_pool[8];
} convnext_options;

static const char PATCH[] = "patch", TIERED[] = "overlap_tiered", ACTIVE[] = "overlap_act", RMS[] = "rmsnorm";
ATT_CHOICES(stem_names, PATCH, "overlap", TIERED, ACTIVE)
ATT_CHOICES(norm_names, "layernorm", RMS)
ATT_CHOICES(pool_names, "avg")

#define CONVNEXT(member) ATT_OPTION_AT(convnext_options, member)
static const att_option option_rows[] = {
    ATT_IMAGE_OPTIONS(convnext_options),
    ATT_SHARED_OPTIONS(convnext_options),
    {"depths", .kind = ATT_OPTION_TEXT, .value = "LIST", .help = "blocks of each stage, as 2,2,6,2",
     .instead_of = "depth", CONVNEXT(depths)},
    {"dims", .kind = ATT_OPTION_TEXT, .value = "LIST", .help = "channels of each stage, as 96,192,384,768",
     .instead_of = "embed_dim", CONVNEXT(dims)},
    {"kernel_sizes", .kind = ATT_OPTION_TEXT, .value = "LIST",
     .help = "of a ConvNeXt: sides of the depthwise convolutions, odd, in each stage or in all of them",
     CONVNEXT(kernel_sizes)},
    {"stem", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "of a ConvNeXt: patch, one convolution of patches; overlap, two of 3 x 3; overlap_tiered, the first with "
             "half of the channels; overlap_act, with an activation between them",
     .choice = stem_names, .differs_as = "the stem", CONVNEXT(stem)},
    {"patch_size", .kind = ATT_OPTION_SIDES, .value = "H [W]",
     .help = "pixels of a patch, height and width; one number is both", .low = 1, .high = 65536, CONVNEXT(patch_size)},
    {"init_values", .alias = "ls_init_value", .kind = ATT_OPTION_REAL, .value = "X",
     .help = "LayerScale with this initial value; 0: none", .high = 1e3, .compare_presence = true,
     CONVNEXT(init_values)},
    {"norm_layer", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "norms: layernorm or rmsnorm",
     .choice = norm_names, CONVNEXT(norm_layer)},
    {"norm_eps", .kind = ATT_OPTION_REAL, .value = "X", .help = "eps of the norms", .low = 1e-12, .high = 1,
     CONVNEXT(norm_eps)},
    {"act_layer", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "activation of the MLPs",
     .choice = att_activation_name, CONVNEXT(act_layer)},
    {"conv_mlp", .kind = ATT_OPTION_SWITCH,
     .help = "of a ConvNeXt: the MLPs' weights have the shape of 1 x 1 convolutions in files; nothing else changes",
     CONVNEXT(conv_mlp)},
    {"head_norm_first", .kind = ATT_OPTION_SWITCH,
     .help = "of a ConvNeXt: the last norm before the mean over the map, not after it", CONVNEXT(head_norm_first)},
    {"head_hidden_size", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "of a ConvNeXt: channels of a hidden layer before the classifier; 0: there is none", .high = 65536,
     CONVNEXT(head_hidden_size)},
    {"global_pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "what the head reads: avg, the mean over the map", .choice = pool_names, CONVNEXT(global_pool)},
};
ATT_ASSERT_SETTINGS_FIT(convnext_options);
static const att_option_table table = {option_rows, sizeof option_rows / sizeof *option_rows, sizeof(convnext_options)};

/* The parsed options. */
typedef struct convnext {
    const convnext_options *options;
    att_stages depths;
    int dims[ATT_STAGES], kernels[ATT_STAGES];
    att_norm_form norm;
    att_modules modules;
} convnext;

static bool is_patch_stem(const convnext_options *o)
{
    return strcmp(o->stem, PATCH) == 0;
}

/* Whether a stage begins at half the resolution. As in timm, so does the first one if the stem has a stride of 2. */
static bool halves(const convnext_options *o, int stage)
{
    return stage > 0 || o->patch_size[0] == 2;
}

static att_status check_image(att_context *context, const convnext *net)
{
    const convnext_options *o = net->options;
    const int least = o->patch_size[0] << (net->depths.count - 1 + halves(o, 0));
    return att_image_check_least(context, o->img_size, least);
}

static att_status check_kernels(att_context *context, const convnext *net)
{
    for (int s = 0; s < net->depths.count; s++)
        if (net->kernels[s] % 2 == 0 || net->kernels[s] > 255)
            return att_fail(context, ATT_ERR_ARGUMENT, "kernel_sizes must be odd numbers up to 255, not %d",
                            net->kernels[s]);
    return ATT_OK;
}

/* Lists are rewritten in one form. */
static att_status parse(att_context *context, convnext_options *o, convnext *net)
{
    *net = (convnext){.options = o, .norm = {.rms = strcmp(o->norm_layer, RMS) == 0, .eps = o->norm_eps}};
    ATT_TRY(att_stages_parse(context, "depths", o->depths, &net->depths));
    const int stages = net->depths.count;
    ATT_TRY(att_stages_numbers(context, "dims", o->dims, sizeof o->dims, 1, stages, net->dims));
    ATT_TRY(
        att_stages_numbers(context, "kernel_sizes", o->kernel_sizes, sizeof o->kernel_sizes, 1, stages, net->kernels));
    att_format_list(net->depths.blocks, stages, o->depths, sizeof o->depths);
    ATT_TRY(check_kernels(context, net));
    if (!is_patch_stem(o))
        o->patch_size[0] = o->patch_size[1] = 4;
    if (o->patch_size[0] != o->patch_size[1])
        return att_fail(context, ATT_ERR_ARGUMENT, "a ConvNeXt has square patches, not patch_size %d %d",
                        o->patch_size[0], o->patch_size[1]);
    if (o->head_norm_first && o->head_hidden_size)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "head_norm_first: only a head with the norm after the mean has a hidden layer; leave "
                        "head_hidden_size %d out",
                        o->head_hidden_size);
    ATT_TRY(check_image(context, net));
    return att_modules_parse(context, &att_branch_hooks, &net->depths, o->modules, &net->modules);
}

static att_status convnext_complete(att_context *context, void *options)
{
    convnext net;
    return parse(context, options, &net);
}

static const att_accepted_argument accepted_arguments[] = {
    {"output_stride", "32"}, {"conv_bias", "true"}, {"head_init_scale", ATT_ANY_VALUE},
    {"use_grn", "false"},    {NULL, NULL},
};

/* timm's stem_type is the option stem; the residual networks' option stem_type has other values. norm_layer may name
 * the same norms of maps. */
static bool take_argument(const char *key, const att_fact *fact, att_option_values *options)
{
    const bool stem = strcmp(key, "stem_type") == 0, norm = strcmp(key, "norm_layer") == 0;
    if (!(stem || norm) || fact->kind != ATT_FACT_TEXT)
        return false;
    const char *text = fact->text, *own = stem ? "stem" : "norm_layer";
    if (norm && (strcmp(text, "rmsnorm2d") == 0 || strcmp(text, "layernorm2d") == 0))
        text = strcmp(text, "rmsnorm2d") == 0 ? RMS : "layernorm";
    return att_options_find(options, own) || att_option_store(att_option_find(&table, own), &text, 1, options);
}

static bool give_argument(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    const char *text = att_options_text(network->options, option->key);
    if (strcmp(option->key, "img_size") == 0) /* any size */
        return true;
    if (att_checkpoint_lists("depths dims", option->key) ||
        (strcmp(option->key, "kernel_sizes") == 0 && strchr(text, ',')))
        return strchr(text, ',') && att_timm_give_list(text, option->key, writer);
    if (strcmp(option->key, "stem") == 0)
        return att_timm_give(network, option, "stem_type", writer);
    if (strcmp(option->key, "init_values") == 0)
        return att_options_number(network->options, option->key, 0) > 0 &&
               att_timm_give(network, option, "ls_init_value", writer);
    if (strcmp(option->key, "kernel_sizes") == 0)
        att_json_put_integer(writer, option->key, strtol(text, NULL, 10));
    else if (strcmp(option->key, "patch_size") == 0)
        att_json_put_integer(writer, option->key, (int)att_options_number(network->options, option->key, 4));
    else
        return att_timm_give_of("in_chans norm_layer norm_eps act_layer conv_mlp head_norm_first head_hidden_size",
                                network, option, writer);
    return true;
}

static const att_timm_form timm_form = {.give_argument = give_argument};

/* --- the network -------------------------------------------------------------------------------------------------- */

static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};

static att_value norm_in(const convnext *net, const att_scope *scope, const char *name, att_value x)
{
    att_scope own = att_scope_in(scope, "%s", name);
    return att_token_norm(&own, x, &net->norm, 1);
}

static att_value activate_in(const att_scope *scope, const char *name, att_value x, const char *activation)
{
    att_scope own = att_scope_in(scope, "%s", name);
    att_scope_enter(&own);
    return att_activation_named(activation)(scope->graph, x);
}

/* A convolution that starts as linear layers do. */
static att_value convolve(const att_scope *scope, const char *name, att_value x, int64_t outputs, int kernel,
                          const att_conv_options *options)
{
    att_scope own = att_scope_in(scope, "%s", name);
    const int64_t inputs = att_width_of(scope, x) / (options->groups ? options->groups : 1);
    att_scope_enter(&own);
    att_value weight =
        att_scope_parameter(&own, "weight", att_shape_of(outputs, inputs, kernel, kernel), att_init_linear(), true);
    att_value bias = att_scope_parameter(&own, "bias", att_shape_of(outputs), zeros, false);
    return att_conv2d(scope->graph, x, weight, bias, options);
}

static att_value build_stem(const convnext *net, const att_scope *root, att_value x)
{
    static const att_conv_options halving = {.stride = 2, .padding = 1};
    const convnext_options *o = net->options;
    const att_scope scope = att_scope_in(root, "stem");
    const int width = net->dims[0];
    if (is_patch_stem(o)) {
        x = convolve(&scope, "0", x, width, o->patch_size[0], &(att_conv_options){.stride = o->patch_size[0]});
        return norm_in(net, &scope, "1", x);
    }
    const bool active = strcmp(o->stem, ACTIVE) == 0;
    const int half = width / 2, tier = half < 8 ? 8 : (half + 4) / 8 * 8; /* timm's make_divisible() */
    x = convolve(&scope, "0", x, strcmp(o->stem, TIERED) == 0 ? (10 * tier < 9 * half ? tier + 8 : tier) : width, 3,
                 &halving);
    if (active)
        x = activate_in(&scope, "1", x, o->act_layer);
    x = convolve(&scope, active ? "2" : "1", x, width, 3, &halving);
    return norm_in(net, &scope, active ? "3" : "2", x);
}

/* A linear layer of an MLP; with conv_mlp files have its weight as that of a convolution. */
static att_value linear_in(const convnext *net, const att_scope *scope, const char *name, att_value x, int64_t outputs)
{
    att_scope own = att_scope_in(scope, "%s", name);
    const int64_t inputs = att_width_of(scope, x);
    att_scope_enter(&own);
    att_value weight = att_scope_parameter(
        &own, "weight", net->options->conv_mlp ? att_shape_of(outputs, inputs, 1, 1) : att_shape_of(outputs, inputs),
        att_init_linear(), true);
    return att_linear(scope->graph, x, weight, att_scope_parameter(&own, "bias", att_shape_of(outputs), zeros, false));
}

static att_value scale_layer(const convnext *net, const att_scope *block, att_value x)
{
    const att_init start = {.rule = ATT_INIT_CONSTANT, .value = net->options->init_values};
    att_scope own = att_scope_in(block, "ls");
    att_scope_enter(&own);
    att_value gamma = att_scope_parameter(block, "gamma", att_shape_of(att_width_of(block, x)), start, false);
    return att_scale(block->graph, x, gamma);
}

static att_value build_block(const convnext *net, const att_scope *block, int stage, int index, att_value x)
{
    const int width = net->dims[stage], kernel = net->kernels[stage];
    const att_scope mlp = att_scope_in(block, "mlp"), drop = att_scope_in(block, "drop_path"),
                    sum = att_scope_in(block, "add");
    att_value branch =
        convolve(block, "conv_dw", x, width, kernel, &(att_conv_options){.padding = kernel / 2, .groups = width});
    branch = linear_in(net, &mlp, "fc1", norm_in(net, block, "norm", branch), 4 * (int64_t)width);
    branch = activate_in(&mlp, "act", branch, net->options->act_layer);
    branch = linear_in(net, &mlp, "fc2", branch, width);
    if (net->options->init_values > 0)
        branch = scale_layer(net, block, branch);
    branch = att_modules_apply(&net->modules, ATT_AFTER_BRANCH, index, &mlp,
                               &(att_module_site){.branch = branch, .identity = x, .input = ATT_NONE});
    att_scope_enter(&drop);
    branch = att_drop_path(block->graph, branch,
                           att_drop_path_of(net->options->drop_path_rate, index, att_stages_total(&net->depths)));
    att_scope_enter(&sum);
    return att_add(block->graph, x, branch);
}

static att_value build_stage(const convnext *net, const att_scope *root, int stage, att_value x)
{
    const att_scope scope = att_scope_in(root, "stages.%d", stage), down = att_scope_in(&scope, "downsample");
    const bool half = halves(net->options, stage);
    if (half || att_width_of(root, x) != net->dims[stage])
        x = convolve(&down, "1", norm_in(net, &down, "0", x), net->dims[stage], half ? 2 : 1,
                     &(att_conv_options){.stride = half ? 2 : 1});
    for (int b = 0; b < net->depths.blocks[stage]; b++) {
        const att_scope block = att_scope_in(&scope, "blocks.%d", b);
        x = build_block(net, &block, stage, att_stages_before(&net->depths, stage) + b, x);
    }
    return x;
}

static att_value build_pooling(const convnext *net, const att_scope *root, att_value x)
{
    const convnext_options *o = net->options;
    const att_scope head = att_scope_in(root, "head"), pool = att_scope_in(&head, "global_pool"),
                    hidden = att_scope_in(&head, "pre_logits"), fc = att_scope_in(&hidden, "fc");
    if (o->head_norm_first)
        x = norm_in(net, root, "norm_pre", x);
    att_scope_enter(&pool);
    x = att_global_mean(root->graph, x);
    if (!o->head_norm_first)
        x = norm_in(net, &head, "norm", x);
    if (!o->head_hidden_size)
        return x;
    return activate_in(&hidden, "act", att_nn_linear(&fc, x, o->head_hidden_size, true), "gelu");
}

static void convnext_build(att_graph *graph, const void *options, att_features *features)
{
    convnext_options o = *(const convnext_options *)options;
    convnext net;
    if (parse(att_graph_context(graph), &o, &net) != ATT_OK)
        return; /* cannot happen: complete() has checked the options */
    const att_scope root = att_scope_root(graph);
    att_value x = att_graph_input(graph, ATT_IMAGE, att_graph_dtype(graph),
                                  att_shape_of(o.img_size[0], o.img_size[1], o.in_chans));
    x = build_stem(&net, &root, x);
    for (int s = 0; s < net.depths.count; s++)
        features->stages[features->stage_count++] = x = build_stage(&net, &root, s, x);
    features->pooled = build_pooling(&net, &root, x);
}

static att_classifier_form convnext_classifier(const void *options)
{
    (void)options;
    return (att_classifier_form){.scope = "head.fc", .build = att_token_classifier};
}

/* --- the family --------------------------------------------------------------------------------------------------- */

#define STEM "stem.0.weight"
#define SECOND "stem.1.weight"
#define DEPTHWISE "stages.0.blocks.0.conv_dw.weight"
static const att_tensor_rule rules[] = {
    {"in_chans", ATT_RULE_SIDE, STEM, .side = 1},
    {"stem", ATT_RULE_HAS, "stem.3.weight", .yes = "overlap_act"},
    {"stem", ATT_RULE_SAME, STEM, .other = SECOND, .yes = "overlap", .no = "overlap_tiered"},
    {"stem", ATT_RULE_HAS, SECOND, .rank = 1, .yes = "patch"},
    {"patch_size", ATT_RULE_SIDE, STEM, .side = 2},
    {"patch_size", ATT_RULE_HAS, SECOND, .rank = 4, .yes = "4"},
    {"patch_size", ATT_RULE_HAS, "stem.3.weight", .yes = "4"},
    {"depths", ATT_RULE_BLOCKS, "stages.#.blocks.@.conv_dw.weight", .side = 0},
    {"dims", ATT_RULE_SIDE, "stages.#.blocks.0.conv_dw.weight", .side = 0},
    {"kernel_sizes", ATT_RULE_SIDE, "stages.#.blocks.0.conv_dw.weight", .side = 2},
    {"init_values", ATT_RULE_HAS, "stages.0.blocks.0.gamma", .yes = "1e-6", .no = "0"},
    {"norm_layer", ATT_RULE_HAS, "stages.0.blocks.0.norm.bias", .yes = "layernorm", .no = "rmsnorm"},
    {"conv_mlp", ATT_RULE_HAS, "stages.0.blocks.0.mlp.fc1.weight", .rank = 4, .yes = "true", .no = "false"},
    {"head_norm_first", ATT_RULE_HAS, "norm_pre.weight", .yes = "true", .no = "false"},
    {"head_hidden_size", ATT_RULE_SIDE, "head.pre_logits.fc.weight", .no = "0"},
    {"num_classes", ATT_RULE_SIDE, "head.fc.weight", .no = "0"},
};
static const att_tensor_rules tensor_rules = {.rules = rules,
                                              .count = sizeof rules / sizeof *rules,
                                              .what = "ConvNeXt",
                                              .block = "stages.#.blocks.@",
                                              .branch = "mlp",
                                              .width = "conv_dw.weight",
                                              .stem = "stem",
                                              .last = "norm_pre"};

extern const att_family att_family_convnext;

const att_family att_family_convnext = {
    .name = "convnext",
    .signatures = {DEPTHWISE},
    .inputs = {ATT_IMAGE_INPUT},
    .options = &table,
    .hooks = ATT_BRANCH_HOOK_SET,
    .accepted_arguments = accepted_arguments,
    .classifier = convnext_classifier,
    .variants = &variants,
    .complete = convnext_complete,
    .build = convnext_build,
    .rules = &tensor_rules,
    .take_argument = take_argument,
    .timm = &timm_form,
};
