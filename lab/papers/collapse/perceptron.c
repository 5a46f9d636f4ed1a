#include <math.h>

#include "lab/papers/collapse/gelu.h"
#include "lab/papers/collapse/layer.h"

enum { TERMS = 4, POINTS = 8 };
/* The largest |x| of the Taylor polynomial, whose first term left out is below 1e-16, and of Gauss's rule. */
static const double TAYLOR = 2e-4, GAUSS = 1;
/* exp() of more overflows, or nearly. */
static const double MOST_EXPONENT = 600;

bool att_perceptron_create(att_arena *arena, int count, int hidden, att_perceptron *work)
{
    size_t n = (size_t)count, f = (size_t)hidden;
    double *at = att_arena_allocate(arena, (n + 3 + TERMS) * f * sizeof *at);
    *work = (att_perceptron){.hidden = hidden};
    if (!at)
        return false;
    work->level = at;
    work->common = at + f;
    work->input = at + 2 * f;
    work->slopes = at + 3 * f;
    work->steps = at + (3 + TERMS) * f;
    return true;
}

/* Coefficients of (gelu(a + x) - gelu(a)) / x in powers of x */
static void expand(double a, double terms[TERMS])
{
    double p = fabs(a) < ATT_GELU_STRAIGHT ? att_normal_density(a) : 0, b = fabs(a) < ATT_GELU_STRAIGHT ? a : 0,
           square = b * b;
    terms[0] = att_gelu_slope(a);
    terms[1] = p * (2 - square) / 2;
    terms[2] = p * b * (square - 4) / 6;
    terms[3] = p * (-square * square + 7 * square - 4) / 24;
}

/* The mean of gelu' between a and a + x, |x| <= GAUSS: Gauss-Legendre. */
static double mean_slope(double a, double x)
{
    static const double nodes[POINTS / 2] = {0.18343464249564980494, 0.52553240991632898582, 0.79666647741362673959,
                                             0.96028985649753623168};
    static const double weights[POINTS / 2] = {0.36268378337836198297, 0.31370664587788728734, 0.22238103445337447054,
                                               0.10122853629037625915};
    double sum = 0;
    for (int i = 0; i < POINTS / 2; i++)
        sum +=
            weights[i] * (att_gelu_slope(a + 0.5 * x * (1 + nodes[i])) + att_gelu_slope(a + 0.5 * x * (1 - nodes[i])));
    return 0.5 * sum;
}

/* An input a = e^scale level of GELU that all tokens share, and the scale of the steps x = e^rest step from it. */
typedef struct place {
    double a, level, scale, rest, unit; /* unit: e^rest */
    const double *terms;
} place;

/* (gelu(a + x) - gelu(a)) / x. Numbers beyond a double's range are divided by a common factor: gelu(v) is v times the
 * distribution at v. */
static double slope_of(const place *at, double step)
{
    double x = step * at->unit;
    if (fabs(x) <= TAYLOR)
        return at->terms[0] + x * (at->terms[1] + x * (at->terms[2] + x * at->terms[3]));
    if (fabs(x) <= GAUSS)
        return mean_slope(at->a, x);
    if (fmin(at->a, at->a + x) > ATT_GELU_STRAIGHT)
        return 1;
    double scale = fmax(at->scale, at->rest), unit = exp(fmin(scale, MOST_EXPONENT));
    double before = at->level * exp(at->scale - scale), change = step * exp(at->rest - scale), after = before + change;
    return (after * att_normal_cumulative(unit * after) - before * att_normal_cumulative(unit * before)) / change;
}

/* GELU's inputs that all tokens share, its outputs there, and the Taylor coefficients. Returns the scale of both. */
static double share(att_perceptron *work, const att_stack_weights *w, const att_tokens *u)
{
    double scale = u->mean_log;
    att_product(u->mean, 1, u->width, w->fc1, work->hidden, work->level);
    if (w->fc1_bias)
        att_scaled_add(work->level, &scale, w->fc1_bias, 0, work->hidden);
    for (int c = 0; c < work->hidden; c++) {
        work->input[c] = work->level[c] * exp(fmin(scale, MOST_EXPONENT));
        work->common[c] = work->level[c] * att_normal_cumulative(work->input[c]);
        expand(work->input[c], work->slopes + TERMS * c);
    }
    return scale;
}

void att_perceptron_run(att_perceptron *work, const att_stack_weights *w, const att_tokens *u, att_tokens *y)
{
    int n = u->count, d = u->width, f = work->hidden;
    double scale = share(work, w, u), rest = u->rest_log.log, unit = exp(rest);
    att_product(u->rest, n, d, w->fc1, f, work->steps);
    for (int i = 0; i < n; i++)
        for (int c = 0; c < f; c++) {
            const place at = {work->input[c], work->level[c], scale, rest, unit, work->slopes + TERMS * c};
            work->steps[i * f + c] *= slope_of(&at, work->steps[i * f + c]);
        }
    att_product(work->common, 1, f, w->fc2, d, y->mean);
    y->mean_log = scale;
    if (w->fc2_bias)
        att_scaled_add(y->mean, &y->mean_log, w->fc2_bias, 0, d);
    att_product(work->steps, n, f, w->fc2, d, y->rest);
    y->rest_log = u->rest_log;
    att_tokens_settle(y);
}
