/* ops/smooth_l1.h - attributes of smooth_l1 and its gradient, and the loss of one number. */
#ifndef ATT_OPS_SMOOTH_L1_H
#define ATT_OPS_SMOOTH_L1_H

#include <math.h>

typedef struct att_smooth_l1_attrs {
    double beta;
} att_smooth_l1_attrs;

static inline double att_smooth_l1_of(double difference, double beta)
{
    const double size = fabs(difference);
    return size < beta ? size * size / (2 * beta) : size - beta / 2;
}

static inline double att_smooth_l1_slope(double difference, double beta)
{
    if (fabs(difference) < beta)
        return difference / beta;
    return difference > 0 ? 1 : difference < 0 ? -1 : difference; /* NaN stays */
}

#endif
