#include "networks/models/position_grid.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "networks/models/checkpoint.h"
#include "networks/models/patches.h"

int att_positions_prefix(const att_option_values *found)
{
    return (int)(att_options_number(found, "class_token", 0) + att_options_number(found, "distilled", 0) +
                 att_options_number(found, "reg_tokens", 0));
}

/* Only a square grid can be inferred from the number of positions. */
void att_positions_read(const att_tensors *file, att_option_values *found)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "pos_embed", 3, &shape);
    if (!dims)
        return;
    int side = att_patches_side(dims[1]), prefix = att_positions_prefix(found);
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
static bool find_grid(const int file_grid[2], const att_option_values *file_options, int64_t count, const int to[2],
                      int from[2])
{
    if (att_patches_grid(file_options, att_options_find(file_options, "patch_size"), from) && has_patches(from, count))
        return true;
    memcpy(from, has_patches(file_grid, count) ? file_grid : to, 2 * sizeof *from);
    if (has_patches(from, count))
        return true;
    from[0] = from[1] = att_patches_side(count);
    return from[0] > 0 || scale_grid(to, count, from);
}

/* recognise() takes a square number of positions as a square grid without a position for the class token. But 49
 * positions, for example, can also be 6 x 8 patches and the class token. This interpretation is chosen if the named
 * network has a position for the class token, and the remaining number of patches is that of the file's own image size,
 * or has the proportions of the requested size. In the same way, 50 positions can be 5 x 10 patches without the class
 * token instead of 7 x 7 patches with it. A square that nothing confirms is called assumed (identify_origin.c). */
void att_positions_disambiguate(const att_tensors *file, const att_known *known, att_option_values *found)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "pos_embed", 3, &shape);
    const att_option_value *patch = att_options_find(found, "patch_size");
    double wanted = att_options_number(known->given, "embed_class", att_options_number(known->own, "embed_class", 0));
    bool embeds_class = att_positions_prefix(found) > 0 && wanted != 0;
    int64_t patches = dims ? dims[1] - (embeds_class ? att_positions_prefix(found) : 0) : 0;
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

bool att_positions_regrid(const int img_size[2], const int patch_size[2], const int file_grid[2],
                          const att_option_values *file_options, const char *name, att_shape file, att_shape own,
                          att_regrid *grid)
{
    *grid = (att_regrid){.options = strcmp(name, "pos_embed") == 0 ? "img_size" : NULL};
    if (!grid->options || file.rank != 3 || file.dims[0] != 1 || file.dims[1] > 1 << 24 || file.dims[2] != own.dims[2])
        return false;
    att_regrid made = {.options = grid->options,
                       .width = own.dims[2],
                       .to = {img_size[0] / patch_size[0], img_size[1] / patch_size[1]}};
    made.extra = (int)(own.dims[1] - (int64_t)made.to[0] * made.to[1]);
    if (file.dims[1] <= made.extra ||
        !find_grid(file_grid, file_options, file.dims[1] - made.extra, made.to, made.from))
        return false;
    *grid = made;
    return made.from[0] != made.to[0] || made.from[1] != made.to[1];
}

att_status att_positions_check(att_context *context, const att_tensors *file, const att_option_sources *u)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "pos_embed", 3, &shape);
    if (!dims || att_options_find(u->found, "img_size") || att_options_find(u->given, "img_size"))
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: the %d positions of \"pos_embed\" form no square grid; give the sides of the images "
                    "(img_size H W, --img-size)",
                    u->path, (int)dims[1]);
}
