/* attscope/lab/paired.h - the difference of two settings over the seeds that both have. */
#ifndef ATTSCOPE_LAB_PAIRED_H
#define ATTSCOPE_LAB_PAIRED_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_paired {
    int count;              /* n, the number of pairs */
    double mean, deviation; /* of the differences; NaN without pairs, and the deviation (n - 1) also for one pair */
    double low, high;       /* 95 % confidence interval of the mean; NaN for fewer than two pairs */
} att_paired;

/* Computes the differences d = a[i] - b[i] of the pairs in which both are finite, and
 *
 *   low, high   mean(d) -/+ t s / sqrt(n), where s is the deviation of d and t the 0.975 quantile of Student's t with
 *               n - 1 degrees of freedom (Student 1908). It assumes that the differences are drawn from one normal
 *               distribution. With few pairs t is large: 12.7 for n = 2, 4.30 for 3, 2.78 for 5
 *
 * Does not fail. */
ATT_API att_paired att_paired_difference(const double *a, const double *b, int count);

/* Whether the interval does not contain 0. False without an interval. */
ATT_API bool att_paired_is_separated(const att_paired *paired);

/* Returns the 0.975 quantile of Student's t with `degrees` degrees of freedom (P(|T| < t) = 0.95), by bisection of the
 * closed form of the distribution (Abramowitz and Stegun 26.7.3 and 26.7.4); NaN for degrees < 1. */
ATT_API double att_student_quantile(int degrees);

/* One-line explanation, for tables and pages. */
#define ATT_PAIRED_NOTE                                                                                            \
    "difference of two settings over the seeds that both have, as mean [95 % interval] with Student's t on the n " \
    "differences (Student 1908); an interval is of one difference and is not corrected for their number"

#ifdef __cplusplus
}
#endif
#endif
