/* models/regrid.h - a table with a row for every patch, made for another grid of patches. */
#ifndef ATT_MODELS_REGRID_H
#define ATT_MODELS_REGRID_H

#include <stdint.h>

#include <attscope/context.h>

/* Rows of `width` numbers: `prefix` rows that belong to no patch, then one for each patch of a grid of `from` (height,
 * width) in the file and `to` in the network. */
typedef struct att_regrid {
    int prefix, from[2], to[2];
    int64_t width;
} att_regrid;

/* timm's resample_abs_pos_embed(): the rows of patches are resized as an image, bicubically with antialiasing
 * (data/filter.h), across and then down; the others are kept. in [prefix + from[0] from[1], width] ->
 * out [prefix + to[0] to[1], width]. Errors: ERR_MEMORY. */
att_status att_regrid_table(att_context *context, const att_regrid *grid, const double *in, double *out);

#endif
