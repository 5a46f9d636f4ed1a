/* Masks: reading them from a data set, and moving them as their images were moved. */
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
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

/* Whether every class has a share of less than `most`, which is at most 1, so that a mask with one class or none is not
 * mixed. counts: [classes]. */
static bool is_mixed(const int32_t *classes, int64_t pixels, double most, int64_t *counts, int class_count)
{
    int64_t all = 0, largest = 0;
    memset(counts, 0, (size_t)class_count * sizeof *counts);
    for (int64_t i = 0; i < pixels; i++)
        if (classes[i] >= 0 && classes[i] < class_count)
            counts[classes[i]]++;
    for (int c = 0; c < class_count; c++) {
        all += counts[c];
        largest = counts[c] > largest ? counts[c] : largest;
    }
    return (double)largest < most * (double)all;
}

att_status att_mask_choose_crop(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                                const att_geometry crops[ATT_CROP_CHOICES], double most, int *chosen)
{
    (void)user;
    const int class_count = att_dataset_class_count(dataset);
    const int64_t pixels = (int64_t)crops[0].width * crops[0].height;
    att_mask mask = {0};
    ATT_TRY(att_dataset_read_mask(dataset, context, index, &mask));
    int32_t *classes = att_allocate_array(context, (size_t)pixels, sizeof *classes);
    int64_t *counts = att_allocate_array(context, (size_t)class_count + 1, sizeof *counts);
    att_status status =
        classes && counts ? ATT_OK : att_fail_memory(context, (size_t)pixels * sizeof *classes, "a mask");
    for (*chosen = 0; status == ATT_OK && *chosen < ATT_CROP_CHOICES - 1; ++*chosen) {
        att_mask_move(&mask, &crops[*chosen], classes);
        if (is_mixed(classes, pixels, most, counts, class_count))
            break;
    }
    att_free(context, classes);
    att_free(context, counts);
    att_mask_free(context, &mask);
    return status;
}
