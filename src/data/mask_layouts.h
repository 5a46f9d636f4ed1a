/* data/mask_layouts.h - how people lay out photographs with index masks beside them. */
#ifndef ATT_DATA_MASK_LAYOUTS_H
#define ATT_DATA_MASK_LAYOUTS_H

#include "data/file_layouts.h"

extern const att_file_layout att_mask_layouts[];
extern const int att_mask_layouts_number;

/* The usual ends of the names of masks, before ".png"; NULL beyond the last. */
const char *att_mask_end(int index);

#endif
