/* ops/global_style.h - attributes of global_style and its gradient. */
#ifndef ATT_OPS_GLOBAL_STYLE_H
#define ATT_OPS_GLOBAL_STYLE_H

typedef struct att_style_attrs {
    double eps;
} att_style_attrs;

#endif
