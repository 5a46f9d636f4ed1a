/* update/update.h - memory that an update needs. */
#ifndef ATT_UPDATE_UPDATE_H
#define ATT_UPDATE_UPDATE_H

#include <attscope/update.h>

#include "engine/weights/gradient.h"

/* Bytes of the slots that creating the update would add to the weights. */
size_t att_update_bytes(const att_weights *weights, const att_update_options *options);

#endif
