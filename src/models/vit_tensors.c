/* Recognises plain ViTs by timm's tensor names. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/nn.h>

#include "core/error.h"
#include "core/text.h"
#include "models/checkpoint.h"
#include "models/detected_modules.h"
#include "models/foreign_tensors.h"
#include "models/patches.h"
#include "models/token_tensors.h"
#include "models/vit.h"

static const char *const outer_names[] = {"cls_token",
                                          "pos_embed",
                                          "patch_embed.proj.weight",
                                          "patch_embed.proj.bias",
                                          "norm.weight",
                                          "norm.bias",
                                          "fc_norm.weight",
                                          "fc_norm.bias",
                                          "head.weight",
                                          "head.bias",
                                          NULL};
static const char *const block_names[] = {
    "norm1.weight",   "norm1.bias",     "attn.qkv.weight", "attn.qkv.bias", "attn.proj.weight",
    "attn.proj.bias", "ls1.gamma",      "norm2.weight",    "norm2.bias",    "mlp.fc1.weight",
    "mlp.fc1.bias",   "mlp.fc2.weight", "mlp.fc2.bias",    "ls2.gamma",     NULL};

/* --- modules ------------------------------------------------------------------------------------------------------ */

static bool has_attention(const att_tensors *file, int block)
{
    char name[48];
    snprintf(name, sizeof name, "blocks.%d.attn.qkv.weight", block);
    return att_checkpoint_has(file, name);
}

static att_status write_modules(att_context *context, const att_tensors *file, const att_detected_modules *detected,
                                att_option_values *found)
{
    int64_t widths[ATT_TOKEN_HOOKS];
    int width = (int)att_options_number(found, "embed_dim", 1);
    for (int hook = 0; hook < ATT_TOKEN_HOOKS; hook++)
        widths[hook] = width;
    widths[ATT_TOKEN_MID_MLP] = att_mlp_hidden(width, att_options_number(found, "mlp_ratio", 1));
    return att_detected_write_blocks(context, file, &att_token_hooks, att_token_branches, widths, detected, found);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Reads depth and modules from the names of all tensors. Refuses the file if a name belongs to no plain ViT; of several
 * such names the most specific is reported. */
static att_status read_names(att_context *context, const att_tensors *file, att_option_values *found,
                             att_detected_modules *detected)
{
    const char *foreign = NULL;
    for (int i = 0; i < att_tensors_count(file); i++) {
        const char *name = att_tensors_at(file, i).name, *rest = NULL;
        int hook = 0;
        if (att_checkpoint_owns(file, name) || att_task_of_parameter(context, name) ||
            att_checkpoint_lists(outer_names, name))
            continue;
        int block = att_checkpoint_block(name, "blocks", &rest);
        const att_module *module = block >= 0 && block < ATT_BLOCKS
                                       ? att_token_module_at(context, rest, has_attention(file, block), &hook)
                                       : NULL;
        if (block >= 0 && (att_token_owns(context, rest) || att_checkpoint_lists(block_names, rest))) {
            if (block + 1 > att_options_number(found, "depth", 0))
                att_options_set(found, "depth", block + 1);
        } else if (!foreign || att_foreign_rank(name) < att_foreign_rank(foreign)) {
            foreign = name;
        }
        if (module)
            att_detected_add(context, detected, module, hook, block);
    }
    return foreign ? att_foreign_refuse(context, file, foreign, "plain ViT or DeiT, nor to another network here")
                   : ATT_OK;
}

static bool has_half(const att_tensors *file, int block, const char *const *scopes)
{
    bool has = false;
    for (int i = 0; i < att_tensors_count(file); i++) {
        const char *rest;
        if (att_checkpoint_block(att_tensors_at(file, i).name, "blocks", &rest) != block)
            continue;
        for (int s = 0; scopes[s]; s++)
            has = has || strncmp(rest, scopes[s], strlen(scopes[s])) == 0;
    }
    return has;
}

/* A last block without attention, its norm and its LayerScale, or without those of the MLP, is the extra layer. */
static void read_extra_layer(const att_tensors *file, att_option_values *found)
{
    static const char *const first[] = {"norm1.", "attn.", "ls1.", NULL}, *const second[] = {"norm2.", "mlp.", "ls2.",
                                                                                             NULL};
    int last = (int)att_options_number(found, "depth", 0) - 1;
    bool attends = has_half(file, last, first), has_mlp = has_half(file, last, second);
    if (last < 1)
        return;
    att_options_set_text(found, "extra_layer", attends && has_mlp ? "none" : attends ? "attn" : "mlp");
    if (!attends || !has_mlp)
        att_options_set(found, "depth", last);
}

/* A uniform head shows the width d of a head: an attention that leaves one head to it has C - d inner channels; the
 * uniform head of another is d wide. */
static void read_heads(const att_tensors *file, att_option_values *found)
{
    int depth = (int)att_options_number(found, "depth", 0);
    int64_t channels = (int64_t)att_options_number(found, "embed_dim", 1);
    for (int b = 0; b < depth; b++) {
        char name[64];
        att_shape qkv_shape, v_shape;
        snprintf(name, sizeof name, "blocks.%d.attn.qkv.weight", b);
        const int64_t *qkv = att_checkpoint_dims(file, name, 2, &qkv_shape);
        snprintf(name, sizeof name, "blocks.%d.attn.uniform_head.v.weight", b);
        const int64_t *v = att_checkpoint_dims(file, name, 2, &v_shape);
        int64_t width = !qkv || !v ? 0 : qkv[0] / 3 < channels ? channels - qkv[0] / 3 : v[0];
        if (width > 0 && channels % width == 0) {
            att_options_set(found, "num_heads", (double)(channels / width));
            return;
        }
    }
}

/* Only a square grid can be inferred from the number of positions. */
static void read_grid(const att_tensors *file, att_option_values *found)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "pos_embed", 3, &shape);
    if (!dims)
        return;
    int side = att_patches_side(dims[1]);
    bool embeds_class = !side && att_options_number(found, "class_token", 0) != 0;
    if (embeds_class)
        side = att_patches_side(dims[1] - 1);
    if (!side)
        return;
    att_options_set(found, "embed_class", embeds_class);
    att_patches_read_side(side, found);
}

/* Reads the first block with attention; other blocks may have a module in place of the attention. */
static void read_bias(const att_tensors *file, att_option_values *found)
{
    int depth = (int)att_options_number(found, "depth", 0);
    for (int b = 0; b < depth; b++) {
        char name[48];
        snprintf(name, sizeof name, "blocks.%d.attn.qkv.bias", b);
        if (!has_attention(file, b))
            continue;
        att_options_set(found, "qkv_bias", att_checkpoint_has(file, name));
        return;
    }
}

static void read_switches(const att_tensors *file, att_option_values *found)
{
    /* Tensors show that there is LayerScale, but not its initial value. This value has the order of magnitude of DeiT
     * III's. */
    static const double unknown_start = 1e-5;
    bool has_class = att_checkpoint_has(file, "cls_token"),
         has_head = att_checkpoint_has(file, "head.weight") || att_checkpoint_has(file, "head.bias");
    att_options_set(found, "class_token", has_class);
    read_bias(file, found);
    att_options_set(found, "init_values", att_checkpoint_has(file, "blocks.0.ls1.gamma") ? unknown_start : 0);
    if (att_checkpoint_has(file, "norm.weight") || att_checkpoint_has(file, "fc_norm.weight"))
        att_options_set(found, "fc_norm", att_checkpoint_has(file, "fc_norm.weight"));
    else if (!has_head) /* a backbone may lack the last norm; with a head it must have one */
        att_options_set(found, "final_norm",
                        att_checkpoint_has(file, "norm.bias") || att_checkpoint_has(file, "fc_norm.bias"));
    if (!has_class)
        att_options_set_text(found, "global_pool", "avg");
    if (!has_head)
        att_options_set(found, "num_classes", 0);
}

static void read_widths(const att_tensors *file, att_option_values *found)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "head.weight", 2, &shape);
    if (dims)
        att_options_set(found, "num_classes", (double)dims[0]);
    dims = att_checkpoint_dims(file, "blocks.0.mlp.fc1.weight", 2, &shape);
    if (!dims)
        return;
    int width = (int)att_options_number(found, "embed_dim", 1);
    att_options_set(found, "mlp_ratio", att_mlp_ratio(width, dims[0]));
}

att_status att_vit_recognise(att_context *context, const att_tensors *file, att_option_values *found)
{
    att_detected_modules detected = {0};
    ATT_TRY(read_names(context, file, found, &detected));
    ATT_TRY(att_patches_read(context, file, "patch_embed.proj.weight", found));
    read_extra_layer(file, found);
    read_heads(file, found);
    read_widths(file, found);
    ATT_TRY(write_modules(context, file, &detected, found));
    ATT_TRY(att_mlp_check_gate(context, file, "blocks.0.mlp"));
    read_switches(file, found);
    read_grid(file, found);
    return ATT_OK;
}

/* Computes the grid from the image size in the options and the file's patch size; returns false without these. */
static bool given_grid(const att_option_values *options, const att_option_value *patch, int grid[2])
{
    const att_option_value *sides = att_options_find(options, "img_size");
    for (int i = 0; i < 2 && sides && patch; i++)
        grid[i] = (int)(sides->numbers[i < sides->count ? i : 0] / patch->numbers[i < patch->count ? i : 0]);
    return sides && patch;
}

/* grid: may be unset */
static bool has_patches(const int grid[2], int64_t count)
{
    return grid[0] > 0 && (int64_t)grid[0] * grid[1] == count;
}

/* Finds the grid of `count` patches with the proportions of `like`; returns false if there is none. */
static bool scale_grid(const int like[2], int64_t count, int grid[2])
{
    if (like[0] < 1 || like[1] < 1 || count < 1)
        return false;
    grid[0] = (int)lround(sqrt((double)count * like[0] / like[1]));
    grid[1] = grid[0] > 0 ? (int)(count / grid[0]) : 0;
    return has_patches(grid, count) && (int64_t)grid[0] * like[1] == (int64_t)grid[1] * like[0];
}

/* Finds the grid of `count` patches that a file was made for: the grid in its metadata or side files, if that grid has
 * `count` patches; else the network's grid; else a square grid; else a grid with the network's proportions. Returns
 * false if none of these has `count` patches. */
static bool find_grid(const att_vit_options *o, const att_option_values *file_options, int64_t count, const int to[2],
                      int from[2])
{
    if (given_grid(file_options, att_options_find(file_options, "patch_size"), from) && has_patches(from, count))
        return true;
    memcpy(from, has_patches(o->file_grid, count) ? o->file_grid : to, 2 * sizeof *from);
    if (has_patches(from, count))
        return true;
    from[0] = from[1] = att_patches_side(count);
    return from[0] > 0 || scale_grid(to, count, from);
}

/* recognise() takes a square number of positions as a square grid without a position for the class token. But 49
 * positions, for example, can also be 6 x 8 patches and the class token. This interpretation is chosen if the named
 * network has a position for the class token, and the remaining number of patches is that of the file's own image size,
 * or has the proportions of the requested size. In the same way, 50 positions can be 5 x 10 patches without the class
 * token instead of 7 x 7 patches with it. */
void att_vit_disambiguate(const att_tensors *file, const att_known *known, att_option_values *found)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "pos_embed", 3, &shape);
    const att_option_value *patch = att_options_find(found, "patch_size");
    double wanted = att_options_number(known->given, "embed_class", att_options_number(known->own, "embed_class", 0));
    bool embeds_class = att_options_number(found, "class_token", 0) != 0 && wanted != 0;
    int64_t patches = dims ? dims[1] - embeds_class : 0;
    int given[2], grid[2];
    bool is_own = given_grid(known->from_file, patch, grid) && has_patches(grid, patches);
    bool fits = is_own || (given_grid(known->given, patch, given) && scale_grid(given, patches, grid));
    if (is_own)
        att_options_set_sides(found, "file_grid", grid[0], grid[1]);
    if (fits && att_options_number(found, "embed_class", embeds_class) != embeds_class) {
        att_options_set(found, "embed_class", embeds_class);
        att_options_unset(found, "img_size");
    }
}

bool att_vit_regrids(const void *options, const att_option_values *file_options, const char *name, att_shape file,
                     att_shape own, att_regrid *grid)
{
    const att_vit_options *o = options;
    if (strcmp(name, "pos_embed") != 0 || file.rank != 3 || file.dims[0] != 1 || file.dims[1] > 1 << 24 ||
        file.dims[2] != own.dims[2])
        return false;
    att_regrid made = {.width = own.dims[2]};
    for (int i = 0; i < 2; i++)
        made.to[i] = o->img_size[i] / o->patch_size[i];
    made.prefix = (int)(own.dims[1] - (int64_t)made.to[0] * made.to[1]);
    if (file.dims[1] <= made.prefix || !find_grid(o, file_options, file.dims[1] - made.prefix, made.to, made.from))
        return false;
    *grid = made;
    return made.from[0] != made.to[0] || made.from[1] != made.to[1];
}

/* In timm, a network that pools its class token gets an fc_norm either by mean pooling or by the argument fc_norm. The
 * tensors are the same. */
static att_status check_pool(att_context *context, const att_option_sources *u)
{
    if (att_options_number(u->found, "fc_norm", 0) == 0 || att_options_number(u->found, "class_token", 0) == 0 ||
        att_options_number(u->given, "fc_norm", 0) == 1 || *att_options_text(u->given, "global_pool") ||
        strcmp(att_options_text(u->own, "global_pool"), "token") != 0)
        return ATT_OK;
    return att_fail(
        context, ATT_ERR_UNSUPPORTED,
        "%s: the tensor \"fc_norm.weight\" is not one of %s; with it a network pools by the mean "
        "(global_pool \"avg\") or by the class token (global_pool \"token\"), which the tensors do not show; give "
        "global_pool",
        u->path, u->name);
}

static att_status check_heads(att_context *context, const att_option_sources *u)
{
    int own = (int)att_options_number(u->own, "embed_dim", 0);
    int width = (int)att_options_number(u->given, "embed_dim", att_options_number(u->found, "embed_dim", own));
    if (att_options_find(u->given, "num_heads") || att_options_find(u->found, "num_heads") || width == own)
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: the tensors are %d wide, %s is %d wide; the tensors do not show the number of heads; "
                    "give num_heads",
                    u->path, width, u->name, own);
}

static att_status check_grid(att_context *context, const att_tensors *file, const att_option_sources *u)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "pos_embed", 3, &shape);
    if (!dims || att_options_find(u->found, "img_size") || att_options_find(u->given, "img_size"))
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: the %d positions of \"pos_embed\" form no square grid; give the sides of the images "
                    "(img_size H W)",
                    u->path, (int)dims[1]);
}

att_status att_vit_check_undetermined(att_context *context, const att_tensors *file, const att_option_sources *sources)
{
    ATT_TRY(check_pool(context, sources));
    ATT_TRY(check_heads(context, sources));
    return check_grid(context, file, sources);
}

bool att_vit_is_added(const att_context *context, const char *name)
{
    const char *rest;
    return att_checkpoint_block(name, "blocks", &rest) >= 0 && att_token_owns(context, rest);
}
