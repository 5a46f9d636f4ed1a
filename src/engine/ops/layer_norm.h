/* ops/layer_norm.h - attributes of layer_norm and its gradient. */
#ifndef ATT_OPS_LAYER_NORM_H
#define ATT_OPS_LAYER_NORM_H

typedef struct att_layer_norm_attrs {
    double eps;
} att_layer_norm_attrs;

#endif
