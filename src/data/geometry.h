/* data/geometry.h - how the steps of a transform add up to one map. */
#ifndef ATT_DATA_GEOMETRY_H
#define ATT_DATA_GEOMETRY_H

#include "data/pixels.h"

/* Of an image to which nothing was done. */
att_geometry att_geometry_of(int width, int height);
/* A step that takes the point (x, y) to (a x + b y + c, d x + e y + f), in a picture of width x height pixels. */
void att_geometry_step(att_geometry *geometry, const att_affine *step, int width, int height);
/* A step whose result has at (x, y) what was at from(x, y); the size stays. `from` can be inverted. */
void att_geometry_step_from(att_geometry *geometry, const att_affine *from);

#endif
