/* ops/upsample_bilinear.h - attributes of upsample_bilinear and its gradient, and where a result's rows and columns
 * lie.
 */
#ifndef ATT_OPS_UPSAMPLE_BILINEAR_H
#define ATT_OPS_UPSAMPLE_BILINEAR_H

#include <stdint.h>

/* Of what the op makes: y [height, width, C], of the gradient x. */
typedef struct att_upsample_attrs {
    int32_t height, width;
} att_upsample_attrs;

/* A row, or column, of y in x: (1 - share) of row `low` and share of row `high`. */
typedef struct att_upsample_place {
    int64_t low, high;
    double share;
} att_upsample_place;

/* Of row i among `to`, made of `from` rows. */
static inline att_upsample_place att_upsample_place_of(int64_t i, int64_t from, int64_t to)
{
    double at = ((double)i + 0.5) * ((double)from / (double)to) - 0.5;
    at = at < 0 ? 0 : at;
    int64_t low = (int64_t)at < from - 1 ? (int64_t)at : from - 1;
    return (att_upsample_place){low, low + 1 < from ? low + 1 : low, at - (double)low};
}

#endif
