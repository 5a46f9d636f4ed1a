/* collapse/logs.h - arithmetic of att_stack_log, and vectors with a logarithmic scale. */
#ifndef ATT_COLLAPSE_LOGS_H
#define ATT_COLLAPSE_LOGS_H

#include <attscope/lab/collapse.h>

/* ln v = `log`, which is finite; -inf means v = 0. */
att_stack_log att_log_of(double log);
att_stack_log att_log_none(void);
bool att_log_has_value(att_stack_log v);
bool att_log_is_zero(att_stack_log v);

/* ln(a^p b^q e^k), for p > 0, q >= 0. 0 if a or b is 0; no value if a or b has none. */
att_stack_log att_log_product(double p, att_stack_log a, double q, att_stack_log b, double k);
/* ln(a e^k) */
att_stack_log att_log_times(att_stack_log a, double k);
/* ln(a + b) */
att_stack_log att_log_sum(att_stack_log a, att_stack_log b);

/* Divides x[0..count-1] by its Euclidean norm and returns the logarithm of the norm; -inf if x is 0. */
double att_scaled_normalise(double *x, int count);
/* e^*x_log x += e^y_log y. Afterwards the largest scale of both is the scale of x. */
void att_scaled_add(double *x, double *x_log, const double *y, double y_log, int count);

/* y [rows, columns] = x [rows, inner] w [inner, columns] */
void att_product(const double *x, int rows, int inner, const double *w, int columns, double *y);

#endif
