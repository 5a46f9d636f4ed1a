/* Recognises Swin Transformers by timm's tensor names. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/checkpoint.h"
#include "networks/models/foreign_tensors.h"
#include "networks/models/patches.h"
#include "networks/models/swin.h"
#include "networks/models/token_tensors.h"

static const char outer_names[] =
    "patch_embed.proj.weight patch_embed.proj.bias patch_embed.norm.weight patch_embed.norm.bias head.fc.weight "
    "head.fc.bias";
static const char last_names[] = "norm.weight norm.bias"; /* of versions with a last norm */
static const char stage_names[] = "downsample.norm.weight downsample.norm.bias downsample.reduction.weight";
static const char block_names[] =
    "norm1.weight norm1.bias attn.qkv.weight attn.proj.weight attn.proj.bias norm2.weight norm2.bias mlp.fc1.weight "
    "mlp.fc1.bias mlp.fc2.weight mlp.fc2.bias";

/* Names in the blocks of one version. */
static const struct version_names {
    const char *version, *names;
} version_names[] = {
    {ATT_SWIN_V1, "attn.relative_position_bias_table attn.qkv.bias"},
    {ATT_SWIN_V2,
     "attn.logit_scale attn.q_bias attn.v_bias attn.cpb_mlp.0.weight attn.cpb_mlp.0.bias "
     "attn.cpb_mlp.2.weight"},
    {ATT_SWIN_V2_CR,
     "attn.logit_scale attn.qkv.bias attn.meta_mlp.fc1.weight attn.meta_mlp.fc1.bias "
     "attn.meta_mlp.fc2.weight attn.meta_mlp.fc2.bias norm3.weight norm3.bias"},
};
enum { VERSIONS = sizeof version_names / sizeof *version_names };

enum { NAME_SIZE = 80 };

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Parses "<stages>.<stage>.<rest>" and, where there is one, "blocks.<block>.<rest>"; *block is -1 without a block. */
static bool read_place_in(const char *stages, const char *name, int *stage, int *block, const char **rest)
{
    const char *inner;
    *stage = att_checkpoint_block(name, stages, rest);
    if (*stage < 0 || *stage >= ATT_STAGES)
        return false;
    *block = att_checkpoint_block(*rest, "blocks", &inner);
    if (*block >= 0)
        *rest = inner;
    return *block < ATT_BLOCKS;
}

/* The same for the stages of any version. */
static bool read_place(const char *name, int *stage, int *block, const char **rest)
{
    return read_place_in("layers", name, stage, block, rest) || read_place_in("stages", name, stage, block, rest);
}

/* As timm's group_matcher(): the patch merging before a stage belongs to its first block. */
int att_swin_layer(const char *name)
{
    int stage, block;
    const char *rest;
    if (strncmp(name, "patch_embed.", 12) == 0)
        return 0;
    if (strncmp(name, "norm.", 5) == 0)
        return ATT_LAYER_LAST_BLOCK;
    if (!read_place(name, &stage, &block, &rest))
        return ATT_LAYER_HEAD;
    return 1 + ATT_BLOCKS * stage + (block < 0 ? 0 : block);
}

bool att_swin_is_added(const att_context *context, const char *name)
{
    int stage, block;
    const char *rest;
    return read_place(name, &stage, &block, &rest) && block >= 0 &&
           att_token_owns(context, &att_token_places_of_blocks, rest);
}

typedef struct recognition {
    att_context *context;
    const att_tensors *file;
    const att_swin_version *version;
    att_stages depths;
    int64_t width; /* of the first stage */
    double mlp_ratio;
    int heads[ATT_STAGES]; /* 0: unknown */
} recognition;

/* The dimensions of tensor `rest` of a block; NULL without such a tensor of this rank. */
static const int64_t *block_dims(const recognition *r, int stage, int block, const char *rest, int rank,
                                 att_shape *shape)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%s.%d.blocks.%d.%s", r->version->stages, stage, block, rest);
    return att_checkpoint_dims(r->file, name, rank, shape);
}

static bool has_block_tensor(const recognition *r, int stage, int block, const char *rest)
{
    return att_checkpoint_has(r->file, "%s.%d.blocks.%d.%s", r->version->stages, stage, block, rest);
}

static bool has_attention(const recognition *r, int stage, int block)
{
    return has_block_tensor(r, stage, block, "attn.qkv.weight");
}

/* --- the version -------------------------------------------------------------------------------------------------- */

/* Whether any block has the tensor `rest`. */
static bool has_in_blocks(const att_tensors *file, const char *rest)
{
    int stage, block;
    const char *found;
    for (int i = 0; i < att_tensors_count(file); i++)
        if (read_place(att_tensors_at(file, i).name, &stage, &block, &found) && block >= 0 && strcmp(found, rest) == 0)
            return true;
    return false;
}

/* Whether the norm of a patch merging has as many channels as the linear layer has outputs, not inputs. */
static bool norm_follows_merge(const att_tensors *file)
{
    att_shape norm, layer;
    const int64_t *channels = att_checkpoint_dims(file, "layers.1.downsample.norm.weight", 1, &norm);
    const int64_t *dims = att_checkpoint_dims(file, "layers.1.downsample.reduction.weight", 2, &layer);
    return channels && dims && channels[0] == dims[0];
}

/* Modules in place of attention may leave no block with the tensors of the version's attention. */
static const char *version_of(const att_tensors *file)
{
    if (att_checkpoint_has(file, "stages.0.blocks.0.norm1.weight"))
        return ATT_SWIN_V2_CR;
    if (has_in_blocks(file, "attn.relative_position_bias_table"))
        return ATT_SWIN_V1;
    return has_in_blocks(file, "attn.logit_scale") || norm_follows_merge(file) ? ATT_SWIN_V2 : ATT_SWIN_V1;
}

/* --- all names ---------------------------------------------------------------------------------------------------- */

typedef struct swin_names {
    const att_context *context;
    const att_swin_version *version;
} swin_names;

static bool is_block_name(const swin_names *names, const char *rest)
{
    const struct version_names *of = version_names;
    while (strcmp(of->version, names->version->name) != 0)
        of++;
    return att_checkpoint_lists(block_names, rest) || att_checkpoint_lists(of->names, rest) ||
           att_token_owns(names->context, &att_token_places_of_blocks, rest);
}

static bool is_outer_name(const swin_names *names, const char *name)
{
    return att_checkpoint_lists(outer_names, name) ||
           (names->version->last_norm && att_checkpoint_lists(last_names, name));
}

/* timm merges patches at the start of a stage, but not of the first. The authors merge at the end, but not of the last.
 */
static bool is_placed(const swin_names *names, const char *name, int *stage, int *block)
{
    const char *rest;
    return read_place_in(names->version->stages, name, stage, block, &rest) &&
           (*block < 0 ? *stage > 0 && att_checkpoint_lists(stage_names, rest) : is_block_name(names, rest));
}

static bool knows(const void *user, const char *name)
{
    int stage, block;
    return is_outer_name(user, name) || is_placed(user, name, &stage, &block);
}

att_foreign att_swin_foreign(const att_context *context, const att_tensors *file)
{
    const swin_names names = {context, att_swin_version_named(version_of(file))};
    return att_foreign_find(context, file, knows, &names);
}

static void read_name(recognition *r, const char *name)
{
    int stage, block;
    if (!is_placed(&(swin_names){r->context, r->version}, name, &stage, &block))
        return;
    if (stage >= r->depths.count)
        r->depths.count = stage + 1;
    if (block >= r->depths.blocks[stage])
        r->depths.blocks[stage] = block + 1;
}

static att_status read_names(recognition *r)
{
    const char *path = att_tensors_path(r->file);
    const att_foreign foreign = att_swin_foreign(r->context, r->file);
    ATT_TRY(att_foreign_refuse(r->context, r->file, &foreign, "Swin Transformer here"));
    for (int i = 0; i < att_tensors_count(r->file); i++)
        read_name(r, att_tensors_at(r->file, i).name);
    for (int s = 0; s < r->depths.count; s++)
        if (r->depths.blocks[s] == 0)
            return att_fail(r->context, ATT_ERR_UNSUPPORTED, "%s: there is no block \"%s.%d.blocks.0\"", path,
                            r->version->stages, s);
    if (att_stages_total(&r->depths) > ATT_BLOCKS)
        return att_fail(r->context, ATT_ERR_UNSUPPORTED, "%s: there are more than %d blocks", path, ATT_BLOCKS);
    return ATT_OK;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Heads of a block's own attention: columns of the table, or factors of the cosines. */
static int64_t read_kept_heads(const recognition *r, int stage, int block, int *side)
{
    att_shape shape;
    const int64_t *table = block_dims(r, stage, block, "attn.relative_position_bias_table", 2, &shape);
    *side = table ? att_relative_side(table[0]) : 0;
    if (!r->version->cosine)
        return table ? table[1] : 0;
    const int64_t *factors = block_dims(r, stage, block, "attn.logit_scale", r->version->cosine, &shape);
    return factors ? factors[0] : 0;
}

/* Sets heads and side of the square windows of a stage, from the first block with an attention; 0: unknown. Modules in
 * place of heads leave fewer heads, and fewer inner channels in proportion. */
static void read_attention(const recognition *r, int stage, int *heads, int *side)
{
    *heads = *side = 0;
    for (int b = 0; b < r->depths.blocks[stage] && *heads == 0; b++) {
        att_shape shape;
        const int64_t *qkv = block_dims(r, stage, b, "attn.qkv.weight", 2, &shape);
        int64_t kept = read_kept_heads(r, stage, b, side);
        if (!qkv || kept == 0 || qkv[0] % (3 * kept))
            continue;
        int64_t head_width = qkv[0] / (3 * kept);
        *heads = qkv[1] % head_width == 0 ? (int)(qkv[1] / head_width) : 0;
    }
}

/* Sides of the first stage's grid that give the windows of the tables, in tokens. */
typedef struct grid_range {
    int low, high, likely;
} grid_range;

/* Whether a grid of this side gives these windows, those of the first stage clipped to the grid of each stage. *steps:
 * how many stages fill up their windows, and twice how many fill up their grid before it is halved. */
static bool gives_windows(int side, const int *windows, int stages, int *steps)
{
    *steps = 0;
    for (int s = 0; s < stages; s++, side = (side + 1) / 2) {
        if (windows[s] != (side < windows[0] ? side : windows[0]))
            return false;
        *steps += (side % windows[s] != 0) + (s + 1 < stages ? 2 * (side % 2) : 0);
    }
    return true;
}

/* Returns false if no window is clipped: then they say nothing of the grid. The likely grid is the one that is filled
 * up least, the largest if there are several. */
static bool find_grid(const int *windows, int stages, grid_range *range)
{
    int least = INT_MAX, steps, clipped = 0;
    *range = (grid_range){0};
    while (clipped < stages && windows[clipped] >= windows[0])
        clipped++;
    const int64_t most = clipped < stages ? (int64_t)windows[clipped] << clipped : 0;
    for (int side = windows[0]; side <= most; side++) {
        if (!gives_windows(side, windows, stages, &steps))
            continue;
        range->low = range->low ? range->low : side;
        range->high = side;
        if (steps <= least)
            range->likely = side, least = steps;
    }
    return range->high > 0;
}

/* The same for the windows in the options. */
static bool find_grid_of(const att_option_values *found, grid_range *range)
{
    int windows[ATT_STAGES];
    const int count = att_text_to_list(att_options_text(found, "window_size"), 1, 65536, windows, ATT_STAGES);
    return count > 2 && find_grid(windows, count, range);
}

void att_swin_disambiguate(const att_tensors *file, const att_known *known, att_option_values *found)
{
    grid_range range;
    int own[2];
    (void)file;
    if (att_patches_grid(known->own, att_options_find(found, "patch_size"), own) && find_grid_of(found, &range) &&
        own[0] == own[1] && own[0] >= range.low && own[0] <= range.high)
        att_option_copy("img_size", known->own, found);
}

void att_swin_explain_size(const att_tensors *file, const att_option_values *found, att_text *text)
{
    grid_range range = {0};
    (void)file;
    find_grid_of(found, &range);
    const int patch = (int)att_options_find(found, "patch_size")->numbers[0];
    att_text_append(text, "its windows of %s tokens are those of images of %d to %d pixels",
                    att_options_text(found, "window_size"), range.low * patch, range.high * patch);
}

static void read_stages(recognition *r, att_option_values *found)
{
    char text[ATT_OPTION_TEXT_BYTES];
    int windows[ATT_STAGES][2] = {{0}};
    bool all_heads = true, all_windows = true, same = true;
    grid_range range;
    for (int s = 0; s < r->depths.count; s++) {
        read_attention(r, s, &r->heads[s], &windows[s][0]);
        windows[s][1] = windows[s][0];
        all_heads = all_heads && r->heads[s] > 0;
        all_windows = all_windows && windows[s][0] > 0;
        same = same && windows[s][0] == windows[0][0];
    }
    att_format_list(r->depths.blocks, r->depths.count, text, sizeof text);
    att_options_set_text(found, "depths", text);
    att_format_list(r->heads, r->depths.count, text, sizeof text);
    if (all_heads)
        att_options_set_text(found, "stage_heads", text);
    att_swin_format_windows(windows, r->depths.count, text, sizeof text);
    if (all_windows && (same || r->depths.count != 2)) /* a list of two is height and width */
        att_options_set_text(found, "window_size", text);
    if (find_grid_of(found, &range))
        att_patches_read_side(range.likely, found);
}

static void read_bias(const recognition *r, att_option_values *found)
{
    const char *name = r->version->qv_bias ? "attn.q_bias" : "attn.qkv.bias";
    for (int s = 0; s < r->depths.count; s++)
        for (int b = 0; b < r->depths.blocks[s]; b++) {
            if (!has_attention(r, s, b))
                continue;
            att_options_set(found, "qkv_bias", has_block_tensor(r, s, b, name));
            return;
        }
}

/* Sets the options of which norms follow the blocks. The last block of the last stage always has one. */
static void read_extra_norms(const recognition *r, att_option_values *found)
{
    int period = 0;
    bool stage_end = false;
    for (int s = 0; s < r->depths.count; s++)
        for (int b = 0; b + 1 < r->depths.blocks[s] && !period; b++)
            period = has_block_tensor(r, s, b, "norm3.weight") ? b + 1 : 0;
    for (int s = 0; s + 1 < r->depths.count; s++) {
        int depth = r->depths.blocks[s];
        stage_end |= has_block_tensor(r, s, depth - 1, "norm3.weight") && (!period || depth % period);
    }
    att_options_set(found, "extra_norm_period", period);
    att_options_set(found, "extra_norm_stage", stage_end);
}

static void read_widths(recognition *r, att_option_values *found)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(r->file, "head.fc.weight", 2, &shape);
    if (dims)
        att_options_set(found, "num_classes", (double)dims[0]);
    else if (!att_checkpoint_has(r->file, "head.fc.weight") && !att_checkpoint_has(r->file, "head.fc.bias"))
        att_options_set(found, "num_classes", 0);
    r->width = (int64_t)att_options_number(found, "embed_dim", 1);
    dims = block_dims(r, 0, 0, "mlp.fc1.weight", 2, &shape);
    r->mlp_ratio = dims ? att_mlp_ratio((int)r->width, dims[0]) : 4;
    if (dims)
        att_options_set(found, "mlp_ratio", r->mlp_ratio);
}

/* As timm, takes the window of a file's table for a square if it has as many rows as a square's. */
bool att_swin_regrids(const void *options, const att_option_values *file_options, const char *name, att_shape file,
                      att_shape own, att_regrid *grid)
{
    (void)file_options;
    att_swin net;
    int stage, block;
    const char *rest;
    *grid = (att_regrid){.options = NULL};
    if (!read_place(name, &stage, &block, &rest) || strcmp(rest, "attn.relative_position_bias_table") != 0)
        return false;
    *grid = (att_regrid){.options = "window_size and img_size", .width = own.dims[1], .way = ATT_REGRID_SHIFTS};
    if (file.rank != 2 || file.dims[1] != own.dims[1] || file.dims[0] == own.dims[0] || file.dims[0] > 1 << 24)
        return false;
    int side = att_relative_side(file.dims[0]);
    if (side == 0 || att_swin_measure(NULL, options, &net) != ATT_OK || stage >= net.depths.count)
        return false;
    for (int i = 0; i < 2; i++) {
        grid->from[i] = 2 * side - 1;
        grid->to[i] = 2 * net.stages[stage].window[i] - 1;
    }
    return true;
}

/* --- options that the tensors contradict -------------------------------------------------------------------------- */

/* Sets the windows of all stages for these options and `window_size`. Returns false if they do not fit together. */
static bool windows_of(const att_option_values *options, const char *window_size, int (*windows)[2], int *stages)
{
    att_option_values changed = *options;
    att_swin_options o;
    att_swin net;
    att_options_set_text(&changed, "window_size", window_size);
    if (att_options_read(NULL, &att_swin_table, &changed, &o) != ATT_OK || att_swin_measure(NULL, &o, &net) != ATT_OK)
        return false;
    *stages = net.depths.count;
    for (int s = 0; s < net.depths.count; s++)
        memcpy(windows[s], net.stages[s].window, sizeof windows[s]);
    return true;
}

/* A file of Swin V1 that was made for small images has small windows, which stay at every image size; in timm the
 * windows are those of the model's name. Says so if the two differ. */
static void note_windows(att_context *context, const att_option_sources *u)
{
    int kept[ATT_STAGES][2] = {{0}}, named[ATT_STAGES][2] = {{0}}, stages;
    const char *found = att_options_text(u->found, "window_size"), *own = att_options_text(u->own, "window_size");
    char shown[ATT_OPTION_TEXT_BYTES];
    att_option_values options = *u->given;
    if (!*found || *att_options_text(u->given, "window_size"))
        return;
    att_options_fill(&options, u->found);
    att_options_fill(&options, u->own);
    if (!windows_of(&options, found, kept, &stages) || !windows_of(&options, own, named, &stages) ||
        memcmp(kept, named, sizeof kept) == 0)
        return;
    att_swin_format_windows(kept, stages, shown, sizeof shown);
    att_log(
        context, ATT_LOG_INFO,
        "%s: windows of %s tokens, as its tables have; timm would resample the tables for the windows of %s, and so "
        "does window_size %s",
        u->path, shown, u->name, own);
}

att_status att_swin_check_undetermined(att_context *context, const att_tensors *file, const att_option_sources *sources)
{
    static const char *const shown[] = {"swin_version", NULL};
    (void)file;
    ATT_TRY(att_token_check_shown(context, shown, sources));
    note_windows(context, sources);
    return ATT_OK;
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

static void describe_block(const att_block_layout *layout, const att_module *module, int hook, int block,
                           att_module_block *site)
{
    const recognition *r = layout->user;
    const int stage = att_stages_find(&layout->stages, &block);
    int width = (int)(r->width << stage);
    *site = (att_module_block){.place = layout->hooks->items[hook].place, .channels = width, .heads = r->heads[stage]};
    if (hook == ATT_TOKEN_MID_MLP)
        site->channels = att_mlp_hidden(width, r->mlp_ratio);
    snprintf(site->block, sizeof site->block, "%s.%d.blocks.%d.%s", r->version->stages, stage, block,
             att_token_places_of_blocks.branches[hook]);
    att_detected_describe(layout->file, module, site);
}

static att_status read_modules(const recognition *r, att_option_values *found)
{
    att_detected_modules detected = {0};
    for (int i = 0; i < att_tensors_count(r->file); i++) {
        int stage, block, hook;
        const char *rest, *name = att_tensors_at(r->file, i).name;
        if (!read_place(name, &stage, &block, &rest) || block < 0)
            continue;
        const att_module *module =
            att_token_module_at(r->context, &att_token_places_of_blocks, rest, has_attention(r, stage, block), &hook);
        if (module)
            att_detected_add(r->context, &detected, module, hook, att_stages_before(&r->depths, stage) + block);
    }
    const att_block_layout layout = {
        .file = r->file, .hooks = &att_token_hooks, .stages = r->depths, .site = describe_block, .user = r};
    return att_detected_write(r->context, &layout, &detected, found);
}

att_status att_swin_recognise(att_context *context, const att_tensors *file, att_option_values *found)
{
    recognition r = {.context = context, .file = file, .version = att_swin_version_named(version_of(file))};
    ATT_TRY(read_names(&r));
    ATT_TRY(att_patches_read(context, file, "patch_embed.proj.weight", found));
    att_options_set_text(found, "swin_version", r.version->name);
    read_stages(&r, found);
    read_bias(&r, found);
    read_extra_norms(&r, found);
    read_widths(&r, found);
    return read_modules(&r, found);
}
