/* core/threads.h - runs work on the context's threads; barriers. */
#ifndef ATT_CORE_THREADS_H
#define ATT_CORE_THREADS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include <attscope/context.h>

#include "base/core/export.h"

/* Calls work(user, thread) for thread = 0..threads-1 in parallel and returns when all calls have returned. Thread 0 is
 * the caller's thread. At most att_context_threads() threads are used. On x86 subnormal numbers count as zero in
 * `work`. Not reentrant: `work` must not call this function. Allocates nothing. */
typedef void (*att_work_fn)(void *user, int thread);
ATT_FOR_LAB void att_threads_run(att_context *context, int threads, att_work_fn work, void *user);

/* Starts a thread that calls run(argument). Signals go to the program's other threads. what: the thread in messages,
 * with its article. Errors: ERR_MEMORY; ERR_IO if the system allows no more threads. */
ATT_FOR_LAB att_status att_thread_start(att_context *context, pthread_t *thread, void *(*run)(void *), void *argument,
                                        const char *what);

/* Lets signals wait, or go to other threads, until pthread_sigmask(SIG_SETMASK, before, NULL). Faults of the thread
 * itself (SIGSEGV and its like) do not wait. */
ATT_FOR_LAB void att_signals_hold(sigset_t *before);

/* A barrier for `count` threads. A waiting thread spins briefly, then sleeps: on a busy processor, one that
 * only yielded would get it back long after the others have come. */
typedef struct att_barrier {
    atomic_int waiting, sleeping, generation;
    int count;
} att_barrier;
void att_barrier_init(att_barrier *barrier, int count);
void att_barrier_wait(att_barrier *barrier);

#endif
