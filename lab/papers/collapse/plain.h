/* collapse/plain.h - the same stacks in ordinary f64, with gradients. Without norm. */
#ifndef ATT_COLLAPSE_PLAIN_H
#define ATT_COLLAPSE_PLAIN_H

#include "lab/papers/collapse/stack.h"

/* What the backward pass of one layer needs. */
typedef struct att_plain_layer {
    double *x;                 /* [tokens, width]: the layer's input */
    double *q, *k, *v, *mixed; /* [tokens, width] */
    double *maps;              /* [heads, tokens, tokens] */
    double *middle;            /* [tokens, width]: the input of the MLP */
    double *before, *after;    /* [tokens, hidden]: of GELU */
} att_plain_layer;

typedef struct att_plain {
    const att_stack_options *options;
    att_plain_layer *layers;       /* [depth] */
    double *y;                     /* [tokens, width]: the output, then its gradient */
    double *d_q, *d_k, *d_v, *d_x; /* [tokens, width] */
    double *d_hidden;              /* [tokens, hidden] */
    double *d_map;                 /* [tokens] */
    double *transposed;            /* [hidden, width] or [width, width] */
} att_plain;

/* In the arena; false if memory is exhausted. options->hidden must be set. */
bool att_plain_create(att_arena *arena, const att_stack_options *options, att_plain *plain);
/* y = the layer's output for x, which is kept. */
void att_plain_forward(att_plain *plain, int index, const att_stack_weights *w, const double *x);
/* Changes y from the gradient of the layer's output to that of its input. Writes the gradient of the weights q, k, v,
 * o, fc1, fc2, in this order. */
void att_plain_backward(att_plain *plain, int index, const att_stack_weights *w, double *gradient);

#endif
