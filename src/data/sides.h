/* data/sides.h - sides of transformed images. */
#ifndef ATT_DATA_SIDES_H
#define ATT_DATA_SIDES_H

#include <attscope/data.h>

typedef struct att_sides {
    int width, height;
} att_sides;

/* Returns the field for images of this height and width: they replace ATT_IMAGE_HEIGHT and ATT_IMAGE_WIDTH in its
 * shape. */
att_field att_field_of_sides(const att_field *field, int height, int width);

#endif
