#include "lab/papers/collapse/tokens.h"

#include <math.h>
#include <string.h>

#include "base/core/quantile.h"

static size_t size_of(const att_tokens *t)
{
    return (size_t)t->count * (size_t)t->width;
}

bool att_tokens_create(att_arena *arena, int count, int width, att_tokens *tokens)
{
    *tokens = (att_tokens){.count = count, .width = width, .mean_log = -INFINITY, .rest_log = att_log_of(-INFINITY)};
    tokens->mean = att_arena_allocate(arena, (size_t)width * sizeof(double));
    tokens->rest = att_arena_allocate(arena, size_of(tokens) * sizeof(double));
    return tokens->mean && tokens->rest;
}

void att_tokens_copy(const att_tokens *from, att_tokens *to)
{
    memcpy(to->mean, from->mean, (size_t)from->width * sizeof *to->mean);
    memcpy(to->rest, from->rest, size_of(from) * sizeof *to->rest);
    to->mean_log = from->mean_log;
    to->rest_log = from->rest_log;
}

/* Differences from the first token are exactly 0 if all tokens are equal; differences from a rounded mean are not. */
void att_tokens_split(const double *plain, att_tokens *t)
{
    memcpy(t->mean, plain, (size_t)t->width * sizeof *t->mean);
    t->mean_log = 0;
    for (int i = 0; i < t->count; i++)
        for (int c = 0; c < t->width; c++)
            t->rest[i * t->width + c] = plain[i * t->width + c] - plain[c];
    t->rest_log = att_log_of(0);
    att_tokens_settle(t);
}

void att_tokens_join(const att_tokens *t, double *plain)
{
    double mean = exp(t->mean_log), rest = exp(t->rest_log.log);
    for (int i = 0; i < t->count; i++)
        for (int c = 0; c < t->width; c++)
            plain[i * t->width + c] = mean * t->mean[c] + rest * t->rest[i * t->width + c];
}

/* Moves the means of the columns of `rest` to the mean. */
static void centre(att_tokens *t)
{
    double scale = fmax(t->mean_log, t->rest_log.log);
    if (scale == -INFINITY)
        return;
    double keep = exp(t->mean_log - scale), add = exp(t->rest_log.log - scale);
    for (int c = 0; c < t->width; c++) {
        double sum = 0;
        for (int i = 0; i < t->count; i++)
            sum += t->rest[i * t->width + c];
        double mean = sum / t->count;
        for (int i = 0; i < t->count; i++)
            t->rest[i * t->width + c] -= mean;
        t->mean[c] = keep * t->mean[c] + add * mean;
    }
    t->mean_log = scale;
}

void att_tokens_settle(att_tokens *t)
{
    centre(t);
    t->mean_log += att_scaled_normalise(t->mean, t->width);
    double norm = att_scaled_normalise(t->rest, t->count * t->width);
    t->rest_log = norm == -INFINITY ? att_log_of(-INFINITY) : att_log_times(t->rest_log, norm);
}

void att_tokens_add(att_tokens *t, const att_tokens *other)
{
    att_scaled_add(t->mean, &t->mean_log, other->mean, other->mean_log, t->width);
    if (att_log_is_zero(other->rest_log)) {
        t->mean_log += att_scaled_normalise(t->mean, t->width);
        return;
    }
    double scale = t->rest_log.log;
    att_scaled_add(t->rest, &scale, other->rest, other->rest_log.log, t->count * t->width);
    if (isfinite(scale))
        t->rest_log = att_log_of(scale);
    att_tokens_settle(t);
}

att_norms att_norms_of(const double *x, int rows, int columns)
{
    att_norms norms = {0, 0};
    for (int c = 0; c < columns; c++) {
        double sum = 0;
        for (int i = 0; i < rows; i++)
            sum += fabs(x[(size_t)i * (size_t)columns + (size_t)c]);
        norms.one = fmax(norms.one, sum);
    }
    for (int i = 0; i < rows; i++) {
        double sum = 0;
        for (int c = 0; c < columns; c++)
            sum += fabs(x[(size_t)i * (size_t)columns + (size_t)c]);
        norms.inf = fmax(norms.inf, sum);
    }
    return (att_norms){log(norms.one), log(norms.inf)};
}

att_stack_log att_tokens_residual(const att_tokens *t)
{
    att_norms norms = att_norms_of(t->rest, t->count, t->width);
    return att_log_times(t->rest_log, 0.5 * (norms.one + norms.inf));
}

/* Uses that of the residual X - 1 m', whose medians differ from those of X by m. */
att_stack_log att_tokens_median_residual(const att_tokens *t, double *scratch)
{
    double *column = scratch, *rows = scratch + t->count, one = 0, inf = 0;
    memset(rows, 0, (size_t)t->count * sizeof *rows);
    for (int c = 0; c < t->width; c++) {
        for (int i = 0; i < t->count; i++)
            column[i] = t->rest[i * t->width + c];
        double median = att_median(column, t->count), sum = 0;
        for (int i = 0; i < t->count; i++) {
            double size = fabs(t->rest[i * t->width + c] - median);
            rows[i] += size;
            sum += size;
        }
        one = fmax(one, sum);
    }
    for (int i = 0; i < t->count; i++)
        inf = fmax(inf, rows[i]);
    return att_log_times(t->rest_log, 0.5 * (log(one) + log(inf)));
}

double att_tokens_norm(const att_tokens *t, double *plain)
{
    double scale = fmax(t->mean_log, t->rest_log.log);
    if (scale == -INFINITY)
        return -INFINITY;
    att_tokens scaled = *t;
    scaled.mean_log -= scale;
    scaled.rest_log.log -= scale;
    att_tokens_join(&scaled, plain);
    att_norms norms = att_norms_of(plain, t->count, t->width);
    return scale + 0.5 * (norms.one + norms.inf);
}

/* With |R|_F = 1 the ratio is 1 / |R'R|_F^2. */
double att_tokens_rank(const att_tokens *t, double *gram)
{
    if (att_log_is_zero(t->rest_log))
        return 0;
    size_t width = (size_t)t->width;
    memset(gram, 0, width * width * sizeof *gram);
    for (int i = 0; i < t->count; i++) {
        const double *row = t->rest + (size_t)i * width;
        for (size_t a = 0; a < width; a++)
            for (size_t b = 0; b < width; b++)
                gram[a * width + b] += row[a] * row[b];
    }
    double sum = 0;
    for (size_t i = 0; i < width * width; i++)
        sum += gram[i] * gram[i];
    return 1 / sum;
}

static double squared(const double *x, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sum;
}

/* ln |e^x_log x - e^y_log y| */
static double distance(const double *x, double x_log, const double *y, double y_log, int count, double *scratch)
{
    memcpy(scratch, x, (size_t)count * sizeof *scratch);
    for (int i = 0; i < count; i++)
        scratch[i] = -scratch[i];
    att_scaled_add(scratch, &x_log, y, y_log, count);
    return x_log == -INFINITY ? x_log : x_log + 0.5 * log(squared(scratch, count));
}

/* |X|_F^2 = count |m|^2 + |e^s R|_F^2, because the columns of R have mean 0. */
static double frobenius(double mean_log, double rest_log, int count)
{
    double mean = mean_log + 0.5 * log(count), scale = fmax(mean, rest_log);
    return scale == -INFINITY ? scale : scale + 0.5 * log(exp(2 * (mean - scale)) + exp(2 * (rest_log - scale)));
}

double att_tokens_distance(const att_tokens *x, const att_tokens *y, double *scratch)
{
    double mean = distance(x->mean, x->mean_log, y->mean, y->mean_log, x->width, scratch);
    double rest = distance(x->rest, x->rest_log.log, y->rest, y->rest_log.log, x->count * x->width, scratch);
    return frobenius(mean, rest, x->count);
}

double att_tokens_difference(const att_tokens *x, const att_tokens *y, double *scratch)
{
    double difference = att_tokens_distance(x, y, scratch);
    return difference == -INFINITY ? 0 : exp(difference - frobenius(x->mean_log, x->rest_log.log, x->count));
}
