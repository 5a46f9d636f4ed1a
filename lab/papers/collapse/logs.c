#include "lab/papers/collapse/logs.h"

#include <math.h>
#include <string.h>

/* Logarithms beyond this are carried as their own logarithm. */
static const double MOST_LOG = 1e300;

att_stack_log att_log_of(double value)
{
    return (att_stack_log){value, log(fabs(value))};
}

att_stack_log att_log_none(void)
{
    return (att_stack_log){NAN, NAN};
}

bool att_log_has_value(att_stack_log v)
{
    return !isnan(v.log_log);
}

bool att_log_is_zero(att_stack_log v)
{
    return v.log == -INFINITY && v.log_log == INFINITY;
}

static double sign_of(att_stack_log v)
{
    return v.log < 0 ? -1 : 1;
}

att_stack_log att_log_product(double p, att_stack_log a, double q, att_stack_log b, double k)
{
    if (!att_log_has_value(a) || !att_log_has_value(b))
        return att_log_none();
    if (att_log_is_zero(a) || att_log_is_zero(b))
        return att_log_of(-INFINITY);
    double plain = p * a.log + q * b.log + k;
    if (isfinite(a.log) && isfinite(b.log) && fabs(plain) <= MOST_LOG)
        return att_log_of(plain);
    double scale = fmax(a.log_log, b.log_log);
    double value = p * sign_of(a) * exp(a.log_log - scale) + q * sign_of(b) * exp(b.log_log - scale) + k * exp(-scale);
    double log_log = scale + log(fabs(value)), size = exp(log_log);
    return (att_stack_log){value < 0 ? -size : size, log_log};
}

att_stack_log att_log_times(att_stack_log a, double k)
{
    return att_log_product(1, a, 0, att_log_of(0), k);
}

int att_stack_compare(att_stack_log a, att_stack_log b)
{
    if (a.log != b.log || isfinite(a.log))
        return (a.log > b.log) - (a.log < b.log);
    int further = (a.log_log > b.log_log) - (a.log_log < b.log_log);
    return a.log < 0 ? -further : further;
}

att_stack_log att_log_sum(att_stack_log a, att_stack_log b)
{
    if (!att_log_has_value(a) || !att_log_has_value(b))
        return att_log_none();
    bool a_is_larger = att_stack_compare(a, b) >= 0;
    att_stack_log larger = a_is_larger ? a : b, smaller = a_is_larger ? b : a;
    if (!isfinite(larger.log))
        return larger;
    return att_log_of(larger.log + log1p(exp(smaller.log - larger.log)));
}

double att_scaled_normalise(double *x, int count)
{
    double largest = 0, sum = 0;
    for (int i = 0; i < count; i++)
        largest = fmax(largest, fabs(x[i]));
    if (largest == 0)
        return -INFINITY;
    for (int i = 0; i < count; i++) {
        x[i] /= largest;
        sum += x[i] * x[i];
    }
    double norm = sqrt(sum);
    for (int i = 0; i < count; i++)
        x[i] /= norm;
    return log(largest) + log(norm);
}

void att_scaled_add(double *x, double *x_log, const double *y, double y_log, int count)
{
    double scale = fmax(*x_log, y_log);
    if (scale == -INFINITY)
        return;
    double keep = exp(*x_log - scale), add = exp(y_log - scale);
    for (int i = 0; i < count; i++)
        x[i] = keep * x[i] + add * y[i];
    *x_log = scale;
}

void att_product(const double *x, int rows, int inner, const double *w, int columns, double *y)
{
    for (int i = 0; i < rows; i++) {
        double *restrict to = y + (size_t)i * (size_t)columns;
        memset(to, 0, (size_t)columns * sizeof *to);
        for (int k = 0; k < inner; k++) {
            const double factor = x[(size_t)i * (size_t)inner + (size_t)k];
            if (factor == 0)
                continue;
            const double *restrict row = w + (size_t)k * (size_t)columns;
            for (int j = 0; j < columns; j++)
                to[j] += factor * row[j];
        }
    }
}
