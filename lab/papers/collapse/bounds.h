/* collapse/bounds.h - the bounds of Dong et al., carried from layer to layer. */
#ifndef ATT_COLLAPSE_BOUNDS_H
#define ATT_COLLAPSE_BOUNDS_H

#include "lab/papers/collapse/layer.h"

/* Norms of one head's weights, as logarithms. */
typedef struct att_head_norms {
    double qk;       /* |W_QK|_1 */
    att_norms value; /* of W = W_V W_O */
} att_head_norms;

/* Constants of one layer. ln of gamma, beta and lambda. */
typedef struct att_bounds {
    int heads, width, hidden;
    bool skip, mlp, defined;    /* defined: the stack has a bound from X_0 */
    double *product, *keys;     /* [width, width]: scratch */
    att_head_norms *norms;      /* [heads], of the last layer */
    att_stack_log start;        /* |res(X_0)|_{1,inf} */
    att_stack_log one, inf;     /* safe bounds of |.|_1 and |.|_inf */
    double beta, gamma, lambda; /* ln of the largest so far */
} att_bounds;

/* Lipschitz constants of a layer's MLP in |.|_1 and |.|_inf, as logarithms. */
att_norms att_mlp_lipschitz(const att_stack_weights *w, int width, int hidden);

bool att_bounds_create(att_arena *arena, const att_stack_options *options, att_bounds *bounds);
void att_bounds_begin(att_bounds *bounds, const att_tokens *x);
/* Computes the norms of a layer's weights. scales: ln of D's diagonal if W_O absorbs D^-1; NULL: it does not. */
void att_bounds_weigh(att_bounds *bounds, const att_stack_weights *w, const double *scales);
/* The attention branch of input u: beta, gamma, condition, branch_bound, head_paper and head_safe of the layer. Called
 * with the norms of W_O as it is. */
void att_bounds_branch(const att_bounds *bounds, const att_attend *attend, const att_tokens *u, att_stack_layer *layer);
/* The bound from X_0 after layer l, 1..depth. */
void att_bounds_step(att_bounds *bounds, const att_attend *attend, const att_stack_weights *w, int l,
                     att_stack_layer *layer);

#endif
