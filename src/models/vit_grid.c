/* The grid of patches of a ViT's position embedding, or of its tables of relative positions. */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "models/checkpoint.h"
#include "models/patches.h"
#include "models/relative_bias.h"
#include "models/vit.h"

/* Tokens before those of the patches. */
static int prefix_of(const att_option_values *found)
{
    return (int)(att_options_number(found, "class_token", 0) + att_options_number(found, "distilled", 0) +
                 att_options_number(found, "reg_tokens", 0));
}

/* The last rows of a table are for the tokens before those of the patches, if there are any. */
static int64_t shifts_of(const att_tensors *file, const att_option_values *found)
{
    return att_vit_table_rows(file) - (prefix_of(found) > 0 ? ATT_RELATIVE_PREFIX_ROWS : 0);
}

static void read_grid_of_shifts(const att_tensors *file, att_option_values *found)
{
    int side = att_relative_side(shifts_of(file, found));
    if (side > 0)
        att_patches_read_side(side, found);
}

/* Only a square grid can be inferred from the number of positions. */
void att_vit_read_grid(const att_tensors *file, att_option_values *found)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "pos_embed", 3, &shape);
    if (!dims) {
        read_grid_of_shifts(file, found);
        return;
    }
    int side = att_patches_side(dims[1]), prefix = prefix_of(found);
    bool embeds_class = !side && prefix > 0 && dims[1] > prefix;
    if (embeds_class)
        side = att_patches_side(dims[1] - prefix);
    if (!side)
        return;
    att_options_set(found, "embed_class", embeds_class);
    att_patches_read_side(side, found);
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
    if (att_patches_grid(file_options, att_options_find(file_options, "patch_size"), from) && has_patches(from, count))
        return true;
    memcpy(from, has_patches(o->file_grid, count) ? o->file_grid : to, 2 * sizeof *from);
    if (has_patches(from, count))
        return true;
    from[0] = from[1] = att_patches_side(count);
    return from[0] > 0 || scale_grid(to, count, from);
}

/* The same for tables of relative positions, whose windows may have any proportions. */
static bool find_window(const att_vit_options *o, const att_option_values *file_options, int64_t shifts,
                        const int to[2], int from[2])
{
    const int *own = o->file_grid[0] > 0 && att_relative_shifts(o->file_grid) == shifts ? o->file_grid : to;
    if (att_patches_grid(file_options, att_options_find(file_options, "patch_size"), from) &&
        att_relative_shifts(from) == shifts)
        return true;
    memcpy(from, own, 2 * sizeof *from);
    if (att_relative_shifts(from) == shifts)
        return true;
    from[0] = from[1] = att_relative_side(shifts);
    return from[0] > 0;
}

/* recognise() takes a square number of positions as a square grid without a position for the class token. But 49
 * positions, for example, can also be 6 x 8 patches and the class token. This interpretation is chosen if the named
 * network has a position for the class token, and the remaining number of patches is that of the file's own image size,
 * or has the proportions of the requested size. In the same way, 50 positions can be 5 x 10 patches without the class
 * token instead of 7 x 7 patches with it. */
static void disambiguate_grid(const att_tensors *file, const att_known *known, att_option_values *found)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "pos_embed", 3, &shape);
    const att_option_value *patch = att_options_find(found, "patch_size");
    double wanted = att_options_number(known->given, "embed_class", att_options_number(known->own, "embed_class", 0));
    bool embeds_class = prefix_of(found) > 0 && wanted != 0;
    int64_t patches = dims ? dims[1] - (embeds_class ? prefix_of(found) : 0) : 0;
    int given[2], grid[2];
    bool is_own = att_patches_grid(known->from_file, patch, grid) && has_patches(grid, patches);
    bool fits = is_own || (att_patches_grid(known->given, patch, given) && scale_grid(given, patches, grid));
    if (is_own)
        att_options_set_sides(found, "file_grid", grid[0], grid[1]);
    if (fits && att_options_number(found, "embed_class", embeds_class) != embeds_class) {
        att_options_set(found, "embed_class", embeds_class);
        att_options_unset(found, "img_size");
    }
}

/* A table of relative positions does not show the sides of a window that is no square. */
static void disambiguate_window(const att_tensors *file, const att_known *known, att_option_values *found)
{
    int grid[2];
    if (att_patches_grid(known->from_file, att_options_find(found, "patch_size"), grid) &&
        att_relative_shifts(grid) == shifts_of(file, found))
        att_options_set_sides(found, "file_grid", grid[0], grid[1]);
}

/* Takes the value of a text that tensors do not show, if it is one of `names`. */
static void take_unseen(const char *key, const att_known *known, const char *const *names, att_option_values *found)
{
    const char *given = att_options_text(known->given, key),
               *wanted = *given ? given : att_options_text(known->own, key);
    if (att_checkpoint_lists(names, wanted))
        att_options_set_text(found, key, wanted);
}

/* Blocks with norms at the front and at the end have the same tensors; so have several ways of pooling patches. */
void att_vit_disambiguate(const att_tensors *file, const att_known *known, att_option_values *found)
{
    static const char *const sequential[] = {ATT_VIT_BLOCK, ATT_VIT_POST_NORM, NULL};
    static const char *const pools[] = {"avg", "max", "avgmax", NULL};
    disambiguate_grid(file, known, found);
    disambiguate_window(file, known, found);
    if (att_checkpoint_lists(sequential, att_options_text(found, "block_fn")))
        take_unseen("block_fn", known, sequential, found);
    if (att_checkpoint_lists(pools, att_options_text(found, "global_pool")))
        take_unseen("global_pool", known, pools, found);
}

/* As timm, leaves the rows for the tokens before those of the patches. */
static bool regrids_table(const att_vit_options *o, const att_option_values *file_options, att_shape file,
                          att_shape own, att_regrid *grid)
{
    att_regrid made = {.width = own.dims[1], .way = ATT_REGRID_SHIFTS};
    int from[2], to[2];
    if (file.rank != 2 || file.dims[0] > 1 << 24 || file.dims[1] != own.dims[1])
        return false;
    for (int i = 0; i < 2; i++)
        to[i] = o->img_size[i] / o->patch_size[i];
    made.extra = (int)(own.dims[0] - att_relative_shifts(to));
    if (file.dims[0] <= made.extra || !find_window(o, file_options, file.dims[0] - made.extra, to, from))
        return false;
    for (int i = 0; i < 2; i++) {
        made.from[i] = 2 * from[i] - 1;
        made.to[i] = 2 * to[i] - 1;
    }
    *grid = made;
    return from[0] != to[0] || from[1] != to[1];
}

static att_regrid_way way_of(const att_vit_options *o)
{
    if (strcmp(o->pos_embed_resize, ATT_VIT_BILINEAR) == 0)
        return ATT_REGRID_BILINEAR;
    return strcmp(o->pos_embed_resize, ATT_VIT_CORNERS) == 0 ? ATT_REGRID_CORNERS : ATT_REGRID_BICUBIC;
}

bool att_vit_regrids(const void *options, const att_option_values *file_options, const char *name, att_shape file,
                     att_shape own, att_regrid *grid)
{
    const att_vit_options *o = options;
    if (att_vit_is_table(name))
        return regrids_table(o, file_options, file, own, grid);
    if (strcmp(name, "pos_embed") != 0 || file.rank != 3 || file.dims[0] != 1 || file.dims[1] > 1 << 24 ||
        file.dims[2] != own.dims[2])
        return false;
    att_regrid made = {.width = own.dims[2], .way = way_of(o)};
    for (int i = 0; i < 2; i++)
        made.to[i] = o->img_size[i] / o->patch_size[i];
    made.extra = (int)(own.dims[1] - (int64_t)made.to[0] * made.to[1]);
    if (file.dims[1] <= made.extra || !find_grid(o, file_options, file.dims[1] - made.extra, made.to, made.from))
        return false;
    *grid = made;
    return made.from[0] != made.to[0] || made.from[1] != made.to[1];
}

att_status att_vit_check_grid(att_context *context, const att_tensors *file, const att_option_sources *u)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "pos_embed", 3, &shape);
    bool has_size = att_options_find(u->found, "img_size") || att_options_find(u->given, "img_size");
    if (!dims && att_vit_table_rows(file) > 0 && !has_size)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "%s: the %lld relative positions are not those of a square grid of patches; give the sides of "
                        "the images (img_size H W)",
                        u->path, (long long)shifts_of(file, u->found));
    if (!dims || has_size)
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: the %d positions of \"pos_embed\" form no square grid; give the sides of the images "
                    "(img_size H W)",
                    u->path, (int)dims[1]);
}
