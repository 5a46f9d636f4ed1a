/* ops/l2_norm.h - attributes of l2_norm and its gradient. */
#ifndef ATT_OPS_L2_NORM_H
#define ATT_OPS_L2_NORM_H

typedef struct att_l2_norm_attrs {
    double eps;
} att_l2_norm_attrs;

#endif
