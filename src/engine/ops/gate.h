/* ops/gate.h - attributes of gate, pixel_gate and affine. */
#ifndef ATT_OPS_GATE_H
#define ATT_OPS_GATE_H

#include "engine/ops/activation.h"

/* Attributes of gate, pixel_gate and affine. activation: applied last, after the residual if there is one. */
typedef struct att_gate_attrs {
    att_activation activation;
} att_gate_attrs;

#endif
