/* ops/windows.h - attributes of windows and windows_back. */
#ifndef ATT_OPS_WINDOWS_H
#define ATT_OPS_WINDOWS_H

#include <stdint.h>

/* height, width: size of a window. shift_y, shift_x: position of the first window in the map. map_height, map_width:
 * size of the map, for windows_back. */
typedef struct att_windows_attrs {
    int32_t height, width;
    int32_t shift_y, shift_x;
    int32_t map_height, map_width;
} att_windows_attrs;

/* Index in the map [rows, columns, ..] of the pixel at row `row` of the windows, whose rows are counted window by
 * window. Windows that reach over an edge of the map wrap around. */
static inline int64_t att_windows_pixel(const att_windows_attrs *attrs, int64_t rows, int64_t columns, int64_t row)
{
    int64_t area = (int64_t)attrs->height * attrs->width, across = columns / attrs->width;
    int64_t window = row / area, inside = row % area;
    int64_t y = window / across * attrs->height + inside / attrs->width + attrs->shift_y;
    int64_t x = window % across * attrs->width + inside % attrs->width + attrs->shift_x;
    return y % rows * columns + x % columns;
}

#endif
