#include "base/core/spread.h"

#include <math.h>

void att_spread_add(att_spread *spread, double value)
{
    spread->count++;
    double change = value - spread->mean;
    spread->mean += change / (double)spread->count;
    spread->squares += change * (value - spread->mean);
}

void att_spread_merge(att_spread *spread, const att_spread *later)
{
    if (spread->count == 0)
        *spread = *later;
    else if (later->count > 0) {
        double own = (double)spread->count, more = (double)later->count, change = later->mean - spread->mean;
        spread->count += later->count;
        spread->mean += change * more / (own + more);
        spread->squares += later->squares + change * change * own * more / (own + more);
    }
}

double att_spread_mean(const att_spread *spread)
{
    return spread->count > 0 ? spread->mean : NAN;
}

double att_spread_deviation(const att_spread *spread)
{
    return spread->count > 1 ? sqrt(spread->squares / (double)(spread->count - 1)) : NAN;
}
