/* sweep_child.h - runs this program in a child process, for one step of a run. */
#ifndef CLI_SWEEP_CHILD_H
#define CLI_SWEEP_CHILD_H

/* Runs "attscope ARGUMENT..." (NULL-terminated), with the same stderr and with stdout discarded. Forwards Ctrl-C once.
 * The child is killed if this process dies. Returns the child's exit status; CLI_STOPPED if it was interrupted; 128 +
 * the signal's number if another signal ended it; CLI_FAILURE, after a message, if it could not be started. */
int sweep_child(const char *const *arguments);

#endif
