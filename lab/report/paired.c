#include "lab/report/paired.h"

#include <math.h>

#include "base/core/spread.h"

static const double pi = 3.14159265358979323846;

/* P(|T| < t) for Student's t: a finite sum of powers of cos(atan(t / sqrt(degrees))). */
static double share_within(double t, int degrees)
{
    double angle = atan(t / sqrt(degrees)), c = cos(angle), s = sin(angle);
    bool odd = degrees % 2 == 1;
    double term = odd ? c : 1, sum = degrees > 1 ? term : 0;
    for (int k = odd ? 3 : 2; k <= degrees - 2; k += 2) {
        term *= c * c * (k - 1) / k;
        sum += term;
    }
    return odd ? 2 / pi * (angle + s * sum) : s * sum;
}

double att_student_quantile(int degrees, double share)
{
    double low = 0, high = 1e6; /* 636,620 for one degree and a share of 1 - 1e-6 */
    if (degrees < 1)
        return NAN;
    for (int i = 0; i < 80; i++) {
        double middle = (low + high) / 2;
        if (share_within(middle, degrees) < share)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

att_paired att_paired_difference(const double *a, const double *b, int count)
{
    att_spread spread = {0};
    for (int i = 0; i < count; i++)
        if (isfinite(a[i]) && (!b || isfinite(b[i])))
            att_spread_add(&spread, a[i] - (b ? b[i] : 0));
    int n = (int)spread.count;
    att_paired paired = {.count = n, .mean = att_spread_mean(&spread), .deviation = att_spread_deviation(&spread)};
    att_paired_widen(&paired, 1);
    return paired;
}

void att_paired_widen(att_paired *paired, int tests)
{
    const double t = att_student_quantile(paired->count - 1, 1 - 0.05 / tests);
    const double half = t * paired->deviation / sqrt(paired->count);
    paired->low = paired->mean - half;
    paired->high = paired->mean + half;
}

bool att_paired_is_separated(const att_paired *paired)
{
    return paired->low > 0 || paired->high < 0;
}
