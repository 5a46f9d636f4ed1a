/* core/threads.h - the context's threads, and barriers for teams of them. */
#ifndef ATT_CORE_THREADS_H
#define ATT_CORE_THREADS_H

#include <stdatomic.h>

#include <attscope/context.h>

#include "core/export.h"

/* Runs work(user, thread) for thread = 0..threads-1 on the context's threads, thread 0 being the caller, and waits for
 * all. threads is clamped to the context's. Not reentrant: work must not call it. Allocates nothing. */
typedef void (*att_work_fn)(void *user, int thread);
ATT_FOR_LAB void att_threads_run(att_context *context, int threads, att_work_fn work, void *user);

/* A barrier for `count` threads that spins briefly, then yields. */
typedef struct att_barrier {
    atomic_int waiting, generation;
    int count;
} att_barrier;
void att_barrier_init(att_barrier *barrier, int count);
void att_barrier_wait(att_barrier *barrier);

#endif
