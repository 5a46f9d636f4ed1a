/* ops/combine.h - attributes of combine. */
#ifndef ATT_OPS_COMBINE_H
#define ATT_OPS_COMBINE_H

typedef struct att_combine_attrs {
    double a, b;
} att_combine_attrs;

#endif
