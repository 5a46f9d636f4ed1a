/* ops/upsample_bilinear.h - attributes of upsample_bilinear and its gradient, and the positions of output rows and
 * columns in the input. */
#ifndef ATT_OPS_UPSAMPLE_BILINEAR_H
#define ATT_OPS_UPSAMPLE_BILINEAR_H

#include <stdint.h>

/* Size of the op's output: y [height, width, C]; for the gradient, x. */
typedef struct att_upsample_attrs {
    int32_t height, width;
} att_upsample_attrs;

/* The position of a row (or column) of y in x: y = (1 - share) x[low] + share x[high]. */
typedef struct att_upsample_place {
    int64_t low, high;
    double share;
} att_upsample_place;

/* Position of row i of `to` rows in an input of `from` rows. */
static inline att_upsample_place att_upsample_place_of(int64_t i, int64_t from, int64_t to)
{
    double at = ((double)i + 0.5) * ((double)from / (double)to) - 0.5;
    at = at < 0 ? 0 : at;
    int64_t low = (int64_t)at < from - 1 ? (int64_t)at : from - 1;
    return (att_upsample_place){low, low + 1 < from ? low + 1 : low, at - (double)low};
}

#endif
