/* attscope/lab/correlation.h - whether two figures of some runs rise together: rank correlations of few pairs. */
#ifndef ATTSCOPE_LAB_CORRELATION_H
#define ATTSCOPE_LAB_CORRELATION_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ATT_CORRELATE_MOST = 256,           /* pairs */
    ATT_CORRELATE_EXACT = 8,            /* pairs up to which every permutation is looked at */
    ATT_CORRELATE_PERMUTATIONS = 10000, /* drawn beyond that */
    ATT_CORRELATE_RESAMPLES = 2000
};

typedef struct att_rank_correlation {
    double value;     /* -1 to 1; NaN where all x, or all y, are the same */
    double p;         /* of its size, either sign, where x and y have nothing to do with each other; NaN with it */
    double low, high; /* bootstrap interval of 95 per cent; NaN where most resamples have no value */
} att_rank_correlation;

typedef struct att_correlation {
    int count;                       /* pairs, n */
    att_rank_correlation kendall;    /* tau-b */
    att_rank_correlation spearman;   /* rho */
    int64_t permutations, resamples; /* that p and the intervals are from; 0: none */
    bool exact;                      /* those were all permutations */
} att_correlation;

/* Of the pairs (x[i], y[i]), i < count:
 *
 *   tau-b = (C - D) / sqrt((P - X) (P - Y)): of the P = n (n - 1) / 2 pairs of pairs C are concordant and D discordant,
 *           X are tied in x and Y in y (Kendall, Biometrika 1945)
 *   rho   = Pearson's correlation of the ranks; equal values have the mean of their ranks (Spearman 1904)
 *   p     = share of the permutations of y with a |correlation| of at least the observed one: of all n! for n <= 8,
 * else (1 + such) / (1 + drawn) of 10,000 drawn from `seed` (Phipson and Smyth, SAGMB 2010) low, high = percentiles 2.5
 * and 97.5 of 2,000 resamples of the pairs with replacement, drawn from `seed` (Efron 1979); resamples without a value
 * are left out
 *
 * The same bits for the same pairs, in the same order, and seed. Fewer than 5 pairs have no interval, fewer than 3 no
 * p, fewer than 2 no value. Errors: ERR_NONFINITE where a value is NaN or infinite; ERR_ARGUMENT (count negative or
 * above ATT_CORRELATE_MOST); ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_correlate(att_context *context, const double *x, const double *y, int count,
                                                uint64_t seed, att_correlation *correlation);

/* What stands beside such figures; every text is one line. */
typedef struct att_correlation_method {
    const char *name, *formula, *source;
} att_correlation_method;
ATT_API int att_correlation_method_count(void);
ATT_API att_correlation_method att_correlation_method_at(int index);

#ifdef __cplusplus
}
#endif
#endif
