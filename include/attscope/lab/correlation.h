/* attscope/lab/correlation.h - rank correlations of a small number of pairs, such as two figures of several runs. */
#ifndef ATTSCOPE_LAB_CORRELATION_H
#define ATTSCOPE_LAB_CORRELATION_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ATT_CORRELATE_MOST = 256,           /* most pairs */
    ATT_CORRELATE_EXACT = 40320,        /* 8!: up to this number of permutations, p is over all of them */
    ATT_CORRELATE_PERMUTATIONS = 10000, /* random permutations if there are more */
    ATT_CORRELATE_RESAMPLES = 2000      /* bootstrap resamples */
};

typedef struct att_rank_correlation {
    double value;   /* the correlation, -1 to 1; NaN if all x or all y are equal */
    double p;       /* two-sided p value under independence of x and y; NaN if `value` is */
    double least_p; /* the smallest p that any order of these y can give; NaN if p is. If it is large, the test cannot
                       find anything */
    double adjusted_p; /* p after att_holm() over the correlations that are tested together; set by those who have
                          several. att_correlate() sets it to p */
    double low, high;  /* bootstrap confidence interval, 95 %; NaN if most resamples have no value */
} att_rank_correlation;

typedef struct att_correlation {
    int count;                     /* n, the number of pairs */
    int groups;                    /* the number of groups, which are permuted and resampled as a whole */
    att_rank_correlation kendall;  /* tau-b */
    att_rank_correlation spearman; /* rho */
    int64_t permutations;          /* for p; 0: no p */
    int64_t resamples;             /* for the intervals; 0: no intervals */
    bool exact;                    /* p is over all permutations */
} att_correlation;

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
ATT_API ATT_MUST_CHECK att_status att_correlate(att_context *context, const double *x, const double *y,
                                                const int *groups, int count, uint64_t seed,
                                                att_correlation *correlation);

/* Corrects p values of `count` tests that belong together: with the sorted p(1) <= ... <= p(m) of the tests that have
 * one, adjusted(i) = max over j <= i of min(1, (m - j + 1) p(j)) (Holm, Scandinavian Journal of Statistics 1979). NaN
 * stays NaN and does not count. `adjusted` must not overlap `p`. */
ATT_API void att_holm(const double *p, int count, double *adjusted);

/* The methods above as texts of one line each, for tables and pages. */
typedef struct att_correlation_method {
    const char *name, *formula, *source;
} att_correlation_method;
ATT_API int att_correlation_method_count(void);
ATT_API att_correlation_method att_correlation_method_at(int index);

#ifdef __cplusplus
}
#endif
#endif
