/* attscope/lab/correlation.h - rank correlations of a small number of pairs, such as two figures of several runs. */
#ifndef ATTSCOPE_LAB_CORRELATION_H
#define ATTSCOPE_LAB_CORRELATION_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ATT_CORRELATE_MOST = 256,           /* most pairs */
    ATT_CORRELATE_EXACT = 8,            /* up to this number of pairs, p is over all permutations */
    ATT_CORRELATE_PERMUTATIONS = 10000, /* random permutations for more pairs */
    ATT_CORRELATE_RESAMPLES = 2000      /* bootstrap resamples */
};

typedef struct att_rank_correlation {
    double value;     /* the correlation, -1 to 1; NaN if all x or all y are equal */
    double p;         /* two-sided p value under independence of x and y; NaN if `value` is */
    double low, high; /* bootstrap confidence interval, 95 %; NaN if most resamples have no value */
} att_rank_correlation;

typedef struct att_correlation {
    int count;                     /* n, the number of pairs */
    att_rank_correlation kendall;  /* tau-b */
    att_rank_correlation spearman; /* rho */
    int64_t permutations;          /* for p; 0: no p */
    int64_t resamples;             /* for the intervals; 0: no intervals */
    bool exact;                    /* p is over all permutations */
} att_correlation;

/* Computes the rank correlations of the pairs (x[i], y[i]), i < n = count:
 *
 *   tau-b       (C - D) / sqrt((P - X) (P - Y)), where P = n (n - 1) / 2 is the number of pairs of
 *               observations. C of these are concordant, D discordant, X tied in x, Y tied in y (Kendall,
 *               Biometrika 1945)
 *   rho         Pearson's correlation of the ranks; equal values have the mean of their ranks (Spearman 1904)
 *   p           n <= 8: the share of all n! permutations of y whose |correlation| is at least the observed one.
 *               n > 8: (1 + k) / (1 + 10,000), where k is the number of such permutations among 10,000 random
 *               ones (Phipson and Smyth, SAGMB 2010)
 *   low, high   percentiles 2.5 and 97.5 over 2,000 bootstrap resamples of the pairs (Efron 1979); resamples
 *               without a value are left out
 *
 * The random numbers depend on `seed` only: the same pairs in the same order with the same seed give the same bits.
 * Fewer than 5 pairs have no interval, fewer than 3 no p, fewer than 2 no value. Errors: ERR_NONFINITE (a value is NaN
 * or infinite); ERR_ARGUMENT (count is negative or above ATT_CORRELATE_MOST); ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_correlate(att_context *context, const double *x, const double *y, int count,
                                                uint64_t seed, att_correlation *correlation);

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
