/* session/runner.h - calls kernels on the context's threads, and measures their time. */
#ifndef ATT_SESSION_RUNNER_H
#define ATT_SESSION_RUNNER_H

#include <stdatomic.h>

#include "engine/plan/units.h"

typedef struct att_counter {
    int64_t calls;
    double seconds, flops, bytes;
} att_counter;

/* Zero before att_runner_init(); att_runner_release() accepts zeroed and initialised runners. */
typedef struct att_runner {
    att_context *context;
    const att_units *units;
    void **operands; /* pointers for the kernel call in progress: units->most_operands for each thread */
    bool profiling;
    att_counter *counters; /* by thread, then profile row */
    atomic_int status;     /* the first failure of any thread */
} att_runner;

att_status att_runner_init(att_runner *runner, const att_units *units);
void att_runner_release(att_runner *runner);

/* Memory for the pointers of one call by this thread: inputs, then outputs. */
void **att_runner_operands(const att_runner *runner, int thread);
/* Runs a kernel, and times it while profiling. A failure is stored as the runner's status. */
void att_runner_call(att_runner *runner, const att_unit *unit, const att_call *call, int thread);
/* Returns when all calls have taken effect. */
void att_runner_wait(const att_runner *runner);
/* Stores the status, unless one is stored already. */
void att_runner_fail(att_runner *runner, att_status status);

/* Switches profiling on or off and resets the counters. */
void att_runner_profile(att_runner *runner, bool on);
att_profile_row att_runner_profile_at(const att_runner *runner, int index);

#endif
