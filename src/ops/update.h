/* ops/update.h - attributes of sgd, adamw and ema. */
#ifndef ATT_OPS_UPDATE_H
#define ATT_OPS_UPDATE_H

#include <stdbool.h>

/* sgd, adamw: whether weight decay applies to the range. */
typedef struct att_update_attrs {
    bool decay;
} att_update_attrs;

#endif
