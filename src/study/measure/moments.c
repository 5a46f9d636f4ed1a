#include "study/measure/moments.h"

#include <math.h>
#include <stdbool.h>

void att_tally_add(att_tally *tally, double value)
{
    if (isfinite(value))
        att_spread_add(&tally->spread, value);
    else
        tally->undefined++;
}

void att_tallies_merge(att_tally *tallies, const att_tally *later, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        att_spread_merge(&tallies[i].spread, &later[i].spread);
        tallies[i].undefined += later[i].undefined;
    }
}

att_figure att_tally_figure(const att_tally *tally)
{
    const att_spread *spread = &tally->spread;
    return (att_figure){att_spread_mean(spread), att_spread_deviation(spread), spread->count + tally->undefined,
                        tally->undefined};
}

void att_moments_merge(att_moments *moments, const att_moments *later)
{
    int64_t undefined = moments->undefined + later->undefined;
    if (moments->count == 0) {
        *moments = *later;
    } else if (later->count > 0) {
        double count = (double)(moments->count + later->count), share = (double)later->count / count;
        double x = later->x - moments->x, y = later->y - moments->y, weight = (double)moments->count * share;
        moments->xx += later->xx + x * x * weight;
        moments->yy += later->yy + y * y * weight;
        moments->xy += later->xy + x * y * weight;
        moments->x += x * share;
        moments->y += y * share;
        moments->count += later->count;
    }
    moments->undefined = undefined;
}

void att_moments_add(att_moments *moments, double x, double y)
{
    if (isfinite(x) && isfinite(y))
        att_moments_merge(moments, &(att_moments){.count = 1, .x = x, .y = y});
    else
        moments->undefined++;
}

#define LEAST_VARIATION 1e-6

static bool is_constant(double squares, double mean, int64_t count)
{
    return !(sqrt(squares / (double)count) > LEAST_VARIATION * fabs(mean));
}

double att_moments_correlation(const att_moments *moments)
{
    if (moments->count < 3 || is_constant(moments->xx, moments->x, moments->count) ||
        is_constant(moments->yy, moments->y, moments->count))
        return NAN;
    return moments->xy / (sqrt(moments->xx) * sqrt(moments->yy));
}
