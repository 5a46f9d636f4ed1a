/* sweep_child.h - runs this program in a child process, for one step of a run. */
#ifndef CLI_SWEEP_CHILD_H
#define CLI_SWEEP_CHILD_H

#include <attscope/lab/sweep_plan.h>

/* Runs "attscope ARGUMENT..." (NULL-terminated), with the same stderr and with stdout discarded. The child writes files
 * only while this worker of `plan` holds its claim on the run, whose lease is `lease`; if the claim is lost, the child
 * is killed. Forwards Ctrl-C once. The child is killed if this process dies. Returns the child's exit status;
 * CLI_STOPPED if it was interrupted; 128 + the signal's number if another signal ended it; CLI_FAILURE, after a
 * message, if it could not be started. */
int sweep_child(const att_sweep_plan *plan, const char *lease, const char *const *arguments);

/* In a child: calls att_sweep_guard_step(). In other processes: does nothing. */
att_status sweep_child_guard(att_context *context);

#endif
