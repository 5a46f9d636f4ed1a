/* models/regrid.h - resamples a table with one row per patch, such as a position embedding, to another grid of patches,
 * or a table with one row per shift between tokens to another window. */
#ifndef ATT_MODELS_REGRID_H
#define ATT_MODELS_REGRID_H

#include <stdint.h>

#include <attscope/context.h>

/* How a table is resampled; each is a way of timm's or transformers'. */
typedef enum att_regrid_way {
    ATT_REGRID_BICUBIC,       /* patches, like an image: bicubically with antialiasing (data/filter.h) */
    ATT_REGRID_PLAIN_BICUBIC, /* patches: bicubically (Keys, a = -0.75) from the four nearest, without antialiasing */
    ATT_REGRID_BILINEAR_ANTIALIASED, /* patches, like an image: bilinearly with antialiasing (data/filter.h) */
    ATT_REGRID_BILINEAR,             /* patches: linearly between the centres of neighbours, without antialiasing */
    ATT_REGRID_CORNERS,              /* the same, with the centres of the patches at the corners in the same places */
    ATT_REGRID_SINES,                /* patches: not resampled but computed, see att_regrid_sines() */
    ATT_REGRID_SHIFTS, /* shifts, of which a window of n rows or columns has 2 n - 1: linearly between places at
                          distances 1, q, q^2, ... from each other on either side of shift 0, where q is such that
                          the old shifts span the new window (resize_rel_pos_bias_table()) */
} att_regrid_way;

/* The table has rows of `width` numbers: one row per patch or shift, and `extra` rows that belong to none. The grid
 * (height, width) is from[] in the file and to[] in the network. Extra rows come before the patches, but after the
 * shifts. */
typedef struct att_regrid {
    int extra, from[2], to[2];
    int64_t width;
    att_regrid_way way;
    const char *options; /* those of the network that decide its grid: "img_size" */
} att_regrid;

/* Positions that SimpleViT computes (Beyer et al., 2022, as lucidrains/vit-pytorch has them): for patch (y, x), sines
 * and cosines of x w_k, then of y w_k, with w_k = 10000^(-k / (width / 4 - 1)), k = 0, 1, ... width / 4 - 1. out
 * [height, width of the grid, width]. width: a multiple of 4, at least 8. */
void att_regrid_sines(const int grid[2], int64_t width, double *out);

/* Rows are resampled first across and then down. Extra rows are copied. in [extra + from[0] from[1], width] -> out
 * [extra
 * + to[0] to[1], width]. Errors: ERR_MEMORY. */
att_status att_regrid_table(att_context *context, const att_regrid *grid, const double *in, double *out);

#endif
