/* sweep_child.h - this program again, for one step of one run. */
#ifndef CLI_SWEEP_CHILD_H
#define CLI_SWEEP_CHILD_H

/* Runs "attscope ARGUMENT..." (arguments end with NULL) with stderr where ours is, stdout nowhere. Ctrl-C reaches it
 * once, from here, and it ends with this process, however that ends. Returns its exit status; CLI_STOPPED where it was
 * interrupted, 128 and the signal's number where another ended it, CLI_FAILURE, which is said, where it did not start.
 */
int sweep_child(const char *const *arguments);

#endif
