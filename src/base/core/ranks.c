#include "base/core/ranks.h"

#include <math.h>
#include <stdint.h>

static int sign_of(double value)
{
    return (value > 0) - (value < 0);
}

double att_kendall(const double *x, const double *y, int count)
{
    int64_t balance = 0, untied_x = 0, untied_y = 0;
    for (int i = 1; i < count; i++)
        for (int j = 0; j < i; j++) {
            int a = sign_of(x[i] - x[j]), b = sign_of(y[i] - y[j]);
            balance += a * b;
            untied_x += a != 0;
            untied_y += b != 0;
        }
    return untied_x > 0 && untied_y > 0 ? (double)balance / sqrt((double)untied_x * (double)untied_y) : NAN;
}

void att_rank_twice(const double *values, int count, double *ranks)
{
    for (int i = 0; i < count; i++) {
        int below = 0, equal = 0;
        for (int j = 0; j < count; j++) {
            below += values[j] < values[i];
            equal += values[j] == values[i];
        }
        ranks[i] = 2 * below + equal + 1;
    }
}

/* Pearson's correlation of the doubled ranks, whose mean is count + 1. */
double att_spearman(const double *rank_x, const double *rank_y, int count)
{
    double xy = 0, xx = 0, yy = 0;
    for (int i = 0; i < count; i++) {
        double a = rank_x[i] - (count + 1), b = rank_y[i] - (count + 1);
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}
