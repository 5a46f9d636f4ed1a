/* update/update.h - what an update takes. */
#ifndef ATT_UPDATE_UPDATE_H
#define ATT_UPDATE_UPDATE_H

#include <attscope/update.h>

#include "weights/gradient.h"

/* Bytes of the slots that the weights lack. */
size_t att_update_bytes(const att_weights *weights, const att_update_options *options);

#endif
