/* collapse/stack.h - a stack that runs layer by layer. */
#ifndef ATT_COLLAPSE_STACK_H
#define ATT_COLLAPSE_STACK_H

#include "lab/papers/collapse/bounds.h"
#include "lab/papers/collapse/layer.h"

typedef struct att_stack {
    att_context *context;
    att_arena arena;
    att_stack_options options;
    att_attend attend;
    att_perceptron perceptron;
    att_tokens x, u, y;      /* tokens; the input of a branch; its output */
    double *random;          /* random weights of a layer; NULL: the caller's */
    att_stack_weights drawn; /* point into `random` */
    int drawn_layer;         /* -1: none yet */
    double *scales;          /* [width]: ln of D's diagonal of the last column-wise norm after a branch */
    double *shift;           /* [width]: b D^-1 of that norm, without the scale e^shift_log */
    double shift_log;
    double *scratch; /* [count, width], [width, width] or [2 count] */
    att_bounds bounds;
} att_stack;

/* Checks the options and creates the stack with X_0. On success the caller frees it with att_stack_free(); after a
 * failure nothing is left. */
att_status att_stack_create(att_context *context, const att_stack_options *options, att_stack *stack);
void att_stack_free(att_stack *stack);
/* Fills the figures of X_0. */
void att_stack_begin(att_stack *stack, att_stack_layer *layer);
/* Runs layer `index`, 0..depth-1, and fills its figures. */
att_status att_stack_step(att_stack *stack, int index, att_stack_layer *layer);

/* The weights of layer `index` (random.c). NULL after a failure. */
const att_stack_weights *att_stack_weights_of(att_stack *stack, int index);
/* Number of doubles that random weights of a layer take. */
size_t att_stack_weights_size(const att_stack_options *options);
void att_stack_draw_tokens(const att_stack_options *options, double *tokens);

#endif
