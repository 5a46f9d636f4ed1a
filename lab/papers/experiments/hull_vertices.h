/* experiments/hull_vertices.h - the vertices of a convex hull, exactly. */
#ifndef ATT_EXPERIMENTS_HULL_VERTICES_H
#define ATT_EXPERIMENTS_HULL_VERTICES_H

#include <stdbool.h>

enum { ATT_HULL_MOST = 64 };

/* The sign of the area of the triangle a, b, c: 1 if c lies to the left of the line from a to b, -1 if to the right, 0
 * if the points are on one line. Exact for coordinates whose products neither overflow nor underflow, since products
 * and sums are carried with their rounding errors. */
int att_hull_side(const double a[2], const double b[2], const double c[2]);

/* Sets vertex[i] to whether point i is a vertex of the convex hull of `count` points, 1 to ATT_HULL_MOST. A point on an
 * edge between two vertices is none; of equal points all are vertices, or none. */
void att_hull_vertices(const double (*points)[2], int count, bool *vertex);

#endif
