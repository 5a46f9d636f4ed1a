/* data/masks.h - photographs with index masks beside them. */
#ifndef ATT_DATA_MASKS_H
#define ATT_DATA_MASKS_H

#include "data/dataset.h"

/* Whether the folder holds photographs with masks in one of the known layouts. Errors: ERR_STOPPED, ERR_MEMORY. */
att_status att_masks_found(const att_dataset *dataset, bool *found);

#endif
