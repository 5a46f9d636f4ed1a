/* kernels/ref/shifts.h - moments of the shifts from a query to its keys. */
#ifndef ATT_KERNELS_REF_SHIFTS_H
#define ATT_KERNELS_REF_SHIFTS_H

#include "engine/ops/attention.h"

/* Sums over keys of their weight, and of its products with the shift (y, x) - origin. Begin with zeros and the shift to
 * the strongest key as origin: the sums then keep the digits of the other weights, however small they are. */
typedef struct ref_shift_sums {
    double origin_y, origin_x;
    double weight, y, x, yy, xx, yx;
} ref_shift_sums;

/* Adds a key with weight a at the shift (y, x). */
static inline void ref_add_shift(ref_shift_sums *sums, double y, double x, double a)
{
    y -= sums->origin_y, x -= sums->origin_x;
    sums->weight += a;
    sums->y += a * y;
    sums->x += a * x;
    sums->yy += a * y * y;
    sums->xx += a * x * x;
    sums->yx += a * y * x;
}

/* Sets ATT_STAT_Y to ATT_STAT_YX. */
static inline void ref_put_shifts(const ref_shift_sums *sums, double stat[ATT_STAT_COUNT])
{
    bool any = sums->weight > 0;
    double mean_y = any ? sums->y / sums->weight : 0, mean_x = any ? sums->x / sums->weight : 0;
    stat[ATT_STAT_Y] = sums->y + sums->weight * sums->origin_y;
    stat[ATT_STAT_X] = sums->x + sums->weight * sums->origin_x;
    stat[ATT_STAT_YY] = sums->yy - sums->y * mean_y;
    stat[ATT_STAT_XX] = sums->xx - sums->x * mean_x;
    stat[ATT_STAT_YX] = sums->yx - sums->y * mean_x;
}

#endif
