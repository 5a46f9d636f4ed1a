/* child.h - runs this program in a child process. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdbool.h>

/* Environment variable of the children of a sweep: the lease of their run (att_sweep_guard_step()). */
#define CLI_LEASE_VARIABLE "ATTSCOPE_SWEEP_LEASE"

/* Runs "attscope ARGUMENT..." (NULL-terminated), with the same stderr and with stdout discarded. Forwards Ctrl-C once.
 * The child is killed if this process dies, or when keep(user) returns false (keep NULL: never). Returns the child's
 * exit status; CLI_STOPPED if it was interrupted; 128 + the signal's number if another signal ended it; CLI_FAILURE,
 * after a message, if it could not be started. */
int cli_child(const char *const *arguments, bool (*keep)(const void *user), const void *user);

#endif
