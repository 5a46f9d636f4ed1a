#include <attscope/lab/correlation.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/random.h"
#include "core/ranks.h"

enum {
    MEASURES = 2,
    MIN_PAIRS = 3,
    MIN_RESAMPLED_PAIRS = 5
}; /* MEASURES: tau and rho. MIN_PAIRS: least number of pairs for p. MIN_RESAMPLED_PAIRS: for an interval. */

/* The pairs (x, y) and their ranks. tau is computed from the values, rho from the ranks. */
typedef struct pairs {
    int count;
    const double *x, *y;
    double *rank_x, *rank_y;
} pairs;

/* --- p ------------------------------------------------------------------------------------------------------------ */

typedef struct permutation_test {
    const pairs *observed;
    double size[MEASURES]; /* absolute values of the observed correlations */
    double *y, *rank_y;    /* permuted together */
    int64_t all, extreme[MEASURES];
} permutation_test;

/* Tolerates rounding: equal correlations may differ in their last bits. */
static bool is_at_least(double correlation, double size)
{
    return fabs(correlation) >= size * (1 - 1e-12);
}

static void count_permutation(permutation_test *p)
{
    const pairs *o = p->observed;
    p->all++;
    p->extreme[0] += is_at_least(att_kendall(o->x, p->y, o->count), p->size[0]);
    p->extreme[1] += is_at_least(att_spearman(o->rank_x, p->rank_y, o->count), p->size[1]);
}

static void swap(double *values, int a, int b)
{
    double temporary = values[a];
    values[a] = values[b];
    values[b] = temporary;
}

static void swap_both(permutation_test *p, int a, int b)
{
    swap(p->y, a, b);
    swap(p->rank_y, a, b);
}

static void try_all_permutations(permutation_test *p, int fixed)
{
    if (fixed == p->observed->count) {
        count_permutation(p);
        return;
    }
    for (int i = fixed; i < p->observed->count; i++) {
        swap_both(p, fixed, i);
        try_all_permutations(p, fixed + 1);
        swap_both(p, fixed, i);
    }
}

static void try_random_permutations(permutation_test *p, uint64_t seed)
{
    att_random random = att_random_from(att_random_key(seed, att_random_hash("permutation"), 0));
    for (int i = 0; i < ATT_CORRELATE_PERMUTATIONS; i++) {
        for (int last = p->observed->count - 1; last > 0; last--)
            swap_both(p, last, (int)att_random_below(&random, last + 1));
        count_permutation(p);
    }
}

static void permute(const pairs *o, double *scratch, uint64_t seed, att_correlation *c)
{
    permutation_test p = {.observed = o,
                          .size = {fabs(c->kendall.value), fabs(c->spearman.value)},
                          .y = scratch,
                          .rank_y = scratch + o->count};
    memcpy(p.y, o->y, (size_t)o->count * sizeof *p.y);
    memcpy(p.rank_y, o->rank_y, (size_t)o->count * sizeof *p.rank_y);
    c->exact = o->count <= ATT_CORRELATE_EXACT;
    if (c->exact)
        try_all_permutations(&p, 0);
    else
        try_random_permutations(&p, seed);
    double observed = c->exact ? 0 : 1; /* all permutations include the observed order */
    c->permutations = p.all;
    c->kendall.p = ((double)p.extreme[0] + observed) / ((double)p.all + observed);
    c->spearman.p = ((double)p.extreme[1] + observed) / ((double)p.all + observed);
}

/* --- intervals ---------------------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Linear interpolation between neighbours (Hyndman and Fan's type 7). */
static double quantile(const double *sorted, int count, double fraction)
{
    double position = fraction * (count - 1);
    int below = (int)position, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
}

static void interval(double *values, int count, att_rank_correlation *correlation)
{
    if (2 * count < ATT_CORRELATE_RESAMPLES)
        return;
    qsort(values, (size_t)count, sizeof *values, compare);
    correlation->low = quantile(values, count, 0.025);
    correlation->high = quantile(values, count, 0.975);
}

static void resample(const pairs *o, double *scratch, uint64_t seed, att_correlation *c)
{
    int n = o->count, valid = 0;
    double *x = scratch, *y = x + n, *rank_x = y + n, *rank_y = rank_x + n;
    double *tau = rank_y + n, *rho = tau + ATT_CORRELATE_RESAMPLES;
    att_random random = att_random_from(att_random_key(seed, att_random_hash("bootstrap"), 0));
    for (int i = 0; i < ATT_CORRELATE_RESAMPLES; i++) {
        for (int k = 0; k < n; k++) {
            int64_t index = att_random_below(&random, n);
            x[k] = o->x[index];
            y[k] = o->y[index];
        }
        tau[valid] = att_kendall(x, y, n);
        if (isnan(tau[valid]))
            continue;
        att_rank_twice(x, n, rank_x);
        att_rank_twice(y, n, rank_y);
        rho[valid++] = att_spearman(rank_x, rank_y, n);
    }
    c->resamples = valid;
    interval(tau, valid, &c->kendall);
    interval(rho, valid, &c->spearman);
}

/* --- together ----------------------------------------------------------------------------------------------------- */

static att_status check(att_context *context, const double *x, const double *y, int count)
{
    if (count < 0 || count > ATT_CORRELATE_MOST)
        return att_fail(context, ATT_ERR_ARGUMENT, "a correlation of %d pairs, expected 0 to %d", count,
                        (int)ATT_CORRELATE_MOST);
    for (int i = 0; i < count; i++)
        if (!isfinite(x[i]) || !isfinite(y[i]))
            return att_fail(context, ATT_ERR_NONFINITE, "pair %d of a correlation is (%g, %g), which has no rank", i,
                            x[i], y[i]);
    return ATT_OK;
}

att_status att_correlate(att_context *context, const double *x, const double *y, int count, uint64_t seed,
                         att_correlation *correlation)
{
    const att_rank_correlation none = {NAN, NAN, NAN, NAN};
    ATT_TRY(check(context, x, y, count));
    size_t n = (size_t)count, size = 6 * n + MEASURES * ATT_CORRELATE_RESAMPLES;
    double *values = att_allocate_array(context, size, sizeof *values);
    if (!values)
        return att_fail_memory(context, size * sizeof *values, "a correlation");
    pairs o = {count, x, y, values, values + n};
    att_rank_twice(x, count, o.rank_x);
    att_rank_twice(y, count, o.rank_y);
    att_correlation c = {.count = count, .kendall = none, .spearman = none};
    c.kendall.value = att_kendall(x, y, count);
    c.spearman.value = att_spearman(o.rank_x, o.rank_y, count);
    if (count >= MIN_PAIRS && !isnan(c.kendall.value))
        permute(&o, values + 2 * n, seed, &c);
    if (count >= MIN_RESAMPLED_PAIRS && !isnan(c.kendall.value))
        resample(&o, values + 2 * n, seed, &c);
    att_free(context, values);
    *correlation = c;
    return ATT_OK;
}

static const att_correlation_method methods[] = {
    {"tau-b",
     "(C - D) / sqrt((P - X)(P - Y)): of the P = n (n - 1) / 2 pairs of points C are concordant, D discordant, X tied "
     "in x, Y in y",
     "Kendall, Biometrika 1945"},
    {"rho", "Pearson's correlation of the ranks; ties have their mean rank", "Spearman 1904"},
    {"p",
     "fraction of the permutations of y whose |correlation| is at least the observed one: all n! for n <= 8, else "
     "(1 + k) / (1 + 10,000) if k of 10,000 random ones qualify",
     "Phipson and Smyth 2010"},
    {"interval",
     "percentiles 2.5 and 97.5 of 2,000 resamples of the points with replacement; none for fewer than 5 points",
     "Efron 1979"}};

int att_correlation_method_count(void)
{
    return sizeof methods / sizeof *methods;
}

att_correlation_method att_correlation_method_at(int index)
{
    return methods[index];
}
