/* ops/linear.h - attributes of linear. */
#ifndef ATT_OPS_LINEAR_H
#define ATT_OPS_LINEAR_H

#include <stdint.h>

#include "engine/ops/activation.h"

/* transposed: the weight is stored as [I, O] instead of timm's [O, I]. */
typedef struct att_linear_attrs {
    att_activation activation;
    int32_t transposed; /* bool */
} att_linear_attrs;

#endif
