/* ops/cross_entropy.h - attributes of cross_entropy and its gradient. */
#ifndef ATT_OPS_CROSS_ENTROPY_H
#define ATT_OPS_CROSS_ENTROPY_H

typedef struct att_cross_entropy_attrs {
    double smoothing;
} att_cross_entropy_attrs;

#endif
