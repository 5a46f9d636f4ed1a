/* session/runner.h - calls kernels on the context's threads, and counts where the time goes. */
#ifndef ATT_SESSION_RUNNER_H
#define ATT_SESSION_RUNNER_H

#include <stdatomic.h>

#include "plan/units.h"

typedef struct att_counter {
    int64_t calls;
    double seconds, flops, bytes;
} att_counter;

/* Zero before att_runner_init(), and then fit for att_runner_release(). */
typedef struct att_runner {
    att_context *context;
    const att_units *units;
    void **operands; /* of the call that a thread makes: units->most_operands for each */
    bool profiling;
    att_counter *counters; /* by thread, then profile row */
    atomic_int status;     /* the first failure of the threads that work at once */
} att_runner;

att_status att_runner_init(att_runner *runner, const att_units *units);
void att_runner_release(att_runner *runner);

/* The thread's own room for inputs and, behind them, outputs. */
void **att_runner_operands(const att_runner *runner, int thread);
/* Runs a kernel, timed where a profile is wanted; a failure is kept as the runner's status. */
void att_runner_call(att_runner *runner, const att_unit *unit, const att_call *call, int thread);
/* Returns when all calls have been carried out. */
void att_runner_wait(const att_runner *runner);
/* Keeps the first failure. */
void att_runner_fail(att_runner *runner, att_status status);

/* Switches profiling and sets the counters to zero. */
void att_runner_profile(att_runner *runner, bool on);
att_profile_row att_runner_profile_at(const att_runner *runner, int index);

#endif
