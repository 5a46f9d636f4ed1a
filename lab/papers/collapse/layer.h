/* collapse/layer.h - the parts of a layer, each a map of tokens to tokens. */
#ifndef ATT_COLLAPSE_LAYER_H
#define ATT_COLLAPSE_LAYER_H

#include "lab/papers/collapse/tokens.h"

/* What the bounds need to know of one head. */
typedef struct att_head_facts {
    double spread_sum, spread_max; /* sum and largest of D_ii e^(-2s), with e^s the scale of U's residual */
    int mild_rows;                 /* number of rows with D_ii <= 1.256 */
    att_norms output;              /* norms of the head's residual (P - 1 q') e^s R W, without its scale */
} att_head_facts;

/* Buffers of attention; `facts` holds results of the last call, one for each head. */
typedef struct att_attend {
    int heads;
    double *query;                           /* [width] */
    double *queries, *keys, *values, *mixed; /* [count, width] */
    double *base, *shared, *others;          /* [count] */
    double *scores, *row, *spare;            /* [count] */
    double *row_logs;                        /* [heads, count] */
    double *common, *step;                   /* [width] */
    double *part;                            /* [count, width] */
    att_head_facts *facts;                   /* [heads] */
    double output_scale; /* ln of the factor of att_head_facts.output, without e^3s for e^s < 1, else e^s */
} att_attend;
bool att_attend_create(att_arena *arena, int count, int width, int heads, att_attend *work);
/* y = SA(u) */
void att_attend_run(att_attend *work, const att_stack_weights *w, const att_tokens *u, att_tokens *y);

/* Buffers of the MLP. */
typedef struct att_perceptron {
    int hidden;
    double *level, *input; /* [hidden]: GELU's inputs that all tokens share, with a scale and as numbers */
    double *common;        /* [hidden]: GELU's outputs there */
    double *slopes;        /* [hidden, 4]: Taylor coefficients */
    double *steps;         /* [count, hidden] */
} att_perceptron;
bool att_perceptron_create(att_arena *arena, int count, int hidden, att_perceptron *work);
/* y = MLP(u) */
void att_perceptron_run(att_perceptron *work, const att_stack_weights *w, const att_tokens *u, att_tokens *y);

/* Layer norm of each token, in place. weight, bias: NULL for 1 and 0. */
void att_norm_tokens(att_tokens *x, double eps, const double *weight, const double *bias);
/* (X - 1 b') D^-1, in place. Writes the logarithms of D's diagonal, 0 for a column that is constant. */
void att_norm_columns(att_tokens *x, double *scales);

#endif
