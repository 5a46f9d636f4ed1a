/* kernels/ref/corners.h - the pixels of a map from which a pixel of the resized map is interpolated. */
#ifndef ATT_KERNELS_REF_CORNERS_H
#define ATT_KERNELS_REF_CORNERS_H

#include "engine/ops/upsample_bilinear.h"

enum { REF_CORNERS = 4 };

typedef struct ref_corner {
    int64_t pixel; /* number of the pixel in the map, row by row */
    double share;
} ref_corner;

/* The corners of a pixel of the map resized to to[0] x to[1]. The map has from[0] x from[1] pixels. */
static inline void ref_corners_of(const int64_t *from, const int64_t *to, int64_t pixel,
                                  ref_corner corners[REF_CORNERS])
{
    att_upsample_place row = att_upsample_place_of(pixel / to[1], from[0], to[0]);
    att_upsample_place column = att_upsample_place_of(pixel % to[1], from[1], to[1]);
    for (int i = 0; i < REF_CORNERS; i++) {
        corners[i].pixel = (i / 2 ? row.high : row.low) * from[1] + (i % 2 ? column.high : column.low);
        corners[i].share = (i / 2 ? row.share : 1 - row.share) * (i % 2 ? column.share : 1 - column.share);
    }
}

#endif
