/* Recognises residual networks by tensor names of timm and of public implementations for CIFAR. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/checkpoint.h"
#include "networks/models/conv_layers.h"
#include "networks/models/detected_modules.h"
#include "networks/models/foreign_tensors.h"
#include "networks/models/resnet.h"

/* Scopes that any module may have: in public implementations of residual networks for CIFAR, and in SRM's. */
static const char CIFAR_SCOPE[] = "attention_module", SRM_SCOPE[] = "rclb";

enum { NAME_BYTES = 256 };

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

/* --- names ------------------------------------------------------------------------------------------------------- */

/* Returns what follows the last dot, and the part before it in `scope`; NULL without a dot, or if the part is too long.
 */
static const char *split(const char *name, char scope[NAME_BYTES])
{
    const char *dot = strrchr(name, '.');
    return dot && snprintf(scope, NAME_BYTES, "%.*s", (int)(dot - name), name) < NAME_BYTES ? dot + 1 : NULL;
}

/* Whether the name is a parameter of one of the norms. */
static bool is_norm(const char *name, const char *norms)
{
    char scope[NAME_BYTES];
    const char *parameter = split(name, scope);
    return parameter && att_checkpoint_lists("weight bias running_mean running_var", parameter) &&
           att_checkpoint_lists(norms, scope);
}

static bool is_outer(const char *name)
{
    static const char others[] =
        "conv1.weight conv1.0.weight conv1.3.weight conv1.6.weight fc.weight fc.bias linear.weight linear.bias";
    return att_checkpoint_lists(others, name) || is_norm(name, "bn1 bn conv1.1 conv1.4");
}

static bool is_inner(const char *name)
{
    static const char convs[] =
        "conv1.weight conv2.weight conv3.weight downsample.0.weight downsample.1.weight "
        "downsample.1.bias shortcut.0.weight";
    return att_checkpoint_lists(convs, name) || is_norm(name, "bn1 bn2 bn3 downsample.1 downsample.2 shortcut.1");
}

/* Parses "layer<stage>.<block>.<rest>", stages from 1; returns false for other names. */
static bool read_place(const char *name, int *stage, int *block, const char **rest)
{
    if (strncmp(name, "layer", 5) != 0)
        return false;
    *rest = name + 5;
    *stage = att_checkpoint_number(rest);
    *block = *stage >= 1 && *stage <= ATT_STAGES ? att_checkpoint_number(rest) : -1;
    return *block >= 0 && *block < ATT_BLOCKS;
}

/* The norm after the blocks, which networks with pre-activation have and timm lacks, belongs to the last block, as in
 * other families. */
int att_resnet_layer(const char *name)
{
    int stage, block;
    const char *rest;
    if (strncmp(name, "conv1.", 6) == 0 || strncmp(name, "bn1.", 4) == 0)
        return 0;
    if (strncmp(name, "bn.", 3) == 0)
        return ATT_LAYER_LAST_BLOCK;
    return read_place(name, &stage, &block, &rest) ? 1 + ATT_BLOCKS * stage + block : ATT_LAYER_HEAD;
}

/* Whether the parameter belongs to attention in place of a convolution. Both have a weight. */
static bool is_of_attention(const char *name)
{
    char scope[NAME_BYTES];
    int stage, block;
    const char *rest, *parameter = split(name, scope);
    if (!parameter || !att_checkpoint_lists("row_centers column_centers row_sharpness column_sharpness", parameter))
        return false;
    return read_place(scope, &stage, &block, &rest)
               ? att_checkpoint_lists("conv1 conv2 conv3 downsample.0 downsample.1", rest)
               : att_checkpoint_lists("conv1 conv1.0 conv1.3 conv1.6", scope);
}

/* Returns scope i under which files have a module for feature maps, the module's own scope first; NULL past the last.
 */
static const char *scope_of(const att_module *module, int i)
{
    const char *const scopes[] = {module->scope, CIFAR_SCOPE, SRM_SCOPE, module->other_scope};
    return (module->places & ATT_ON_MAPS) && i < COUNT(scopes) ? scopes[i] : NULL;
}

/* Returns what follows a scope of the module, and the scope's number in *which; NULL for names outside of its scopes.
 */
static const char *after_module_scope(const char *rest, const att_module *module, int *which)
{
    const char *own = NULL, *scope;
    for (*which = 0; !own && (scope = scope_of(module, *which)); ++*which)
        own = att_checkpoint_below(rest, scope);
    --*which;
    return own;
}

static bool is_in_module(const att_context *context, const char *rest)
{
    int which;
    bool is = false;
    for (int i = 0; i < att_module_count(context) && !is; i++)
        is = after_module_scope(rest, att_module_at(context, i), &which) != NULL;
    return is;
}

/* Writes the alternative name of a module's parameter: "fc.0.weight" for "fc1.weight"; returns false if it has none. */
static bool other_name(const att_module *module, const char *own, char *other, size_t size)
{
    for (int i = 0; i < ATT_MODULE_OTHER_NAMES && module->other_names[i][0]; i++) {
        const char *rest = att_checkpoint_below(own, module->other_names[i][0]);
        if (rest)
            return snprintf(other, size, "%s.%s", module->other_names[i][1], rest) < (int)size;
    }
    return false;
}

/* In a scope that several modules share, only exact names identify a module, not patterns. */
static bool identifies(const att_module *module, const char *own, bool own_scope)
{
    char other[NAME_BYTES];
    return strcmp(module->parameter, own) == 0 || (own_scope && att_text_matches(module->parameter, own)) ||
           (other_name(module, module->parameter, other, sizeof other) && strcmp(other, own) == 0);
}

/* Whether the file has the module's constant beside the tensor `name`; `own` is the end of `name` below the scope. */
static bool has_constant(const att_tensors *file, const att_module *module, const char *name, const char *own)
{
    char beside[NAME_BYTES];
    return module->constant &&
           snprintf(beside, sizeof beside, "%.*s%s", (int)(own - name), name, module->constant) < NAME_BYTES &&
           att_tensors_find(file, beside) >= 0;
}

typedef struct recognition {
    att_context *context;
    const att_tensors *file;
    int blocks[ATT_STAGES];
} recognition;

/* Returns the module that the tensor `name` belongs to; `rest` is its name within the block; NULL if none. If several
 * modules have the name in a shared scope, returns the module whose constant is beside the tensor, else the first
 * module without a constant. */
static const att_module *module_of(const recognition *s, const char *name, const char *rest)
{
    const att_module *found = NULL;
    for (int i = 0, which; i < att_module_count(s->context); i++) {
        const att_module *module = att_module_at(s->context, i);
        const char *own = after_module_scope(rest, module, &which);
        if (!own || !module->parameter || !identifies(module, own, which == 0))
            continue;
        if (has_constant(s->file, module, name, own))
            return module;
        if (!found && (which == 0 || !module->constant))
            found = module;
    }
    return found;
}

bool att_resnet_is_added(const att_context *context, const char *name)
{
    int stage, block;
    const char *rest;
    return is_of_attention(name) || (read_place(name, &stage, &block, &rest) && is_in_module(context, rest));
}

/* Writes alternative name *index of the parameter `own` of a module in `block`. The alternative names are all
 * combinations of the module's scopes and the parameter's names except the first. If there are not that many, returns
 * false and subtracts their number from *index. */
static bool alias_in_module(const att_module *module, const char *block, const char *own, int *index, char *other,
                            size_t size)
{
    char renamed[NAME_BYTES];
    int names = other_name(module, own, renamed, sizeof renamed) ? 2 : 1;
    const char *scope;
    for (int i = 1; (scope = scope_of(module, i / names)); i++)
        if ((*index)-- == 0)
            return snprintf(other, size, "%s.%s.%s", block, scope, i % names ? renamed : own) < (int)size;
    return false;
}

bool att_resnet_alias(const att_context *context, const char *name, int index, char *other, size_t size)
{
    static const char *const heads[] = {"fc", "linear"};
    int stage, number;
    const char *rest, *own = NULL;
    for (int h = 0; h < 2 && index == 0; h++)
        if ((own = att_checkpoint_below(name, heads[h])))
            return snprintf(other, size, "%s.%s", heads[1 - h], own) < (int)size;
    if (!read_place(name, &stage, &number, &rest))
        return false;
    if (index == 0 && (own = att_checkpoint_below(rest, "downsample")))
        return snprintf(other, size, "layer%d.%d.shortcut.%s", stage, number, own) < (int)size;
    char block[48];
    snprintf(block, sizeof block, "layer%d.%d", stage, number);
    for (int i = 0; i < att_module_count(context); i++) {
        const att_module *module = att_module_at(context, i);
        own = (module->places & ATT_ON_MAPS) ? att_checkpoint_below(rest, module->scope) : NULL;
        if (own && alias_in_module(module, block, own, &index, other, size))
            return true;
    }
    return false;
}

/* --- names of all tensors ----------------------------------------------------------------------------------------- */

/* user: the context */
static bool knows(const void *user, const char *name)
{
    int stage, block;
    const char *rest;
    return is_outer(name) || is_of_attention(name) ||
           (read_place(name, &stage, &block, &rest) && (is_inner(rest) || is_in_module(user, rest)));
}

att_foreign att_resnet_foreign(const att_context *context, const att_tensors *file)
{
    return att_foreign_find(context, file, knows, context);
}

static void read_name(recognition *s, const char *name)
{
    int stage, block;
    const char *rest;
    if (knows(s->context, name) && read_place(name, &stage, &block, &rest) && block >= s->blocks[stage - 1])
        s->blocks[stage - 1] = block + 1;
}

static bool has(const recognition *s, const char *name)
{
    return att_tensors_find(s->file, name) >= 0;
}

/* Returns the shape of a tensor of this rank with dimensions in 1..2^24; rank 0 if there is none. */
static att_shape shape_of(const recognition *s, const char *name, int rank)
{
    att_shape shape;
    return att_checkpoint_dims(s->file, name, rank, &shape) ? shape : (att_shape){.rank = 0};
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static att_status fail_shape(const recognition *s, const char *name, const char *expected)
{
    return att_fail(s->context, ATT_ERR_UNSUPPORTED, "%s: a residual network needs the tensor \"%s\" %s",
                    att_tensors_path(s->file), name, expected);
}

static att_status read_stem(const recognition *s, att_option_values *found)
{
    att_shape first = shape_of(s, "conv1.weight", 4), deep = shape_of(s, "conv1.0.weight", 4),
              second = shape_of(s, "conv1.3.weight", 4);
    if (deep.rank && second.rank)
        att_options_set_text(found, "stem_type", deep.dims[0] == second.dims[0] ? "deep" : "deep_tiered");
    else if (first.rank && (first.dims[2] == 3 || first.dims[2] == 7))
        att_options_set_text(found, "stem_type", first.dims[2] == 3 ? "conv3" : "conv7");
    else
        return fail_shape(s, "conv1.weight", "[channels, colours, 3 or 7, the same]");
    att_options_set(found, "in_chans", (double)(first.rank ? first : deep).dims[1]);
    return ATT_OK;
}

static att_status read_blocks(const recognition *s, att_option_values *found)
{
    att_shape last = shape_of(s, "layer1.0.conv3.weight", 4), middle = shape_of(s, "layer1.0.conv2.weight", 4);
    if (!middle.rank)
        return fail_shape(s, "layer1.0.conv2.weight", "[channels, channels / groups, 3, 3]");
    bool bottleneck = last.rank != 0, preact = !has(s, "bn1.weight"), final = has(s, "bn.weight");
    if (!bottleneck)
        att_options_set(found, "stride_in_1x1", 0);
    static const char *const names[2][2] = {{"basic", "bottleneck"}, {"preact_basic", "preact"}};
    att_options_set_text(found, "block", names[preact][bottleneck]);
    if (preact)
        att_options_set(found, "final_norm", final);
    if (preact && (!bottleneck || !final)) /* as in Wide ResNets and kuangliu's networks */
        att_options_set(found, "act_shortcut", 1);
    int64_t width = bottleneck ? last.dims[0] / 4 : middle.dims[0];
    int64_t groups = middle.dims[0] % middle.dims[1] == 0 ? middle.dims[0] / middle.dims[1] : 0;
    int64_t base = bottleneck && width && groups ? 64 * middle.dims[0] / (width * groups) : 64;
    if (width < 1 || width > 1 << 16 || groups < 1 || base < 1 || base > 1 << 16 ||
        (bottleneck && att_resnet_inner(width, (int)groups, (int)base) != middle.dims[0]))
        return att_fail(
            s->context, ATT_ERR_UNSUPPORTED,
            "%s: \"layer1.0.conv2.weight\" has %lld channels in a block of %lld, which no block has here: it is "
            "a sign of a pruned network",
            att_tensors_path(s->file), (long long)middle.dims[0],
            (long long)(bottleneck ? last.dims[0] : middle.dims[0]));
    att_options_set(found, "width", (double)width);
    att_shape stem = shape_of(s, "conv1.weight", 4);
    if (stem.rank && stem.dims[0] != width)
        att_options_set(found, "stem_channels", (double)stem.dims[0]);
    att_options_set(found, "cardinality", bottleneck ? (double)groups : 1);
    att_options_set(found, "base_width", (double)base);
    return ATT_OK;
}

/* Refuses deep stems of other widths than timm's networks with named stems have. */
static att_status check_deep_stem(const recognition *s, const att_option_values *found)
{
    const bool tiered = strcmp(att_options_text(found, "stem_type"), "deep_tiered") == 0;
    const int64_t width = (int64_t)att_options_number(found, "width", 0),
                  wanted[] = {tiered ? 3 * (width / 8) : width / 2, width / 2, width};
    static const char *const convs[] = {"conv1.0.weight", "conv1.3.weight", "conv1.6.weight"};
    int64_t has[3];
    bool same = true;
    for (int i = 0; i < 3; i++) {
        const att_shape shape = shape_of(s, convs[i], 4);
        has[i] = shape.rank ? shape.dims[0] : 0;
        same = same && has[i] == wanted[i];
    }
    if (!shape_of(s, convs[0], 4).rank || same)
        return ATT_OK;
    return att_fail(s->context, ATT_ERR_UNSUPPORTED,
                    "%s: the convolutions of its stem have %lld, %lld and %lld channels; a network of this width has "
                    "%lld, %lld and %lld here",
                    att_tensors_path(s->file), (long long)has[0], (long long)has[1], (long long)has[2],
                    (long long)wanted[0], (long long)wanted[1], (long long)wanted[2]);
}

/* Reads the kind of shortcut from the second stage, where shapes change. */
static void read_shortcut(const recognition *s, att_option_values *found)
{
    bool pools = shape_of(s, "layer2.0.downsample.1.weight", 4).rank != 0;
    bool changes = has(s, "layer2.0.downsample.0.weight") || has(s, "layer2.0.shortcut.0.weight");
    att_options_set_text(found, "shortcut", pools ? "avg_conv" : changes ? "conv" : "pad");
}

static att_status read_stages(const recognition *s, att_option_values *found, att_stages *stages)
{
    bool three = strcmp(att_options_text(found, "stem_type"), "conv3") == 0 && s->blocks[3] == 0;
    *stages = (att_stages){.count = three ? 3 : 4};
    memcpy(stages->blocks, s->blocks, sizeof stages->blocks);
    for (int i = 0; i < ATT_STAGES; i++)
        if ((i < stages->count) != (s->blocks[i] > 0))
            return att_fail(s->context, ATT_ERR_UNSUPPORTED,
                            "%s: a residual network with this first convolution has %d stages",
                            att_tensors_path(s->file), stages->count);
    if (att_stages_total(stages) > ATT_BLOCKS)
        return att_fail(s->context, ATT_ERR_UNSUPPORTED, "%s: there are more than %d blocks", att_tensors_path(s->file),
                        ATT_BLOCKS);
    bool basic = !has(s, "layer1.0.conv3.weight");
    char layers[4 * ATT_STAGES + 1];
    att_options_set(found, "depth", att_resnet_depth(basic ? ATT_BASIC : ATT_BOTTLENECK, stages));
    att_format_list(stages->blocks, stages->count, layers, sizeof layers);
    att_options_set_text(found, "layers", layers);
    return ATT_OK;
}

/* --- attention in place of convolutions ----------------------------------------------------------------------------
 */

static bool is_attention(const recognition *s, const char *conv)
{
    return att_checkpoint_has(s->file, "%s.row_centers", conv);
}

static bool has_attention(const recognition *s)
{
    bool has_any = false;
    for (int i = 0; i < att_tensors_count(s->file) && !has_any; i++)
        has_any = is_of_attention(att_tensors_at(s->file, i).name);
    return has_any;
}

/* Parses the options that the tensors show, with which layers are attention. options: what *net points to */
static att_status parse_network(const recognition *s, const att_option_values *found, const char *attention_layers,
                                att_resnet_options *options, att_resnet *net)
{
    att_options_clear(&att_resnet_table, options);
    ATT_TRY(att_options_read(s->context, &att_resnet_table, found, options));
    options->img_size[0] = options->img_size[1] = 1 << 10; /* enough for every network */
    options->zero_init_last = 0;
    snprintf(options->attention_layers, sizeof options->attention_layers, "%s", attention_layers);
    return att_resnet_read(s->context, options, net);
}

typedef struct attending {
    const recognition *s;
    const att_resnet *net;
} attending;

static bool conv_at(const void *user, int index, char *name, size_t size)
{
    return att_resnet_conv(((const attending *)user)->net, index, name, size);
}

static bool attends(const void *user, int index, const char *name)
{
    (void)index;
    return is_attention(((const attending *)user)->s, name);
}

/* Leaves the option out if the names are too long: then it must be given, where a pattern may be short. The other
 * options are known already. */
static att_status read_attention(const recognition *s, att_option_values *found)
{
    char text[ATT_OPTION_TEXT_BYTES] = "none";
    att_resnet_options options;
    att_resnet net;
    if (has_attention(s)) {
        ATT_TRY(parse_network(s, found, "", &options, &net));
        const att_conv_names names = {.at = conv_at, .attends = attends, .user = &(attending){s, &net}};
        if (!att_conv_names_format(&names, text, sizeof text))
            return ATT_OK;
    }
    att_options_set_text(found, "attention_layers", text);
    return ATT_OK;
}

/* Lists the first layers of attention. */
static att_status fail_unnamed(const recognition *s, const att_resnet *net)
{
    enum { LISTED = 6 };
    char conv[64], names[LISTED * sizeof conv] = "";
    int count = 0;
    for (int i = 0; att_resnet_conv(net, i, conv, sizeof conv); i++)
        if (is_attention(s, conv) && count++ < LISTED)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", count > 1 ? ", " : "", conv);
    return att_fail(s->context, ATT_ERR_UNSUPPORTED,
                    "%s: the names of its %d layers of attention take more than %d bytes; give the option "
                    "attention_layers, patterns such as layer1.*.conv1 that match them: %s%s",
                    att_tensors_path(s->file), count, ATT_OPTION_TEXT_BYTES - 1, names, count > LISTED ? ", ..." : "");
}

/* Refuses to leave out attention that the file has. The reverse, attention for a convolution of the file, is how a
 * training starts from convolutions. */
att_status att_resnet_check_undetermined(att_context *context, const att_tensors *file,
                                         const att_option_sources *sources)
{
    const recognition s = {.context = context, .file = file};
    const char *given = att_options_text(sources->given, "attention_layers");
    att_resnet_options options;
    att_resnet net;
    char conv[64];
    if (!has_attention(&s))
        return ATT_OK;
    ATT_TRY(parse_network(&s, sources->found, given, &options, &net));
    if (!*given)
        return att_options_find(sources->found, "attention_layers") ? ATT_OK : fail_unnamed(&s, &net);
    for (int i = 0; att_resnet_conv(&net, i, conv, sizeof conv); i++)
        if (is_attention(&s, conv) && !att_resnet_attends(&net, conv))
            return att_fail(
                context, ATT_ERR_MISMATCH,
                "%s: the layer \"%s\" is attention in this file, and attention_layers, \"%s\", does not name it; "
                "leave out the option, or first make the layer a convolution with attscope convert "
                "--to-convolution",
                att_tensors_path(file), conv, given);
    return ATT_OK;
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

/* Returns the channels of a block's branch, in a block of either kind. */
static int64_t channels_of(const recognition *s, const char *block)
{
    char name[48];
    snprintf(name, sizeof name, "%s.conv3.weight", block);
    att_shape shape = shape_of(s, name, 4);
    snprintf(name, sizeof name, "%s.conv2.weight", block);
    shape = shape.rank ? shape : shape_of(s, name, 4);
    return shape.rank ? shape.dims[0] : 0;
}

static int tensors_of(const recognition *s, const att_module *module, const char *block)
{
    int count = 0, which;
    for (int i = 0; i < att_tensors_count(s->file); i++) {
        const char *name = att_tensors_at(s->file, i).name, *rest = att_checkpoint_below(name, block);
        count += rest && !att_checkpoint_ignores(s->context, s->file, name) && after_module_scope(rest, module, &which);
    }
    return count;
}

static void describe_block(const att_block_layout *places, const att_module *module, int hook, int block,
                           att_module_block *site)
{
    (void)hook;
    const int stage = att_stages_find(&places->stages, &block);
    *site = (att_module_block){.place = ATT_ON_MAPS};
    snprintf(site->block, sizeof site->block, "layer%d.%d", stage + 1, block);
    site->channels = channels_of(places->user, site->block);
    site->tensors = tensors_of(places->user, module, site->block);
}

static att_block_layout places_of(const recognition *s, const att_stages *stages)
{
    return (att_block_layout){.file = s->file,
                              .hooks = &att_branch_hooks,
                              .stages = *stages,
                              .alias = att_resnet_alias,
                              .site = describe_block,
                              .user = s};
}

static void note_modules(const recognition *s, const att_stages *stages, att_detected_modules *modules)
{
    for (int i = 0; i < att_tensors_count(s->file); i++) {
        const char *name = att_tensors_at(s->file, i).name, *rest;
        int stage, block;
        if (att_checkpoint_ignores(s->context, s->file, name) || !read_place(name, &stage, &block, &rest) ||
            block >= stages->blocks[stage - 1])
            continue;
        const att_module *module = module_of(s, name, rest);
        if (module)
            att_detected_add(s->context, modules, module, ATT_AFTER_BRANCH,
                             att_stages_before(stages, stage - 1) + block);
    }
}

/* Refuses norms other than batch norm, which have no running statistics. */
static att_status check_norms(const recognition *s)
{
    static const char *const norms[] = {"bn1", "layer1.0.bn1"};
    for (int i = 0; i < COUNT(norms); i++)
        if (att_checkpoint_has(s->file, "%s.weight", norms[i]) &&
            !att_checkpoint_has(s->file, "%s.running_mean", norms[i]))
            return att_fail(s->context, ATT_ERR_UNSUPPORTED,
                            "%s: \"%s\" has no running statistics, as in networks with group norm; those here have "
                            "batch norm",
                            att_tensors_path(s->file), norms[i]);
    return ATT_OK;
}

/* Sets all options but "modules". */
static att_status read_network(recognition *s, att_option_values *found, att_stages *stages)
{
    const att_foreign foreign = att_resnet_foreign(s->context, s->file);
    ATT_TRY(att_foreign_refuse(s->context, s->file, &foreign, "residual network here"));
    for (int i = 0; i < att_tensors_count(s->file); i++)
        read_name(s, att_tensors_at(s->file, i).name);
    ATT_TRY(check_norms(s));
    ATT_TRY(read_stem(s, found));
    ATT_TRY(read_blocks(s, found));
    ATT_TRY(check_deep_stem(s, found));
    read_shortcut(s, found);
    ATT_TRY(read_stages(s, found, stages));
    bool has_head = has(s, "fc.weight") || has(s, "fc.bias") || has(s, "linear.weight") || has(s, "linear.bias");
    att_shape head = shape_of(s, has(s, "fc.weight") ? "fc.weight" : "linear.weight", 2);
    if (head.rank || !has_head)
        att_options_set(found, "num_classes", head.rank ? (double)head.dims[0] : 0);
    return ATT_OK;
}

att_status att_resnet_recognise(att_context *context, const att_tensors *file, att_option_values *found)
{
    recognition s = {.context = context, .file = file};
    att_stages stages;
    att_detected_modules modules = {0};
    ATT_TRY(read_network(&s, found, &stages));
    note_modules(&s, &stages, &modules);
    att_options_set_text(found, "modules", "none");
    ATT_TRY(read_attention(&s, found));
    att_block_layout places = places_of(&s, &stages);
    return att_detected_write(context, &places, &modules, found);
}

/* hidden: widths of the blocks that have the module, in order */
static att_status write_hidden(const recognition *s, const int *hidden, int count, att_resnet_options *options)
{
    if (att_widths_format(hidden, count, options->modules_hidden, sizeof options->modules_hidden))
        return ATT_OK;
    return att_fail(s->context, ATT_ERR_UNSUPPORTED,
                    "%s: the hidden widths of its modules differ from block to block and take more than %zu bytes",
                    att_tensors_path(s->file), sizeof options->modules_hidden - 1);
}

/* If the network has one module, and the file has the same module in the same blocks, its hidden widths are taken from
 * the file. */
att_status att_resnet_fit(att_context *context, const att_tensors *file, void *settings)
{
    att_resnet_options *options = settings;
    recognition s = {.context = context, .file = file};
    att_option_values found = att_options_none();
    att_resnet net;
    att_stages stages;
    att_detected_modules modules = {0};
    bool own;
    options->modules_hidden[0] = '\0';
    ATT_TRY(read_network(&s, &found, &stages));
    ATT_TRY(att_resnet_read(context, options, &net));
    note_modules(&s, &stages, &modules);
    const att_placed_module *placed = &net.modules.items[0];
    const att_detected_module *only = &modules.items[0];
    if (modules.count != 1 || net.modules.count != 1 || placed->choice.module != only->module ||
        memcmp(only->at, placed->at, sizeof placed->at) != 0)
        return ATT_OK;
    att_module_block sites[ATT_BLOCKS];
    int hidden[ATT_BLOCKS];
    att_block_layout at = places_of(&s, &stages);
    att_module_places places = {file, sites, att_detected_sites(&at, only, sites), att_resnet_alias};
    ATT_TRY(att_module_options_fit(context, &places, &placed->choice, options->modules, hidden, &own));
    return own ? write_hidden(&s, hidden, places.count, options) : ATT_OK;
}
