/* core/ranks.h - rank correlations of pairs (x, y). */
#ifndef ATT_CORE_RANKS_H
#define ATT_CORE_RANKS_H

#include "base/core/export.h"

/* Kendall's tau-b; NaN if all x or all y are equal. */
ATT_FOR_LAB double att_kendall(const double *x, const double *y, int count);
/* Computes twice the ranks, so that the mean ranks of ties are integers. */
ATT_FOR_LAB void att_rank_twice(const double *values, int count, double *ranks);
/* Spearman's rho, from the doubled ranks of x and y; NaN if all x or all y are equal. */
ATT_FOR_LAB double att_spearman(const double *rank_x, const double *rank_y, int count);

#endif
