/* ops/add.h - attributes of add. */
#ifndef ATT_OPS_ADD_H
#define ATT_OPS_ADD_H

#include <stdint.h>

#include "engine/ops/activation.h"

/* axes: number of trailing axes of a that a shared operand b spans; 0 if both operands are sample values. */
typedef struct att_add_attrs {
    int32_t axes;
    att_activation activation; /* applied to the sum */
} att_add_attrs;

#endif
