/* data/place.h - how a resized image lies in the result of a transform: shifted, mirrored, what is missing filled. */
#ifndef ATT_DATA_PLACE_H
#define ATT_DATA_PLACE_H

#include "data/geometry.h"

/* An image of width x height pixels is shifted by (-offset_x, -offset_y) and flipped or not; the rest gets the colour
 * `fill`. */
typedef struct att_placement {
    int width, height, offset_x, offset_y;
    size_t pixel; /* bytes of a pixel, whose values are bytes or floats */
    uint8_t fill[3 * sizeof(float)];
    bool reflected; /* the rest is filled with reflected pixels instead */
    bool mirrored, upside_down;
} att_placement;

/* The affine map from points of the image to points of the result, which has these sides. */
att_affine att_placement_map(const att_placement *place, int width, int height);
/* Writes the result [height][width], in pixels of place->pixel bytes as the image has. */
void att_place(const att_placement *place, const uint8_t *image, int width, int height, uint8_t *out);

#endif
