/* The grid of patches of a ViT's position embedding, or of its tables of relative positions. */
#include <string.h>

#include "base/core/error.h"
#include "networks/models/checkpoint.h"
#include "networks/models/patches.h"
#include "networks/models/position_grid.h"
#include "networks/models/relative_bias.h"
#include "networks/models/token_tensors.h"
#include "networks/models/vit.h"

/* The last rows of a table are for the tokens before those of the patches, if there are any. */
static int64_t shifts_of(const att_tensors *file, const att_option_values *found)
{
    return att_vit_table_rows(file) - (att_positions_prefix(found) > 0 ? ATT_RELATIVE_PREFIX_ROWS : 0);
}

static void read_grid_of_shifts(const att_tensors *file, att_option_values *found)
{
    int side = att_relative_side(shifts_of(file, found));
    if (side > 0)
        att_patches_read_side(side, found);
}

void att_vit_read_grid(const att_tensors *file, att_option_values *found)
{
    if (att_checkpoint_has(file, "pos_embed"))
        att_positions_read(file, found);
    else
        read_grid_of_shifts(file, found);
}

/* Finds the window of `shifts` relative positions that a file was made for: that in its metadata or side files, if it
 * has as many; else the network's; else a square one. Returns false if none of these has `shifts` shifts. */
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

/* A table of relative positions does not show the sides of a window that is no square. */
static void disambiguate_window(const att_tensors *file, const att_known *known, att_option_values *found)
{
    int grid[2];
    if (att_patches_grid(known->from_file, att_options_find(found, "patch_size"), grid) &&
        att_relative_shifts(grid) == shifts_of(file, found))
        att_options_set_sides(found, "file_grid", grid[0], grid[1]);
}

void att_vit_disambiguate(const att_tensors *file, const att_known *known, att_option_values *found)
{
    att_token_disambiguate(file, known, found);
    disambiguate_window(file, known, found);
}

/* As timm, leaves the rows for the tokens before those of the patches. */
static bool regrids_table(const att_vit_options *o, const att_option_values *file_options, att_shape file,
                          att_shape own, att_regrid *grid)
{
    att_regrid made = {.options = "img_size", .width = own.dims[1], .way = ATT_REGRID_SHIFTS};
    int from[2], to[2];
    *grid = made;
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
    if (strcmp(o->pos_embed_resize, ATT_VIT_PLAIN) == 0)
        return ATT_REGRID_PLAIN_BICUBIC;
    if (strcmp(o->pos_embed_resize, ATT_VIT_BILINEAR_ANTIALIASED) == 0)
        return ATT_REGRID_BILINEAR_ANTIALIASED;
    if (strcmp(o->pos_embed_resize, ATT_VIT_SINES) == 0)
        return ATT_REGRID_SINES;
    return strcmp(o->pos_embed_resize, ATT_VIT_CORNERS) == 0 ? ATT_REGRID_CORNERS : ATT_REGRID_BICUBIC;
}

bool att_vit_regrids(const void *options, const att_option_values *file_options, const char *name, att_shape file,
                     att_shape own, att_regrid *grid)
{
    const att_vit_options *o = options;
    if (att_vit_is_table(name))
        return regrids_table(o, file_options, file, own, grid);
    if (!att_positions_regrid(o->img_size, o->patch_size, o->file_grid, file_options, name, file, own, grid))
        return false;
    grid->way = way_of(o);
    return true;
}

att_status att_vit_check_grid(att_context *context, const att_tensors *file, const att_option_sources *u)
{
    bool has_size = att_options_find(u->found, "img_size") || att_options_find(u->given, "img_size");
    if (has_size || att_checkpoint_has(file, "pos_embed") || att_vit_table_rows(file) == 0)
        return att_positions_check(context, file, u);
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: the %lld relative positions are not those of a square grid of patches; give the sides of "
                    "the images (img_size H W, --img-size)",
                    u->path, (long long)shifts_of(file, u->found));
}
