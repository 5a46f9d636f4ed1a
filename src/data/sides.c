#include "data/sides.h"

att_field att_field_of_sides(const att_field *field, int height, int width)
{
    att_field sized = *field;
    for (int i = 0; i < sized.shape.rank; i++)
        if (sized.shape.dims[i] == ATT_IMAGE_HEIGHT)
            sized.shape.dims[i] = height;
        else if (sized.shape.dims[i] == ATT_IMAGE_WIDTH)
            sized.shape.dims[i] = width;
    return sized;
}
