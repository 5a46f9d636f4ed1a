/* ops/concat_maps.h - attributes of concat_maps and its gradient. */
#ifndef ATT_OPS_CONCAT_MAPS_H
#define ATT_OPS_CONCAT_MAPS_H

#include <stdint.h>

enum { ATT_CONCAT_MAPS = 8 }; /* the most maps */

/* Map i is [height, width, channels] = size[i]; zeros from `count` on. */
typedef struct att_concat_maps_attrs {
    int32_t count, size[ATT_CONCAT_MAPS][3];
} att_concat_maps_attrs;

#endif
