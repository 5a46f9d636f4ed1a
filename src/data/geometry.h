/* data/geometry.h - composes the geometric steps of a transform into one affine map. */
#ifndef ATT_DATA_GEOMETRY_H
#define ATT_DATA_GEOMETRY_H

#include "data/pixels.h"

/* The identity map of an image. */
att_geometry att_geometry_of(int width, int height);
/* Appends a step that moves the point (x, y) to (a x + b y + c, d x + e y + f), in an image of width x height
 * pixels. */
void att_geometry_step(att_geometry *geometry, const att_affine *step, int width, int height);
/* Appends a step whose result at (x, y) is the input at from(x, y). The sides do not change. `from` must be
 * invertible. */
void att_geometry_step_from(att_geometry *geometry, const att_affine *from);
/* The inverse of att_geometry_move(). */
void att_geometry_move_back(const att_geometry *geometry, double *x, double *y);
/* Sets size to height and width of the part of the result that shows the image, which lies at its upper left corner. */
void att_geometry_image_size(const att_geometry *geometry, float size[2]);
/* Whether no stage cut off this point of the image. */
bool att_geometry_keeps(const att_geometry *geometry, double x, double y);
/* Whether the point (x, y) of the result shows the image; the rest of the result is filled. */
bool att_geometry_shows(const att_geometry *geometry, double x, double y);

#endif
