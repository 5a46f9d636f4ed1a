/* What the options of a residual network say, and whether they go together. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "models/module_options.h"
#include "models/resnet.h"

static const char *const block_names[] = {"basic", "bottleneck", "preact", NULL};
static const char *const stem_names[] = {"conv7", "deep", "deep_tiered", "conv3", NULL};
static const char *const shortcut_names[] = {"conv", "avg_conv", "pad", NULL};

int att_resnet_convs(att_resnet_block block)
{
    return block == ATT_BASIC ? 2 : 3;
}

int att_resnet_expansion(att_resnet_block block)
{
    return block == ATT_BASIC ? 1 : 4;
}

int att_resnet_depth(att_resnet_block block, const att_stages *stages)
{
    return att_resnet_convs(block) * att_stages_total(stages) + 2;
}

int64_t att_resnet_inner(int64_t planes, int cardinality, int base_width)
{
    return planes * base_width / 64 * cardinality;
}

const char *att_resnet_classifier(const att_model_options *options)
{
    return strcmp(options->shortcut, "pad") == 0 ? "linear" : "fc";
}

/* The index of `text` among `names`. */
static att_status read_word(att_context *context, const char *key, const char *text, const char *const *names,
                            int *index)
{
    char list[64] = "";
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], text) == 0) {
            *index = i;
            return ATT_OK;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s\"%s\"", i ? ", " : "", names[i]);
    }
    return att_fail(context, ATT_ERR_ARGUMENT, "%s must be one of %s, not \"%s\"", key, list, text);
}

static att_status read_words(att_context *context, const att_model_options *options, att_resnet *net)
{
    int block, stem, shortcut;
    ATT_TRY(read_word(context, "block", options->block, block_names, &block));
    ATT_TRY(read_word(context, "stem_type", options->stem_type, stem_names, &stem));
    ATT_TRY(read_word(context, "shortcut", options->shortcut, shortcut_names, &shortcut));
    net->block = (att_resnet_block)block;
    net->stem = (att_resnet_stem)stem;
    net->shortcut = (att_resnet_shortcut)shortcut;
    return ATT_OK;
}

/* --- depth and layers -------------------------------------------------------------------------------------------- */

/* False unless `text` is a list of numbers of blocks, of four stages at most. */
static bool parse_layers(const char *text, att_stages *stages)
{
    char copy[sizeof((att_model_options *)0)->layers];
    snprintf(copy, sizeof copy, "%s", text);
    int64_t blocks;
    for (char *at = copy, *comma; at; at = comma ? comma + 1 : NULL) {
        comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        if (stages->count == ATT_STAGES || !att_text_to_i64(at, &blocks) || blocks < 1 || blocks > ATT_BLOCKS)
            return false;
        stages->blocks[stages->count++] = (int)blocks;
    }
    return att_stages_total(stages) <= ATT_BLOCKS;
}

static att_status read_layers(att_context *context, const att_model_options *options, att_resnet *net)
{
    bool small = net->stem == ATT_CONV3;
    if (parse_layers(options->layers, &net->stages) && net->stages.count >= (small ? 3 : 4))
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "layers must be the numbers of blocks of %s stages, as in \"%s\", at most %d in all, not \"%s\"",
                    small ? "3 or 4" : "4", small ? "3,3,3" : "3,4,6,3", ATT_BLOCKS, options->layers);
}

/* Networks for CIFAR are named by their depth: three stages of n blocks each. */
static att_status stages_of_depth(att_context *context, att_resnet_block block, int depth, att_stages *stages)
{
    int step = 3 * att_resnet_convs(block), blocks = (depth - 2) / step;
    if (depth != step * blocks + 2 || blocks < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "depth %d: such a network is %d n + 2 layers deep (%d, %d, %d, ...)",
                        depth, step, step + 2, 2 * step + 2, 3 * step + 2);
    *stages = (att_stages){.count = 3, .blocks = {blocks, blocks, blocks}};
    return ATT_OK;
}

static void write_layers(const att_stages *stages, char *text, size_t size)
{
    text[0] = '\0';
    for (int s = 0; s < stages->count; s++)
        snprintf(text + strlen(text), size - strlen(text), "%s%d", s ? "," : "", stages->blocks[s]);
}

static att_status read_stages(att_context *context, const att_model_options *options, att_resnet *net)
{
    if (!options->layers[0] && net->stem != ATT_CONV3)
        return att_fail(context, ATT_ERR_ARGUMENT, "stem_type %s goes before four stages: layers must say them",
                        options->stem_type);
    if (!options->layers[0])
        return stages_of_depth(context, net->block, options->depth, &net->stages);
    ATT_TRY(read_layers(context, options, net));
    int depth = att_resnet_depth(net->block, &net->stages);
    if (options->depth != 0 && options->depth != depth)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "depth %d does not go with layers %s, which are %d deep; leave one of them out", options->depth,
                        options->layers, depth);
    return ATT_OK;
}

/* --- the rest ---------------------------------------------------------------------------------------------------- */

static att_status check_widths(att_context *context, const att_model_options *options, const att_resnet *net)
{
    if (net->block == ATT_BASIC && (options->cardinality != 1 || options->base_width != 64))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "cardinality and base_width are a bottleneck's; basic blocks have 1 and 64");
    if (att_resnet_inner(options->width, options->cardinality, options->base_width) < options->cardinality)
        return att_fail(context, ATT_ERR_ARGUMENT, "width %d leaves no channel to a group with base_width %d",
                        options->width, options->base_width);
    if ((net->stem == ATT_DEEP || net->stem == ATT_DEEP_TIERED) && options->width % 8)
        return att_fail(context, ATT_ERR_ARGUMENT, "width must be a multiple of 8 with a deep stem, not %d",
                        options->width);
    return ATT_OK;
}

static att_status read_hidden(att_context *context, const att_model_options *options, att_resnet *net)
{
    att_module_choice choice = net->attn;
    if (!options->attn_hidden[0])
        return ATT_OK;
    if (!att_module_set_hidden(&choice, 1))
        return att_fail(context, ATT_ERR_ARGUMENT, "attn_hidden \"%s\": the module \"%s\" has no hidden width",
                        options->attn_hidden, options->attn);
    return att_widths_parse(context, options->attn_hidden, net->attn_at, att_stages_total(&net->stages),
                            net->attn_hidden);
}

att_status att_resnet_read(att_context *context, const att_model_options *options, att_resnet *net)
{
    *net = (att_resnet){.options = options};
    ATT_TRY(read_words(context, options, net));
    ATT_TRY(read_stages(context, options, net));
    ATT_TRY(check_widths(context, options, net));
    int smallest = net->stem == ATT_CONV3 ? 1 << (net->stages.count - 1) : 32;
    if (options->img_size < smallest)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "img_size %d: the network halves images until one of %d pixels is a single one; that is the "
                        "least",
                        options->img_size, smallest);
    if (strcmp(options->global_pool, "avg") != 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "global_pool must be \"avg\" in a residual network, not \"%s\"",
                        options->global_pool);
    if (net->block == ATT_PREACT && options->zero_init_last)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "zero_init_last: the branches of pre-activation blocks do not end in a norm");
    ATT_TRY(att_module_parse(context, options->attn, &net->attn));
    ATT_TRY(att_placement_parse(context, options->attn_blocks, &net->stages, net->attn_at));
    return read_hidden(context, options, net);
}

att_module_choice att_resnet_attn(const att_resnet *net, int index)
{
    att_module_choice choice = net->attn;
    if (net->attn_hidden[index] > 0)
        att_module_set_hidden(&choice, net->attn_hidden[index]);
    return choice;
}

att_status att_resnet_complete(att_context *context, att_model_options *options)
{
    att_resnet net;
    ATT_TRY(att_resnet_read(context, options, &net));
    options->depth = att_resnet_depth(net.block, &net.stages);
    write_layers(&net.stages, options->layers, sizeof options->layers);
    return ATT_OK;
}
