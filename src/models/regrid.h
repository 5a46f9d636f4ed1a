/* models/regrid.h - resamples a table with one row per patch, such as a position embedding, to another grid of patches,
 * or a table with one row per shift between tokens to another window. */
#ifndef ATT_MODELS_REGRID_H
#define ATT_MODELS_REGRID_H

#include <stdint.h>

#include <attscope/context.h>

/* The table has rows of `width` numbers: one row per patch, and `extra` rows that belong to no patch. The grid of
 * patches (height, width) is from[] in the file and to[] in the network. shifts: the rows are for shifts, of which a
 * window of n rows or columns has 2 n - 1; they are resampled in another way. Extra rows come before the patches, but
 * after the shifts. */
typedef struct att_regrid {
    int extra, from[2], to[2];
    int64_t width;
    bool shifts;
} att_regrid;

/* Shifts: as timm's resize_rel_pos_bias_table(), linearly between places at distances 1, q, q^2, ... from each other on
 * either side of shift 0, where q is such that the old shifts span the new window. Patches: as timm's
 * resample_abs_pos_embed(): the rows of patches are resized like an image, bicubically with antialiasing
 * (data/filter.h), first across and then down. Extra rows are copied. in [extra + from[0] from[1], width] -> out [extra
 * + to[0] to[1], width]. Errors: ERR_MEMORY. */
att_status att_regrid_table(att_context *context, const att_regrid *grid, const double *in, double *out);

#endif
