/* report/correlations.h - rank correlations of pairs of figures over the runs of several settings and architectures. */
#ifndef ATT_REPORT_CORRELATIONS_H
#define ATT_REPORT_CORRELATIONS_H

#include <attscope/lab/sweep.h>

#include "base/core/memory.h"

/* A run as correlations see it. */
typedef struct att_correlated_run {
    const char *setting;
    const char *model; /* its architecture; "" if unknown */
} att_correlated_run;

typedef struct att_correlations {
    att_arena *arena; /* owns `items` */
    const att_correlated_run *runs;
    int run_count; /* at most ATT_SWEEP_MOST_RUNS */
    const att_sweep_pair *pairs;
    int pair_count; /* at most ATT_SWEEP_MOST_PAIRS */
    /* The figure `name` of a run; NaN if it has none. */
    double (*value)(const void *user, int run, const char *name);
    const void *user;
    uint64_t seed; /* for att_correlate() */

    att_sweep_correlation *items;
    int count;
} att_correlations;

/* Fills items and count: for each pair the correlation over all runs; within each architecture, if there are several,
 * and one has several settings; within each setting, if there are several. The texts are those of `runs` and `pairs`,
 * which must live as long as the items. Errors: ERR_MEMORY. */
att_status att_correlations_make(att_correlations *correlations);

/* Computes the rank correlations of the pairs (x[i], y[i]), i < n = count. groups[i] is the group of pair i: pairs of
 * one group (such as the seeds of a setting) are not independent of each other, so they stay together. groups NULL:
 * each pair is a group of its own.
 *
 *   tau-b       (C - D) / sqrt((P - X) (P - Y)), where P = n (n - 1) / 2 is the number of pairs of
 *               observations. C of these are concordant, D discordant, X tied in x, Y tied in y (Kendall,
 *               Biometrika 1945)
 *   rho         Pearson's correlation of the ranks; equal values have the mean of their ranks (Spearman 1904)
 *   p           a permutation gives each group the y of another group of the same size, in the order of its pairs
 *               (whole-block exchangeability: Winkler et al., NeuroImage 2015). With at most 8! permutations, p is the
 *               share of them whose |correlation| is at least the observed one. With more, p is (1 + k) / (1 + 10,000),
 *               where k is the number of such permutations among 10,000 random ones (Phipson and Smyth, SAGMB 2010)
 *   least_p     the p of the order of y with the largest |correlation| among the permutations; 1 / (1 + 10,000) for
 *               random ones
 *   low, high   percentiles 2.5 and 97.5 over 2,000 bootstrap resamples of the groups (Efron 1979; of clusters:
 *               Davison and Hinkley 1997, section 3.8); resamples without a value are left out
 *
 * The random numbers depend on `seed` only: the same pairs in the same order with the same seed give the same bits.
 * Fewer than 5 groups have no interval; fewer than 2 groups or 3 pairs no p; fewer than 2 pairs no value. Errors:
 * ERR_NONFINITE (a value is NaN or infinite); ERR_ARGUMENT (count is negative or above ATT_CORRELATE_MOST);
 * ERR_MEMORY. */
ATT_MUST_CHECK att_status att_correlate(att_context *context, const double *x, const double *y, const int *groups,
                                        int count, uint64_t seed, att_correlation *correlation);

/* Corrects p values of `count` tests that belong together: with the sorted p(1) <= ... <= p(m) of the tests that have
 * one, adjusted(i) = max over j <= i of min(1, (m - j + 1) p(j)) (Holm, Scandinavian Journal of Statistics 1979). NaN
 * stays NaN and does not count. `adjusted` must not overlap `p`. */
void att_holm(const double *p, int count, double *adjusted);

#endif
