/* kernels/cpu/tier/gate.h - what the gates of channels and of pixels share: y = x * gate + residual, then an
 * activation. */
#ifndef ATT_KERNELS_CPU_TIER_GATE_H
#define ATT_KERNELS_CPU_TIER_GATE_H

#include <math.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/ops/activation.h"
#include "engine/ops/gate.h"

enum { X, GATE, RESIDUAL };

/* The smallest value of y. max(it, NaN) is NaN. */
ATT_INLINE float gate_floor(const att_call *call)
{
    return ATT_ATTRS(call->problem, gate)->activation == ATT_ACT_RELU ? 0 : -INFINITY;
}

/* added: whether there is a residual. The flags are constant if all operands have one type. */
typedef void (*gate_run)(const att_call *call, bool added, bool x_is_bf16, bool residual_is_bf16, bool y_is_bf16);

ATT_INLINE att_status run_gate(const att_call *call, gate_run run)
{
    const att_problem *problem = call->problem;
    bool added = call->in[RESIDUAL] != NULL, x = att_is_bf16(&problem->in[X]);
    bool residual = added && att_is_bf16(&problem->in[RESIDUAL]), y = att_is_bf16(&problem->out[0]);
    if (!added && x && y)
        run(call, false, true, false, true);
    else if (!added && !x && !y)
        run(call, false, false, false, false);
    else if (added && x && residual && y)
        run(call, true, true, true, true);
    else if (added && !x && !residual && !y)
        run(call, true, false, false, false);
    else
        run(call, added, x, residual, y);
    return ATT_OK;
}

#endif
