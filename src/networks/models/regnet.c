/* RegNet X, Y (Radosavovic et al., CVPR 2020) and Z (Dollar et al., CVPR 2021) as in timm: a stem with a stride of 2;
 * stages of bottleneck blocks with grouped convolutions, each at half the resolution of the one before. Y and Z have
 * squeeze and excitation (Hu et al., CVPR 2018) after the grouped convolution. Z has wide bottlenecks, no activation
 * after the addition, and no addition where a block changes the shape. Dimensions and preprocessing are those of timm
 * 1.0. */
#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/checkpoint.h"
#include "networks/models/family.h"
#include "networks/models/token_block.h"
#include "networks/models/variants.h"
#include "networks/nn/gates.h"

/* --- variants ----------------------------------------------------------------------------------------------------- */

static const char REGNET[] = "RegNet (Radosavovic et al., CVPR 2020)";
static const char REGNET_Z[] = "RegNet Z (Dollar et al., CVPR 2021)";

#define Y "se_ratio=0.25 "
#define Z Y "bottle_ratio=4 linear_out=true shape_shortcuts=false act_layer=silu zero_init_last=false "

static const att_variant_row rows[] = {
    {"regnetx_002", REGNET, 224, 1000, 0.875, "depths=1,1,4,7 dims=24,56,152,368 group_sizes=8 "},
    {"regnetx_004", REGNET, 224, 1000, 0.875, "depths=1,2,7,12 dims=32,64,160,384 group_sizes=16 "},
    {"regnetx_004_tv", REGNET, 224, 1000, 0.965, "depths=1,2,7,12 dims=32,64,160,400 group_sizes=16 "},
    {"regnetx_006", REGNET, 224, 1000, 0.875, "depths=1,3,5,7 dims=48,96,240,528 group_sizes=24 "},
    {"regnetx_008", REGNET, 224, 1000, 0.965, "depths=1,3,7,5 dims=64,128,288,672 group_sizes=16 "},
    {"regnetx_016", REGNET, 224, 1000, 0.965, "depths=2,4,10,2 dims=72,168,408,912 group_sizes=24 "},
    {"regnetx_032", REGNET, 224, 1000, 0.965, "depths=2,6,15,2 dims=96,192,432,1008 group_sizes=48 "},
    {"regnetx_040", REGNET, 224, 1000, 0.875, "depths=2,5,14,2 dims=80,240,560,1360 group_sizes=40 "},
    {"regnetx_064", REGNET, 224, 1000, 0.875, "depths=2,4,10,1 dims=168,392,784,1624 group_sizes=56 "},
    {"regnetx_080", REGNET, 224, 1000, 0.965, "depths=2,5,15,1 dims=80,240,720,1920 group_sizes=80,120,120,120 "},
    {"regnetx_120", REGNET, 224, 1000, 0.875, "depths=2,5,11,1 dims=224,448,896,2240 group_sizes=112 "},
    {"regnetx_160", REGNET, 224, 1000, 0.965, "depths=2,6,13,1 dims=256,512,896,2048 group_sizes=128 "},
    {"regnetx_320", REGNET, 224, 1000, 0.965, "depths=2,7,13,1 dims=336,672,1344,2520 group_sizes=168 "},
    {"regnety_002", REGNET, 224, 1000, 0.875, Y "depths=1,1,4,7 dims=24,56,152,368 group_sizes=8 "},
    {"regnety_004", REGNET, 224, 1000, 0.965, Y "depths=1,3,6,6 dims=48,104,208,440 group_sizes=8 "},
    {"regnety_006", REGNET, 224, 1000, 0.875, Y "depths=1,3,7,4 dims=48,112,256,608 group_sizes=16 "},
    {"regnety_008", REGNET, 224, 1000, 0.875, Y "depths=1,3,8,2 dims=64,128,320,768 group_sizes=16 "},
    {"regnety_008_tv", REGNET, 224, 1000, 0.965, Y "depths=1,3,8,2 dims=64,144,320,784 group_sizes=16 "},
    {"regnety_016", REGNET, 224, 1000, 0.965, Y "depths=2,6,17,2 dims=48,120,336,888 group_sizes=24 "},
    {"regnety_032", REGNET, 224, 1000, 0.95, Y "depths=2,5,13,1 dims=72,216,576,1512 group_sizes=24 "},
    {"regnety_040", REGNET, 224, 1000, 0.95, Y "depths=2,6,12,2 dims=128,192,512,1088 group_sizes=64 "},
    {"regnety_064", REGNET, 224, 1000, 0.95, Y "depths=2,7,14,2 dims=144,288,576,1296 group_sizes=72 "},
    {"regnety_080", REGNET, 224, 1000, 0.95, Y "depths=2,4,10,1 dims=168,448,896,2016 group_sizes=56 "},
    {"regnety_080_tv", REGNET, 224, 1000, 0.965, Y "depths=2,4,10,1 dims=224,448,896,2016 group_sizes=56 "},
    {"regnety_120", REGNET, 224, 1000, 0.95, Y "depths=2,5,11,1 dims=224,448,896,2240 group_sizes=112 "},
    {"regnety_160", REGNET, 224, 1000, 0.95, Y "depths=2,4,11,1 dims=224,448,1232,3024 group_sizes=112 "},
    {"regnety_320", REGNET, 224, 1000, 0.965, Y "depths=2,5,12,1 dims=232,696,1392,3712 group_sizes=232 "},
    {"regnety_640", REGNET, 384, 1000, 1, Y "depths=2,5,12,1 dims=328,984,1968,4920 group_sizes=328 "},
    {"regnety_1280", REGNET, 384, 1000, 1, Y "depths=2,7,17,1 dims=528,1056,2904,7392 group_sizes=264 "},
    {"regnety_2560", REGNET, 384, 1000, 1, Y "depths=2,7,17,1 dims=746,1492,4103,10444 group_sizes=373 "},
    {"regnetz_005", REGNET_Z, 224, 1000, 0.95,
     Z "depths=1,4,9,7 dims=16,40,104,256 group_sizes=4 "
       "num_features=1024 "},
    {"regnetz_040", REGNET_Z, 256, 1000, 1, Z "depths=2,6,14,6 dims=48,104,240,528 group_sizes=8 "},
    {"regnetz_040_h", REGNET_Z, 256, 1000, 1,
     Z "depths=2,6,14,6 dims=48,104,240,528 group_sizes=8 "
       "num_features=1536 "},
};

static const att_variants variants = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .shared =
        "stem_width=32 bottle_ratio=1 se_ratio=0 num_features=0 linear_out=false shape_shortcuts=true "
        "act_layer=relu zero_init_last=true global_pool=avg " ATT_IMAGENET};

/* --- options ------------------------------------------------------------------------------------------------------ */

typedef struct regnet_options {
    ATT_IMAGE_MEMBERS;
    ATT_SHARED_MEMBERS;
    int stem_width, num_features, linear_out, shape_shortcuts, zero_init_last;
    double bottle_ratio, se_ratio;
    char depths[24], dims[28], group_sizes[24], act_layer[12], global_pool[8];
} regnet_options;

ATT_CHOICES(pool_names, "avg")

#define REGNET_AT(member) ATT_OPTION_AT(regnet_options, member)
static const att_option option_rows[] = {
    ATT_IMAGE_OPTIONS(regnet_options),
    ATT_SHARED_OPTIONS(regnet_options),
    {"depths", .kind = ATT_OPTION_TEXT, .value = "LIST", .help = "blocks of each stage, as 2,2,6,2",
     .instead_of = "depth", REGNET_AT(depths)},
    {"dims", .kind = ATT_OPTION_TEXT, .value = "LIST", .help = "channels of each stage, as 96,192,384,768",
     .instead_of = "embed_dim", REGNET_AT(dims)},
    {"group_sizes", .kind = ATT_OPTION_TEXT, .value = "LIST",
     .help = "of a RegNet: channels of a group of the grouped convolutions, in each stage or in all of them",
     REGNET_AT(group_sizes)},
    {"stem_width", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "of a RegNet: channels of the stem", .low = 1,
     .high = 65536, REGNET_AT(stem_width)},
    {"bottle_ratio", .kind = ATT_OPTION_REAL, .value = "X",
     .help = "of a RegNet: channels of a grouped convolution over those of its stage", .low = 1e-3, .high = 64,
     REGNET_AT(bottle_ratio)},
    {"se_ratio", .kind = ATT_OPTION_REAL, .value = "X",
     .help = "of a RegNet: hidden channels of squeeze and excitation over the inputs of the block; 0: there is none",
     .high = 64, REGNET_AT(se_ratio)},
    {"num_features", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "of a RegNet: channels of a convolution after the last stage; 0: there is none", .high = 65536,
     REGNET_AT(num_features)},
    {"linear_out", .kind = ATT_OPTION_SWITCH, .help = "of a RegNet: no activation after the addition of a block",
     REGNET_AT(linear_out)},
    {"shape_shortcuts", .kind = ATT_OPTION_SWITCH,
     .help = "of a RegNet: a block that changes the shape of the map adds a convolution of its input",
     REGNET_AT(shape_shortcuts)},
    {"act_layer", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "activation of the MLPs",
     .choice = att_activation_name, REGNET_AT(act_layer)},
    {"zero_init_last", .kind = ATT_OPTION_SWITCH, .help = "the last norm of a residual branch starts at 0",
     .not_compared = true, REGNET_AT(zero_init_last)},
    {"global_pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "what the head reads: avg, the mean over the map", .choice = pool_names, REGNET_AT(global_pool)},
};
ATT_ASSERT_SETTINGS_FIT(regnet_options);
static const att_option_table table = {option_rows, sizeof option_rows / sizeof *option_rows, sizeof(regnet_options)};

/* The parsed options. */
typedef struct regnet {
    const regnet_options *options;
    att_stages depths;
    int dims[ATT_STAGES], groups[ATT_STAGES]; /* groups: channels of a group */
    att_modules modules;
} regnet;

/* Channels of the grouped convolutions. */
static int64_t inner_of(const regnet *net, int stage)
{
    return (int64_t)rint(net->dims[stage] * net->options->bottle_ratio);
}

static att_status check(att_context *context, const regnet *net)
{
    const regnet_options *o = net->options;
    for (int s = 0; s < net->depths.count; s++)
        if (inner_of(net, s) < 1 || inner_of(net, s) % net->groups[s])
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "the %lld channels of the grouped convolutions of stage %d (dims %s, bottle_ratio %g) are "
                            "not a multiple of its group size %d (group_sizes)",
                            (long long)inner_of(net, s), s + 1, o->dims, o->bottle_ratio, net->groups[s]);
    return att_image_check_least(context, o->img_size, 2 << net->depths.count);
}

/* Lists are rewritten in one form. */
static att_status parse(att_context *context, regnet_options *o, regnet *net)
{
    *net = (regnet){.options = o};
    ATT_TRY(att_stages_parse(context, "depths", o->depths, &net->depths));
    const int stages = net->depths.count;
    ATT_TRY(att_stages_numbers(context, "dims", o->dims, sizeof o->dims, 1, stages, net->dims));
    ATT_TRY(att_stages_numbers(context, "group_sizes", o->group_sizes, sizeof o->group_sizes, 1, stages, net->groups));
    att_format_list(net->depths.blocks, stages, o->depths, sizeof o->depths);
    ATT_TRY(check(context, net));
    return att_modules_parse(context, &att_branch_hooks, &net->depths, o->modules, &net->modules);
}

static att_status regnet_complete(att_context *context, void *options)
{
    regnet net;
    return parse(context, options, &net);
}

static const att_accepted_argument accepted_arguments[] = {{"output_stride", "32"}, {NULL, NULL}};

/* timm's constructors take these members of its RegNetCfg. */
static bool give_argument(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    return strcmp(option->key, "img_size") == 0 || /* any size */
           att_timm_give_of("in_chans stem_width bottle_ratio se_ratio num_features linear_out act_layer", network,
                            option, writer);
}

static const att_timm_form timm_form = {.give_argument = give_argument};

/* --- the network -------------------------------------------------------------------------------------------------- */

static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};

/* The weight of a convolution, which starts with N(0, 2 groups / (kernel^2 outputs)). */
static att_value weight_of(const att_scope *scope, int64_t outputs, int64_t inputs, int kernel, int64_t groups)
{
    const att_init start = {.rule = ATT_INIT_NORMAL,
                            .value = sqrt(2 * (double)groups / ((double)kernel * kernel * (double)outputs))};
    return att_scope_parameter(scope, "weight", att_shape_of(outputs, inputs / groups, kernel, kernel), start, true);
}

/* conv and bn of the scope `name` */
static att_value convolve(const att_scope *scope, const char *name, att_value x, int64_t outputs, int kernel,
                          const att_conv_options *options, double start)
{
    const att_scope own = att_scope_in(scope, "%s", name), conv = att_scope_in(&own, "conv"),
                    bn = att_scope_in(&own, "bn");
    att_scope_enter(&conv);
    att_value weight = weight_of(&conv, outputs, att_width_of(scope, x), kernel, options->groups ? options->groups : 1);
    return att_nn_batch_norm(&bn, att_conv2d(scope->graph, x, weight, ATT_NONE, options), start);
}

static att_value activate(const regnet *net, const att_scope *scope, const char *name, att_value x)
{
    const att_scope own = att_scope_in(scope, "%s", name);
    att_scope_enter(&own);
    return att_activation_named(net->options->act_layer)(scope->graph, x);
}

static att_value squeeze_layer(const att_scope *scope, const char *name, att_value x, int64_t outputs)
{
    const att_scope own = att_scope_in(scope, "%s", name);
    att_scope_enter(&own);
    att_value weight = weight_of(&own, outputs, att_width_of(scope, x), 1, 1);
    return att_linear(scope->graph, x, weight, att_scope_parameter(&own, "bias", att_shape_of(outputs), zeros, false));
}

/* As the module se, with timm's widths: a share of the block's inputs. */
static att_value squeeze(const regnet *net, const att_scope *block, att_value x, int64_t inputs)
{
    const att_scope scope = att_scope_in(block, "se");
    const int64_t channels = att_width_of(block, x), hidden = (int64_t)rint((double)inputs * net->options->se_ratio);
    att_scope_enter(&scope);
    att_value z = squeeze_layer(&scope, "fc1", att_global_mean(block->graph, x), hidden < 1 ? 1 : hidden);
    z = squeeze_layer(&scope, "fc2", activate(net, &scope, "act", z), channels);
    return att_gates_apply(&scope, x, z, ATT_START_RANDOM);
}

static att_value build_block(const regnet *net, const att_scope *block, int stage, int index, int stride, att_value x)
{
    static const att_conv_options plain = {.stride = 1};
    const regnet_options *o = net->options;
    const int64_t width = net->dims[stage], inner = inner_of(net, stage), inputs = att_width_of(block, x);
    const att_scope last = att_scope_in(block, "conv3"), drop = att_scope_in(block, "drop_path"),
                    sum = att_scope_in(block, "add");
    const att_conv_options grouped = {.stride = stride, .padding = 1, .groups = (int)(inner / net->groups[stage])};
    att_value identity = x, branch = activate(net, block, "act1", convolve(block, "conv1", x, inner, 1, &plain, 1));
    branch = activate(net, block, "act2", convolve(block, "conv2", branch, inner, 3, &grouped, 1));
    if (o->se_ratio > 0)
        branch = squeeze(net, block, branch, inputs);
    branch = convolve(block, "conv3", branch, width, 1, &plain, o->zero_init_last ? 0 : 1);
    const bool changes = stride > 1 || inputs != width;
    if (changes && o->shape_shortcuts)
        identity = convolve(block, "downsample", x, width, 1, &(att_conv_options){.stride = stride}, 1);
    branch = att_modules_apply(&net->modules, ATT_AFTER_BRANCH, index, &last,
                               &(att_module_site){.branch = branch, .identity = identity, .input = ATT_NONE});
    if (!changes || o->shape_shortcuts) {
        att_scope_enter(&drop);
        branch = att_drop_path(block->graph, branch,
                               att_drop_path_of(o->drop_path_rate, index, att_stages_total(&net->depths)));
        att_scope_enter(&sum);
        branch = att_add(block->graph, identity, branch);
    }
    return o->linear_out ? branch : activate(net, block, "act3", branch);
}

static void regnet_build(att_graph *graph, const void *options, att_features *features)
{
    regnet_options o = *(const regnet_options *)options;
    regnet net;
    if (parse(att_graph_context(graph), &o, &net) != ATT_OK)
        return; /* cannot happen: complete() has checked the options */
    const att_scope root = att_scope_root(graph), pool = att_scope_in(&root, "head.global_pool");
    att_value x = att_graph_input(graph, ATT_IMAGE, att_graph_dtype(graph),
                                  att_shape_of(o.img_size[0], o.img_size[1], o.in_chans));
    x = convolve(&root, "stem", x, o.stem_width, 3, &(att_conv_options){.stride = 2, .padding = 1}, 1);
    x = activate(&net, &root, "stem.act", x);
    for (int s = 0, index = 0; s < net.depths.count; s++) {
        for (int b = 0; b < net.depths.blocks[s]; b++, index++) {
            const att_scope block = att_scope_in(&root, "s%d.b%d", s + 1, b + 1);
            x = build_block(&net, &block, s, index, b == 0 ? 2 : 1, x);
        }
        features->stages[features->stage_count++] = x;
    }
    if (o.num_features)
        x = convolve(&root, "final_conv", x, o.num_features, 1, &(att_conv_options){.stride = 1}, 1);
    if (o.num_features || o.linear_out)
        x = activate(&net, &root, "final_conv.act", x);
    att_scope_enter(&pool);
    features->pooled = att_global_mean(graph, x);
}

/* Starts with N(0, 0.01^2), as in timm. */
static att_value build_classifier(const att_scope *scope, att_value features, int64_t classes)
{
    const att_init start = {.rule = ATT_INIT_NORMAL, .value = 0.01};
    att_scope_enter(scope);
    att_value weight =
        att_scope_parameter(scope, "weight", att_shape_of(classes, att_width_of(scope, features)), start, true);
    return att_linear(scope->graph, features, weight,
                      att_scope_parameter(scope, "bias", att_shape_of(classes), zeros, false));
}

static att_classifier_form regnet_classifier(const void *options)
{
    (void)options;
    return (att_classifier_form){.scope = "head.fc", .build = build_classifier};
}

/* --- the family --------------------------------------------------------------------------------------------------- */

#define FIRST(name) "s1.b1." name ".weight"
static const att_tensor_rule rules[] = {
    {"in_chans", ATT_RULE_SIDE, "stem.conv.weight", .side = 1},
    {"stem_width", ATT_RULE_SIDE, "stem.conv.weight", .side = 0},
    {"depths", ATT_RULE_BLOCKS, "s#.b@.conv1.conv.weight", .side = 0},
    {"dims", ATT_RULE_SIDE, "s#.b1.conv3.conv.weight", .side = 0},
    {"group_sizes", ATT_RULE_SIDE, "s#.b1.conv2.conv.weight", .side = 1},
    {"bottle_ratio", ATT_RULE_SIDE, FIRST("conv1.conv"), .other = FIRST("conv3.conv"), .other_side = 0},
    {"se_ratio", ATT_RULE_SIDE, FIRST("se.fc1"), .other = FIRST("conv1.conv"), .other_side = 1, .no = "0"},
    {"shape_shortcuts", ATT_RULE_HAS, FIRST("downsample.conv"), .yes = "true", .no = "false"},
    {"num_features", ATT_RULE_SIDE, "final_conv.conv.weight", .no = "0"},
    {"num_classes", ATT_RULE_SIDE, "head.fc.weight", .no = "0"},
};
static const att_tensor_rules tensor_rules = {.rules = rules,
                                              .count = sizeof rules / sizeof *rules,
                                              .what = "RegNet",
                                              .block = "s#.b@",
                                              .first = 1,
                                              .branch = "conv3",
                                              .width = "conv3.conv.weight",
                                              .stem = "stem"};

extern const att_family att_family_regnet;

const att_family att_family_regnet = {
    .name = "regnet",
    .signatures = {FIRST("conv1.conv")},
    .inputs = {ATT_IMAGE_INPUT},
    .options = &table,
    .hooks = ATT_BRANCH_HOOK_SET,
    .accepted_arguments = accepted_arguments,
    .classifier = regnet_classifier,
    .variants = &variants,
    .complete = regnet_complete,
    .build = regnet_build,
    .rules = &tensor_rules,
    .timm = &timm_form,
};
