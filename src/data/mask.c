/* Masks: reading them from a data set, and moving them as their images were moved. */
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "data/dataset.h"
#include "data/geometry.h"

void att_mask_free(att_context *context, att_mask *mask)
{
    att_free(context, mask->classes);
    *mask = (att_mask){0};
}

/* The class of the pixel that holds the point (x, y) of the image; -1 outside of the image and where it was cut off. */
static int32_t class_at(const att_mask *mask, const att_geometry *geometry, double x, double y)
{
    const double column = floor(x), row = floor(y);
    if (!(column >= 0 && column < mask->width && row >= 0 && row < mask->height) || !att_geometry_keeps(geometry, x, y))
        return -1;
    const uint16_t class = mask->classes[(size_t)row * (size_t)mask->width + (size_t)column];
    return class == ATT_MASK_NONE ? -1 : class;
}

void att_mask_move(const att_mask *mask, const att_geometry *geometry, int32_t *classes)
{
    const double(*m)[3] = geometry->map;
    const double determinant = m[0][0] * m[1][1] - m[0][1] * m[1][0];
    for (int y = 0; y < geometry->height; y++)
        for (int x = 0; x < geometry->width; x++) {
            const double dx = x + 0.5 - m[0][2], dy = y + 0.5 - m[1][2];
            *classes++ = class_at(mask, geometry, (m[1][1] * dx - m[0][1] * dy) / determinant,
                                  (m[0][0] * dy - m[1][0] * dx) / determinant);
        }
}

void att_mask_cut(const att_mixing *mixing, const int32_t *other, int32_t *own)
{
    for (int y = mixing->top; mixing->cuts && y < mixing->bottom; y++) {
        const size_t at = (size_t)y * (size_t)mixing->width + (size_t)mixing->left;
        memcpy(own + at, other + at, (size_t)(mixing->right - mixing->left) * sizeof *own);
    }
}
