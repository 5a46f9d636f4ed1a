/* collapse/tokens.h - tokens as a mean and a residual: X = 1 m' + e^s R. */
#ifndef ATT_COLLAPSE_TOKENS_H
#define ATT_COLLAPSE_TOKENS_H

#include "base/core/memory.h"
#include "lab/papers/collapse/logs.h"

/* Between calls |mean| = 1 and |rest|_F = 1, or they are 0 and their scale is -inf. `rest` has columns of mean 0. */
typedef struct att_tokens {
    int count, width;
    double *mean; /* [width] */
    double mean_log;
    double *rest; /* [count, width] */
    att_stack_log rest_log;
} att_tokens;

/* Both in the arena; false if memory is exhausted. */
bool att_tokens_create(att_arena *arena, int count, int width, att_tokens *tokens);
/* Splits plain tokens [count, width]. */
void att_tokens_split(const double *plain, att_tokens *tokens);
/* Writes plain tokens. */
void att_tokens_join(const att_tokens *tokens, double *plain);
void att_tokens_copy(const att_tokens *from, att_tokens *to);

/* Restores what holds between calls, after `mean` and `rest` were changed. */
void att_tokens_settle(att_tokens *tokens);
/* tokens += other */
void att_tokens_add(att_tokens *tokens, const att_tokens *other);

/* ln |x|_1 and ln |x|_inf of a matrix [rows, columns]; -inf if it is 0. */
typedef struct att_norms {
    double one, inf;
} att_norms;
att_norms att_norms_of(const double *x, int rows, int columns);

/* |res(X)|_{1,inf}, with the means */
att_stack_log att_tokens_residual(const att_tokens *tokens);
/* The same with medians; column: scratch of `count` elements. */
att_stack_log att_tokens_median_residual(const att_tokens *tokens, double *column);
/* ln |X|_{1,inf}; plain: scratch [count, width] */
double att_tokens_norm(const att_tokens *tokens, double *plain);
/* Participation ratio of the singular values of the residual; gram: scratch [width, width] */
double att_tokens_rank(const att_tokens *tokens, double *gram);
/* ln |X - Y|_F; scratch [count, width] */
double att_tokens_distance(const att_tokens *x, const att_tokens *y, double *scratch);
/* |X - Y|_F / |X|_F; scratch [count, width] */
double att_tokens_difference(const att_tokens *x, const att_tokens *y, double *scratch);

#endif
