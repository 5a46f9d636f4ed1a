/* report/paired.h - the difference of two settings over the seeds that both have. */
#ifndef ATT_REPORT_PAIRED_H
#define ATT_REPORT_PAIRED_H

#include <attscope/lab/sweep.h>

/* Computes the differences d = a[i] - b[i] of the pairs in which both are finite, and
 *
 *   low, high   mean(d) -/+ t s / sqrt(n), where s is the deviation of d and t the 0.975 quantile of Student's t with
 *               n - 1 degrees of freedom (Student 1908). It assumes that the differences are drawn from one normal
 *               distribution. With few pairs t is large: 12.7 for n = 2, 4.30 for 3, 2.78 for 5
 *
 * Does not fail. */
att_paired att_paired_difference(const double *a, const double *b, int count);

/* Returns the 0.975 quantile of Student's t with `degrees` degrees of freedom (P(|T| < t) = 0.95), by bisection of the
 * closed form of the distribution (Abramowitz and Stegun 26.7.3 and 26.7.4); NaN for degrees < 1. */
double att_student_quantile(int degrees);

#endif
