/* The convolutions of a residual network by name, and which of them are attention instead. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/conv_layers.h"
#include "networks/models/resnet.h"

static const char ALL[] = "all", NONE[] = "none";

enum { DEEP_CONVS = 3 };

static bool is_deep(const att_resnet *net)
{
    return net->stem == ATT_DEEP || net->stem == ATT_DEEP_TIERED;
}

/* Whether a block has a convolution in its shortcut, because shapes change there. block: within its stage */
static bool has_shortcut_conv(const att_resnet *net, int stage, int block)
{
    const int first = net->options->width * att_resnet_expansion(net->block);
    return net->shortcut != ATT_PAD && block == 0 && (stage > 0 || att_resnet_stem_channels(net) != first);
}

bool att_resnet_conv(const att_resnet *net, int index, char *name, size_t size)
{
    int of_stem = is_deep(net) ? DEEP_CONVS : 1;
    if (index < 0)
        return false;
    if (index < of_stem)
        return snprintf(name, size, is_deep(net) ? "conv1.%d" : "conv1", 3 * index) < (int)size;
    index -= of_stem;
    for (int s = 0; s < net->stages.count; s++)
        for (int b = 0; b < net->stages.blocks[s]; b++) {
            int convs = att_resnet_convs(net->block);
            if (index < convs)
                return snprintf(name, size, "layer%d.%d.conv%d", s + 1, b, index + 1) < (int)size;
            index -= convs;
            if (!has_shortcut_conv(net, s, b))
                continue;
            if (index-- == 0)
                return snprintf(name, size, "layer%d.%d.downsample.%d", s + 1, b, net->shortcut == ATT_AVG_CONV) <
                       (int)size;
        }
    return false;
}

bool att_resnet_convolution(att_context *context, const void *options, int index, char *name, size_t size)
{
    att_resnet net;
    return att_resnet_read(context, options, &net) == ATT_OK && att_resnet_conv(&net, index, name, size);
}

/* --- the option attention_layers ---------------------------------------------------------------------------------- */

static bool matches(const char *pattern, const char *conv)
{
    return strcmp(pattern, ALL) == 0 || att_text_matches(pattern, conv);
}

bool att_resnet_attends(const att_resnet *net, const char *conv)
{
    const char *at = net->options->attention_layers;
    char name[ATT_OPTION_TEXT_BYTES];
    if (strcmp(at, NONE) == 0)
        return false;
    while (att_conv_next_name(&at, name))
        if (matches(name, conv))
            return true;
    return false;
}

/* Refuses a name or pattern of no convolution. */
static att_status check_name(att_context *context, const att_resnet *net, const char *pattern)
{
    char conv[64], nearest[64] = "";
    int distance = (int)strlen(pattern) / 2 + 1;
    for (int i = 0; att_resnet_conv(net, i, conv, sizeof conv); i++) {
        int other = att_text_distance(pattern, conv);
        if (matches(pattern, conv))
            return ATT_OK;
        if (other < distance) {
            distance = other;
            snprintf(nearest, sizeof nearest, "%s", conv);
        }
    }
    return att_fail(context, ATT_ERR_ARGUMENT, "attention_layers: \"%s\" matches no convolution of this network%s%s%s",
                    pattern, *nearest ? "; did you mean \"" : ", whose first is conv1", nearest, *nearest ? "\"?" : "");
}

att_status att_resnet_check_attention(att_context *context, const att_resnet *net)
{
    const char *at = net->options->attention_layers;
    char name[ATT_OPTION_TEXT_BYTES];
    if (!*at || strcmp(at, NONE) == 0)
        return ATT_OK;
    while (att_conv_next_name(&at, name))
        ATT_TRY(check_name(context, net, name));
    return ATT_OK;
}
