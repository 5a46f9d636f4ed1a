/* report/paired.h - the difference of two settings over the seeds that both have. */
#ifndef ATT_REPORT_PAIRED_H
#define ATT_REPORT_PAIRED_H

#include <attscope/lab/sweep.h>

/* Replaces low and high by those of simultaneous intervals: all of `tests` such intervals contain their means with a
 * probability of at least 95 %, each with 1 - 0.05 / tests (Bonferroni). However the differences depend on each other,
 * an interval of some difference whose mean is 0 excludes 0 in at most 5 % of the experiments. */
void att_paired_widen(att_paired *paired, int tests);

/* Returns t with P(|T| < t) = share for Student's t with `degrees` degrees of freedom, by bisection of the closed form
 * of the distribution (Abramowitz and Stegun 26.7.3 and 26.7.4); NaN for degrees < 1. share: 0 to 1 - 1e-6. */
double att_student_quantile(int degrees, double share);

#endif
