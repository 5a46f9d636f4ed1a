/* ops/add.h - attributes of add. */
#ifndef ATT_OPS_ADD_H
#define ATT_OPS_ADD_H

#include <stdint.h>

#include "ops/activation.h"

/* add: how many of the last axes a shared operand spans; 0 where both are sample values. */
typedef struct att_add_attrs {
    int32_t axes;
    att_activation activation; /* of the sum */
} att_add_attrs;

#endif
