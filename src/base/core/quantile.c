#include "base/core/quantile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double between(double below, double above, double part)
{
    return part > 0 && above != below ? below + part * (above - below) : below; /* both may be infinite */
}

double att_quantile(const double *ascending, int64_t count, double fraction)
{
    const double place = fraction * (double)(count - 1);
    const int64_t below = (int64_t)place, above = below < count - 1 ? below + 1 : below;
    return between(ascending[below], ascending[above], place - (double)below);
}

void att_sort_ascending(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
}

double att_median(double *values, int64_t count)
{
    att_sort_ascending(values, count);
    return att_quantile(values, count, 0.5);
}

/* --- in any order ------------------------------------------------------------------------------------------------- */

/* The bits of floats as integers in the order of the floats. mask: the bits that count. */
static uint32_t key_of(float value, uint32_t mask)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= mask;
    return bits ^ (bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31);
}

static double value_of(uint32_t key)
{
    const uint32_t bits = key ^ (key >> 31 ? UINT32_C(1) << 31 : UINT32_MAX);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* The key with `place` keys before it in ascending order, found byte by byte. *more: how many equal keys follow. */
static uint32_t key_at(const float *values, int64_t count, int64_t place, uint32_t mask, int64_t *more)
{
    uint32_t found = 0, known = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int64_t bins[256] = {0};
        uint32_t bin = 0;
        for (int64_t i = 0; i < count; i++) {
            const uint32_t key = key_of(values[i], mask);
            bins[key >> shift & 255] += (key & known) == found;
        }
        while (place >= bins[bin])
            place -= bins[bin++];
        found |= bin << shift;
        known |= UINT32_C(255) << shift;
        *more = bins[bin] - place - 1;
    }
    return found;
}

/* The smallest key above another one. */
static uint32_t key_above(const float *values, int64_t count, uint32_t key, uint32_t mask)
{
    uint32_t above = UINT32_MAX;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t other = key_of(values[i], mask);
        above = other > key && other < above ? other : above;
    }
    return above;
}

double att_quantile_of(const float *values, int64_t count, double fraction, bool magnitudes)
{
    const uint32_t mask = magnitudes ? UINT32_MAX >> 1 : UINT32_MAX;
    const double place = fraction * (double)(count - 1);
    const int64_t before = (int64_t)place;
    for (int64_t i = 0; i < count; i++)
        if (isnan(values[i]))
            return NAN;
    int64_t more;
    const uint32_t below = key_at(values, count, before, mask, &more);
    const bool is_last = before == count - 1;
    const uint32_t above = is_last || more > 0 ? below : key_above(values, count, below, mask);
    return between(value_of(below), value_of(above), place - (double)before);
}
