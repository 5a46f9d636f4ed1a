/* data/boxes.h - whether a folder has photographs with boxes. */
#ifndef ATT_DATA_BOXES_H
#define ATT_DATA_BOXES_H

#include "data/dataset.h"

/* Whether the files of any split look like those of a format of boxes. Errors: ERR_STOPPED, ERR_MEMORY. */
att_status att_boxes_exist(att_context *context, const char *path, bool *found);

#endif
