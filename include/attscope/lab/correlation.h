/* attscope/lab/correlation.h - the rank correlations that sweeps and collections of runs report. */
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
    double adjusted_p; /* p after Holm's correction over the correlations that are tested together; p itself for a
                          single one */
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
