/* ops/dct_pool.h - attributes of dct_pool and its gradient. */
#ifndef ATT_OPS_DCT_POOL_H
#define ATT_OPS_DCT_POOL_H

#include <stdint.h>

enum { ATT_DCT_GROUPS = 32 };

/* `count` groups of channels, each with one frequency (rows[g], columns[g]) on a grid of height x width. map_height,
 * map_width: size of x. */
typedef struct att_dct_attrs {
    int32_t count, height, width, map_height, map_width;
    uint16_t rows[ATT_DCT_GROUPS], columns[ATT_DCT_GROUPS];
} att_dct_attrs;

#endif
