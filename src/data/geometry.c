#include "data/geometry.h"

att_geometry att_geometry_of(int width, int height)
{
    return (att_geometry){
        .map = {{1, 0, 0}, {0, 1, 0}}, .from_width = width, .from_height = height, .width = width, .height = height};
}

void att_geometry_step(att_geometry *geometry, const att_affine *step, int width, int height)
{
    for (int i = 0; i < 3; i++) {
        double x = geometry->map[0][i], y = geometry->map[1][i];
        geometry->map[0][i] = step->a * x + step->b * y;
        geometry->map[1][i] = step->d * x + step->e * y;
    }
    geometry->map[0][2] += step->c;
    geometry->map[1][2] += step->f;
    geometry->width = width;
    geometry->height = height;
}

void att_geometry_step_from(att_geometry *geometry, const att_affine *from)
{
    double determinant = from->a * from->e - from->b * from->d;
    att_affine step = {.a = from->e / determinant,
                       .b = -from->b / determinant,
                       .d = -from->d / determinant,
                       .e = from->a / determinant};
    step.c = -(step.a * from->c + step.b * from->f);
    step.f = -(step.d * from->c + step.e * from->f);
    att_geometry_step(geometry, &step, geometry->width, geometry->height);
}

void att_geometry_move(const att_geometry *geometry, double *x, double *y)
{
    const double(*map)[3] = geometry->map;
    double was_x = *x, was_y = *y;
    *x = map[0][0] * was_x + map[0][1] * was_y + map[0][2];
    *y = map[1][0] * was_x + map[1][1] * was_y + map[1][2];
}
