/* models/position_grid.h - the grid of patches of a learned position embedding, tensor "pos_embed" [1, rows, C], in
 * files of families of tokens. They share the options img_size, patch_size, class_token, distilled, reg_tokens,
 * embed_class and the internal option file_grid. */
#ifndef ATT_MODELS_POSITION_GRID_H
#define ATT_MODELS_POSITION_GRID_H

#include "networks/models/family.h"

/* Returns the number of tokens before those of the patches. */
int att_positions_prefix(const att_option_values *found);

/* Sets image size and embed_class from the position embedding, if its grid is square. `found` must have patch_size and
 * the tokens before those of the patches. */
void att_positions_read(const att_tensors *file, att_option_values *found);
/* Chooses between grids that fit equally, see att_family.disambiguate, and sets file_grid if the file's grid is known.
 */
void att_positions_disambiguate(const att_tensors *file, const att_known *known, att_option_values *found);
/* Fails if the grid is not known. */
att_status att_positions_check(att_context *context, const att_tensors *file, const att_option_sources *sources);

/* att_family.regrids, for the position embedding of a network with these options. */
bool att_positions_regrid(const int img_size[2], const int patch_size[2], const int file_grid[2],
                          const att_option_values *file_options, const char *name, att_shape file, att_shape own,
                          att_regrid *grid);

#endif
