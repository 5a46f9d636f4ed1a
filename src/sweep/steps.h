/* sweep/steps.h - the steps of a run, carried out in this process. */
#ifndef ATT_SWEEP_STEPS_H
#define ATT_SWEEP_STEPS_H

#include <attscope/lab/sweep_plan.h>

att_sweep_steps att_sweep_own_steps(att_context *context);

#endif
