#include "data/geometry.h"

#include <string.h>

att_geometry att_geometry_of(int width, int height)
{
    return (att_geometry){
        .map = {{1, 0, 0}, {0, 1, 0}}, .from_width = width, .from_height = height, .width = width, .height = height};
}

static bool is_inside(double x, double y, int width, int height)
{
    const double slack = 1e-6; /* far less than half a pixel, far more than rounding */
    return x >= -slack && x <= width + slack && y >= -slack && y <= height + slack;
}

/* Whether the map moves the corners of a rectangle into another one, and so all of it. */
static bool maps_into(const double map[2][3], int width, int height, int to_width, int to_height)
{
    for (int corner = 0; corner < 4; corner++) {
        double x = corner % 2 * width, y = corner / 2 * height;
        if (!is_inside(map[0][0] * x + map[0][1] * y + map[0][2], map[1][0] * x + map[1][1] * y + map[1][2], to_width,
                       to_height))
            return false;
    }
    return true;
}

static att_affine inverse(const att_affine *map)
{
    double determinant = map->a * map->e - map->b * map->d;
    att_affine step = {
        .a = map->e / determinant, .b = -map->b / determinant, .d = -map->d / determinant, .e = map->a / determinant};
    step.c = -(step.a * map->c + step.b * map->f);
    step.f = -(step.d * map->c + step.e * map->f);
    return step;
}

/* Keeps the result so far as a stage, unless it holds all of the image, or all that the next result shows. */
static void keep_stage(att_geometry *geometry, const att_affine *step, int width, int height)
{
    const att_geometry *so_far = geometry; /* C17 adds no const to an array */
    const att_affine back = inverse(step);
    const double from_next[2][3] = {{back.a, back.b, back.c}, {back.d, back.e, back.f}};
    if (geometry->stage_count == ATT_GEOMETRY_STAGES ||
        maps_into(so_far->map, geometry->from_width, geometry->from_height, geometry->width, geometry->height) ||
        maps_into(from_next, width, height, geometry->width, geometry->height))
        return;
    att_geometry_stage *stage = &geometry->stages[geometry->stage_count++];
    memcpy(stage->map, geometry->map, sizeof stage->map);
    stage->width = geometry->width;
    stage->height = geometry->height;
}

static void compose(att_geometry *geometry, const att_affine *step)
{
    for (int i = 0; i < 3; i++) {
        double x = geometry->map[0][i], y = geometry->map[1][i];
        geometry->map[0][i] = step->a * x + step->b * y;
        geometry->map[1][i] = step->d * x + step->e * y;
    }
    geometry->map[0][2] += step->c;
    geometry->map[1][2] += step->f;
}

void att_geometry_step(att_geometry *geometry, const att_affine *step, int width, int height)
{
    keep_stage(geometry, step, width, height);
    compose(geometry, step);
    geometry->width = width;
    geometry->height = height;
}

void att_geometry_step_from(att_geometry *geometry, const att_affine *from)
{
    const att_affine step = inverse(from);
    keep_stage(geometry, &step, geometry->width, geometry->height);
    compose(geometry, &step);
}

void att_geometry_move(const att_geometry *geometry, double *x, double *y)
{
    const double(*map)[3] = geometry->map;
    double was_x = *x, was_y = *y;
    *x = map[0][0] * was_x + map[0][1] * was_y + map[0][2];
    *y = map[1][0] * was_x + map[1][1] * was_y + map[1][2];
}

bool att_geometry_keeps(const att_geometry *geometry, double x, double y)
{
    for (int i = 0; i < geometry->stage_count; i++) {
        const att_geometry_stage *stage = &geometry->stages[i];
        const double(*map)[3] = stage->map;
        if (!is_inside(map[0][0] * x + map[0][1] * y + map[0][2], map[1][0] * x + map[1][1] * y + map[1][2],
                       stage->width, stage->height))
            return false;
    }
    return true;
}

void att_geometry_move_back(const att_geometry *geometry, double *x, double *y)
{
    const double(*map)[3] = geometry->map;
    const att_affine step = {map[0][0], map[0][1], map[0][2], map[1][0], map[1][1], map[1][2]}, back = inverse(&step);
    const double was_x = *x, was_y = *y;
    *x = back.a * was_x + back.b * was_y + back.c;
    *y = back.d * was_x + back.e * was_y + back.f;
}

void att_geometry_image_size(const att_geometry *geometry, float size[2])
{
    double x = geometry->from_width, y = geometry->from_height;
    att_geometry_move(geometry, &x, &y);
    size[0] = (float)y;
    size[1] = (float)x;
}

bool att_geometry_shows(const att_geometry *geometry, double x, double y)
{
    double from_x = x, from_y = y;
    att_geometry_move_back(geometry, &from_x, &from_y);
    return is_inside(from_x, from_y, geometry->from_width, geometry->from_height) &&
           att_geometry_keeps(geometry, from_x, from_y);
}
