#include <math.h>
#include <string.h>

#include "lab/papers/collapse/layer.h"

/* expm1(x) and its like are linear in x to all digits below. */
static const double LINEAR = 1e-20;

static double dot(const double *x, const double *y, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

static void centre_channels(double *x, int rows, int width)
{
    for (int i = 0; i < rows; i++) {
        double *row = x + i * width, sum = 0;
        for (int c = 0; c < width; c++)
            sum += row[c];
        for (int c = 0; c < width; c++)
            row[c] -= sum / width;
    }
}

/* ln(e^a + e^b); -inf for two of -inf */
static double log_sum(double a, double b)
{
    double larger = fmax(a, b);
    return larger == -INFINITY ? larger : larger + log1p(exp(fmin(a, b) - larger));
}

/* Tokens whose residual is not smaller than their mean: each is formed and divided by its own standard deviation. */
static void normalise_directly(att_tokens *x, double log_eps)
{
    int d = x->width;
    double scale = fmax(x->mean_log, x->rest_log.log), mean = exp(x->mean_log - scale);
    double rest = exp(x->rest_log.log - scale), common = scale - 0.5 * log_sum(2 * scale, log_eps);
    for (int i = 0; i < x->count; i++) {
        double *row = x->rest + i * d;
        for (int c = 0; c < d; c++)
            row[c] = mean * x->mean[c] + rest * row[c];
        double square = dot(row, row, d) / d;
        double factor = square > 0 ? exp(scale - 0.5 * log_sum(2 * scale + log(square), log_eps) - common) : 0;
        for (int c = 0; c < d; c++)
            row[c] *= factor;
    }
    x->mean_log = -INFINITY;
    memset(x->mean, 0, (size_t)d * sizeof *x->mean);
    x->rest_log = att_log_of(common);
}

/* Token i is m + e^s r_i, m = e^t u. With v = e^2t |u|^2 / d + eps and v_i = v (1 + x_i),
 *
 *     x_i = e^(s - t) y_i, y_i = (2 e^2t u.r_i + e^(s + t) |r_i|^2) / (d v),
 *     (m + e^s r_i) / sqrt(v_i) = (m + e^s (g_i r_i + e^(t - s) (g_i - 1) u)) / sqrt(v), g_i = 1 / sqrt(1 + x_i). */
static void normalise_differences(att_tokens *x, double log_eps)
{
    int d = x->width;
    double s = x->rest_log.log, t = x->mean_log, log_v = log_sum(2 * t - log(d), log_eps);
    double linear = exp(2 * t - log_v), square = exp(s + t - log_v), ratio = exp(s - t);
    for (int i = 0; i < x->count; i++) {
        double *row = x->rest + i * d;
        double y = (2 * linear * dot(x->mean, row, d) + square * dot(row, row, d)) / d;
        double less = expm1(-0.5 * log1p(ratio * y)); /* g_i - 1 */
        double along = fabs(ratio * y) > LINEAR ? less / ratio : -0.5 * y;
        for (int c = 0; c < d; c++)
            row[c] = (1 + less) * row[c] + along * x->mean[c];
    }
    x->mean_log -= 0.5 * log_v;
    x->rest_log = att_log_times(x->rest_log, -0.5 * log_v);
}

static void scale_columns(att_tokens *x, const double *weight)
{
    for (int c = 0; c < x->width; c++)
        x->mean[c] *= weight[c];
    for (int i = 0; i < x->count * x->width; i++)
        x->rest[i] *= weight[i % x->width];
}

void att_norm_tokens(att_tokens *x, double eps, const double *weight, const double *bias)
{
    centre_channels(x->mean, 1, x->width);
    centre_channels(x->rest, x->count, x->width);
    att_tokens_settle(x);
    if (fmax(x->mean_log, x->rest_log.log) > -INFINITY) {
        if (x->rest_log.log >= x->mean_log)
            normalise_directly(x, log(eps));
        else
            normalise_differences(x, log(eps));
    }
    if (weight)
        scale_columns(x, weight);
    if (bias)
        att_scaled_add(x->mean, &x->mean_log, bias, 0, x->width);
    att_tokens_settle(x);
}

void att_norm_columns(att_tokens *x, double *scales)
{
    for (int c = 0; c < x->width; c++) {
        double square = 0;
        for (int i = 0; i < x->count; i++)
            square += x->rest[i * x->width + c] * x->rest[i * x->width + c];
        double deviation = sqrt(square / x->count);
        scales[c] = deviation > 0 ? x->rest_log.log + log(deviation) : 0;
        for (int i = 0; deviation > 0 && i < x->count; i++)
            x->rest[i * x->width + c] /= deviation;
    }
    memset(x->mean, 0, (size_t)x->width * sizeof *x->mean);
    x->mean_log = -INFINITY;
    if (!att_log_is_zero(x->rest_log))
        x->rest_log = att_log_of(0);
    att_tokens_settle(x);
}
