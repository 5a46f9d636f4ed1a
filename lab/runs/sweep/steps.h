/* sweep/steps.h - carrying out the steps of a run. */
#ifndef ATT_SWEEP_STEPS_H
#define ATT_SWEEP_STEPS_H

#include <attscope/lab/sweep_plan.h>

/* An att_write_check_fn; user: the path of a worker's mark (io/journal.h), which it renews. Fails if the mark is gone.
 */
att_status att_sweep_check_lease(const void *user, att_context *context, const char *path);

/* Calls steps->train, or trains in this process if that is NULL. On failure, `reason` gets the reason; if it is left
 * unchanged, the context's message is the reason. */
att_status att_sweep_train(att_context *context, const att_sweep_steps *steps, const att_planned_run *run,
                           const att_recipe *recipe, char reason[ATT_SWEEP_REASON]);
/* As att_sweep_train(), with steps->measure. */
att_status att_sweep_measure(att_context *context, const att_sweep_steps *steps, const att_planned_run *run,
                             const att_recipe *recipe, char reason[ATT_SWEEP_REASON]);

#endif
