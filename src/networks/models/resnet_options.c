/* Declares, parses and checks the options of residual networks. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/module_options.h"
#include "networks/models/resnet.h"

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* Names of the values of the enums in models/resnet.h, in the order of the enums. */
ATT_CHOICES(block_names, "basic", "bottleneck", "preact", "preact_basic")
ATT_CHOICES(stem_names, "conv7", "deep", "deep_tiered", "conv3")
ATT_CHOICES(shortcut_names, "conv", "avg_conv", "pad")
ATT_CHOICES(pool_names, "avg")

#define RESNET(member) ATT_OPTION_AT(att_resnet_options, member)
static const att_option resnet_options[] = {
    ATT_IMAGE_OPTIONS(att_resnet_options),
    ATT_SHARED_OPTIONS(att_resnet_options),
    {"depth", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "layers with weights, without shortcuts",
     .implied_by = "layers", .low = 1, .high = 1024, RESNET(depth)},
    {"global_pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "what the head reads: avg, the mean", .choice = pool_names, RESNET(global_pool)},
    {"block", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "of residual networks; preact, preact_basic: a bottleneck or basic block with norms and ReLUs before "
             "convolutions",
     .choice = block_names, RESNET(block)},
    {"stem_type", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "before the residual blocks: conv7 (7 x 7 of stride 2); deep, deep_tiered (three 3 x 3 in its place); "
             "conv3 (3 x 3 without stride, as for CIFAR)",
     .choice = stem_names, .differs_as = "the stem", RESNET(stem_type)},
    {"stem_pool", .kind = ATT_OPTION_SWITCH,
     .help = "a max pool of stride 2 follows the stem; on by default, off after conv3", .not_compared = true,
     .not_in_tensors = "the stem's pool", RESNET(stem_pool)},
    {"stem_channels", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "channels of a stem of one convolution, if not those of the first stage", .low = 1, .high = 65536,
     RESNET(stem_channels)},
    {"final_norm", .kind = ATT_OPTION_SWITCH,
     .help = "of pre-activation blocks: a norm and a ReLU follow the last block", RESNET(final_norm)},
    {"act_shortcut", .kind = ATT_OPTION_SWITCH,
     .help =
         "of pre-activation blocks: where shapes change, the shortcut begins after the block's first norm and ReLU, "
         "not before",
     .not_compared = true, RESNET(act_shortcut)},
    {"shortcut", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "where shapes change: conv (1 x 1), avg_conv (average pool, 1 x 1) or pad (zeros, option A)",
     .choice = shortcut_names, RESNET(shortcut)},
    {"layers", .kind = ATT_OPTION_TEXT, .value = "LIST", .help = "residual blocks of each stage, as 3,4,6,3",
     RESNET(layers)},
    {"width", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "channels of the first stage of residual blocks, before a bottleneck's expansion",
     .differs_as = "the width", .low = 1, .high = 65536, RESNET(width)},
    {"cardinality", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "groups of a bottleneck's 3 x 3 convolution",
     .low = 1, .high = 65536, RESNET(cardinality)},
    {"base_width", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "channels per group of that convolution, for a first stage of 64 channels", .low = 1, .high = 65536,
     RESNET(base_width)},
    {"output_stride", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help =
         "pixels of the image for a place of the last map, at most: 32 (the default), 16 or 8; stages that would have "
         "more are dilated instead of strided",
     .not_in_tensors = "the dilation", .low = 8, .high = 32, .not_compared = true, RESNET(output_stride)},
    {"stride_in_1x1", .kind = ATT_OPTION_SWITCH,
     .help = "the stride of a bottleneck is in its first 1 x 1 convolution, as in Caffe's networks, not in its 3 x 3",
     .not_compared = true, .not_in_tensors = "the place of the stride", RESNET(stride_in_1x1)},
    {"zero_init_last", .kind = ATT_OPTION_SWITCH, .help = "the last norm of a residual branch starts at 0",
     .not_compared = true, RESNET(zero_init_last)},
    {"bn_eps", .kind = ATT_OPTION_REAL, .value = "X",
     .help = "of residual networks: added to variances by batch norms; 1e-5 by default, 0 in torchvision's "
             "fasterrcnn_resnet50_fpn (COCO_V1)",
     .high = 1, .not_compared = true, RESNET(bn_eps)},
    {"attention_layers", .kind = ATT_OPTION_TEXT, .value = "LIST",
     .help = "of residual networks: convolutions that are attention instead: none, all, or a list of names, which may "
             "contain * and ?, as conv1,layer1.*.conv2",
     .not_compared = true, RESNET(attention_layers)},
    {"modules_hidden", .kind = ATT_OPTION_TEXT, .not_compared = true, .internal = true, RESNET(modules_hidden)},
};

ATT_ASSERT_SETTINGS_FIT(att_resnet_options);
const att_option_table att_resnet_table = {resnet_options, sizeof resnet_options / sizeof *resnet_options,
                                           sizeof(att_resnet_options)};

/* --- dimensions --------------------------------------------------------------------------------------------------- */

bool att_resnet_is_basic(att_resnet_block block)
{
    return block == ATT_BASIC || block == ATT_PREACT_BASIC;
}

bool att_resnet_is_preact(att_resnet_block block)
{
    return block == ATT_PREACT || block == ATT_PREACT_BASIC;
}

int att_resnet_convs(att_resnet_block block)
{
    return att_resnet_is_basic(block) ? 2 : 3;
}

int att_resnet_expansion(att_resnet_block block)
{
    return att_resnet_is_basic(block) ? 1 : 4;
}

int att_resnet_depth(att_resnet_block block, const att_stages *stages)
{
    return att_resnet_convs(block) * att_stages_total(stages) + 2;
}

int64_t att_resnet_inner(int64_t planes, int cardinality, int base_width)
{
    return planes * base_width / 64 * cardinality;
}

int att_resnet_stem_stride(const att_resnet *net)
{
    return (net->stem == ATT_CONV3 ? 1 : 2) * (net->options->stem_pool ? 2 : 1);
}

int att_resnet_stem_channels(const att_resnet *net)
{
    const int given = net->options->stem_channels;
    return given != ATT_OPTION_UNSET ? given : net->options->width;
}

/* Returns the index of `text` among the names; `text` is known to be one of the names. */
static int index_of(const char *(*name)(int index), const char *text)
{
    int index = 0;
    while (name(index + 1) && strcmp(name(index), text) != 0)
        index++;
    return index;
}

static void read_words(const att_resnet_options *options, att_resnet *net)
{
    net->block = (att_resnet_block)index_of(block_names, options->block);
    net->stem = (att_resnet_stem)index_of(stem_names, options->stem_type);
    net->shortcut = (att_resnet_shortcut)index_of(shortcut_names, options->shortcut);
}

/* --- depth and layers -------------------------------------------------------------------------------------------- */

/* Parses numbers of blocks of at most four stages; returns false for any other text. */
static bool parse_layers(const char *text, att_stages *stages)
{
    stages->count = att_text_to_list(text, 1, ATT_BLOCKS, stages->blocks, ATT_STAGES);
    return stages->count > 0 && att_stages_total(stages) <= ATT_BLOCKS;
}

static att_status read_layers(att_context *context, const att_resnet_options *options, att_resnet *net)
{
    bool small = net->stem == ATT_CONV3;
    if (parse_layers(options->layers, &net->stages) && net->stages.count >= (small ? 3 : 4))
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "layers must be the numbers of blocks of %s stages, as in \"%s\", at most %d in all, not \"%s\"",
                    small ? "3 or 4" : "4", small ? "3,3,3" : "3,4,6,3", ATT_BLOCKS, options->layers);
}

/* Networks for CIFAR are named by depth: three stages of n blocks each. */
static att_status stages_of_depth(att_context *context, att_resnet_block block, int depth, att_stages *stages)
{
    int step = 3 * att_resnet_convs(block), blocks = (depth - 2) / step;
    if (depth != step * blocks + 2 || blocks < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "depth %d: such a network is %d n + 2 layers deep (%d, %d, %d, ...)",
                        depth, step, step + 2, 2 * step + 2, 3 * step + 2);
    *stages = (att_stages){.count = 3, .blocks = {blocks, blocks, blocks}};
    return ATT_OK;
}

static att_status read_stages(att_context *context, const att_resnet_options *options, att_resnet *net)
{
    if (!options->layers[0] && net->stem != ATT_CONV3)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "stem_type %s needs four stages; give their numbers of blocks in layers", options->stem_type);
    if (!options->layers[0])
        return stages_of_depth(context, net->block, options->depth, &net->stages);
    ATT_TRY(read_layers(context, options, net));
    int depth = att_resnet_depth(net->block, &net->stages);
    if (options->depth != ATT_OPTION_UNSET && options->depth != depth)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "depth %d does not go with layers %s, which are %d deep; leave one of them out", options->depth,
                        options->layers, depth);
    return ATT_OK;
}

/* --- the rest ---------------------------------------------------------------------------------------------------- */

static att_status check_stride(att_context *context, const att_resnet_options *options, const att_resnet *net)
{
    const int stride = options->output_stride;
    if (stride != ATT_OPTION_UNSET && stride != 8 && stride != 16 && stride != 32)
        return att_fail(context, ATT_ERR_ARGUMENT, "output_stride must be 8, 16 or 32, not %d", stride);
    if (stride != ATT_OPTION_UNSET && stride < 32 && net->shortcut == ATT_AVG_CONV)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "output_stride %d needs shortcuts without pooling; this network has shortcut avg_conv", stride);
    return ATT_OK;
}

/* Options that only blocks with norms before, or only blocks with norms after the convolutions have. */
static att_status check_order(att_context *context, const att_resnet_options *options, const att_resnet *net)
{
    const bool before = att_resnet_is_preact(net->block);
    if (before && options->zero_init_last)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "zero_init_last: the branches of pre-activation blocks do not end in a norm");
    if (!before && (options->act_shortcut == 1 || options->final_norm == 0))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "act_shortcut and final_norm=false are for pre-activation blocks; this network has block %s",
                        options->block);
    return ATT_OK;
}

static att_status check_widths(att_context *context, const att_resnet_options *options, const att_resnet *net)
{
    const bool basic = att_resnet_is_basic(net->block);
    if (basic && (options->cardinality != 1 || options->base_width != 64))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "cardinality and base_width are a bottleneck's; basic blocks have 1 and 64");
    if (basic && options->stride_in_1x1)
        return att_fail(context, ATT_ERR_ARGUMENT, "stride_in_1x1 is a bottleneck's; this network has basic blocks");
    if (att_resnet_inner(options->width, options->cardinality, options->base_width) < options->cardinality)
        return att_fail(context, ATT_ERR_ARGUMENT, "width %d leaves no channel to a group with base_width %d",
                        options->width, options->base_width);
    if ((net->stem == ATT_DEEP || net->stem == ATT_DEEP_TIERED) && options->width % 8)
        return att_fail(context, ATT_ERR_ARGUMENT, "width must be a multiple of 8 with a deep stem, not %d",
                        options->width);
    if ((net->stem == ATT_DEEP || net->stem == ATT_DEEP_TIERED) && options->stem_channels != ATT_OPTION_UNSET)
        return att_fail(context, ATT_ERR_ARGUMENT, "stem_channels is for stems of one convolution; this is %s",
                        options->stem_type);
    return ATT_OK;
}

static att_status read_hidden(att_context *context, const att_resnet_options *options, att_resnet *net)
{
    att_placed_module *placed = &net->modules.items[0];
    att_module_choice choice = placed->choice;
    if (!options->modules_hidden[0])
        return ATT_OK;
    if (net->modules.count != 1 || !att_module_set_hidden(&choice, 1))
        return att_fail(context, ATT_ERR_ARGUMENT, "modules_hidden \"%s\": the module \"%s\" has no hidden width",
                        options->modules_hidden, options->modules);
    return att_widths_parse(context, options->modules_hidden, placed->at, att_stages_total(&net->stages),
                            placed->hidden);
}

att_status att_resnet_read(att_context *context, const att_resnet_options *options, att_resnet *net)
{
    *net = (att_resnet){.options = options};
    read_words(options, net);
    ATT_TRY(read_stages(context, options, net));
    ATT_TRY(check_stride(context, options, net));
    ATT_TRY(check_widths(context, options, net));
    int smallest = att_resnet_stem_stride(net) << (net->stages.count - 1);
    ATT_TRY(att_image_check_least(context, options->img_size, smallest));
    ATT_TRY(check_order(context, options, net));
    ATT_TRY(att_resnet_check_attention(context, net));
    ATT_TRY(att_modules_parse(context, &att_branch_hooks, &net->stages, options->modules, &net->modules));
    return read_hidden(context, options, net);
}

att_status att_resnet_complete(att_context *context, void *options)
{
    att_resnet_options *o = options;
    att_resnet net;
    ATT_TRY(att_resnet_read(context, o, &net));
    o->depth = att_resnet_depth(net.block, &net.stages);
    att_format_list(net.stages.blocks, net.stages.count, o->layers, sizeof o->layers);
    return ATT_OK;
}
