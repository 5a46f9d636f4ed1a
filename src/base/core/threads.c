#include "base/core/threads.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/simd.h"
#include "base/core/threads_pool.h"

/* about 10 us: as long as it takes to sleep and to be woken */
enum { SPINS_BEFORE_SLEEP = 1 << 14 };

/* pthread_create() gives the same error for a lack of memory as for a limit on the number of threads. */
static att_status fail_thread(att_context *context, int code, const char *what)
{
    char stack[128], reason[128];
    size_t bytes = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    snprintf(stack, sizeof stack, "the stack of %s", what);
    ATT_TRY(att_memory_require(context, bytes, stack));
    if (strerror_r(code, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "the system's error %d", code);
    return att_fail(context, ATT_ERR_IO, "%s could not be started: %s; is the number of threads limited (ulimit -u)?",
                    what, reason);
}

void att_signals_hold(sigset_t *before)
{
    sigset_t others;
    sigfillset(&others);
    sigdelset(&others, SIGBUS); /* these four are faults of the thread itself */
    sigdelset(&others, SIGFPE);
    sigdelset(&others, SIGILL);
    sigdelset(&others, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &others, before);
}

att_status att_thread_start(att_context *context, pthread_t *thread, void *(*run)(void *), void *argument,
                            const char *what)
{
    sigset_t before;
    att_signals_hold(&before);
    int code = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code == 0 ? ATT_OK : fail_thread(context, code, what);
}

typedef struct pool_thread {
    struct att_thread_pool *pool;
    pthread_t id;
    int number;
} pool_thread;

struct att_thread_pool {
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    uint64_t round; /* number of calls of att_threads_run() with several threads */
    int active;     /* threads in this round, including the caller's */
    int running;    /* threads of the pool that have not finished this round */
    bool stop;
    att_work_fn work;
    void *user;
    int count; /* threads that the pool started */
    pool_thread threads[];
};

/* Subnormal numbers count as zero while the work runs: x86 takes a hundred times longer to compute with them. */
static void run_work(att_work_fn work, void *user, int number)
{
    const unsigned mode = v_enter_flush();
    work(user, number);
    v_leave_flush(mode);
}

static void *thread_main(void *argument)
{
    pool_thread *self = argument;
    att_thread_pool *pool = self->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->stop && (pool->round == seen || self->number >= pool->active)) {
            seen = pool->round;
            pthread_cond_wait(&pool->begin, &pool->lock);
        }
        if (pool->stop)
            break;
        seen = pool->round;
        att_work_fn work = pool->work;
        void *user = pool->user;
        pthread_mutex_unlock(&pool->lock);
        run_work(work, user, self->number);
        pthread_mutex_lock(&pool->lock);
        if (--pool->running == 0)
            pthread_cond_signal(&pool->end);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

att_status att_thread_pool_create(att_context *context, int threads, att_thread_pool **out)
{
    size_t size = sizeof(att_thread_pool) + (size_t)threads * sizeof(pool_thread);
    att_thread_pool *pool = att_allocate(context, size);
    if (!pool)
        return att_fail_memory(context, size, "the threads");
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->begin, NULL);
    pthread_cond_init(&pool->end, NULL);
    for (int number = 1; number < threads; number++) {
        pool_thread *thread = &pool->threads[pool->count];
        *thread = (pool_thread){.pool = pool, .number = number};
        att_status status = att_thread_start(context, &thread->id, thread_main, thread, "a thread for computing");
        if (status != ATT_OK) {
            att_thread_pool_destroy(context, &pool);
            return status;
        }
        pool->count++;
    }
    *out = pool;
    return ATT_OK;
}

void att_thread_pool_destroy(att_context *context, att_thread_pool **out)
{
    att_thread_pool *pool = *out;
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->begin);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->count; i++)
        pthread_join(pool->threads[i].id, NULL);
    pthread_cond_destroy(&pool->begin);
    pthread_cond_destroy(&pool->end);
    pthread_mutex_destroy(&pool->lock);
    att_free(context, pool);
    *out = NULL;
}

void att_threads_run(att_context *context, int threads, att_work_fn work, void *user)
{
    att_thread_pool *pool = att_context_pool(context);
    if (threads > pool->count + 1)
        threads = pool->count + 1;
    if (threads > 1) {
        pthread_mutex_lock(&pool->lock);
        pool->work = work;
        pool->user = user;
        pool->active = threads;
        pool->running = threads - 1;
        pool->round++;
        pthread_cond_broadcast(&pool->begin);
        pthread_mutex_unlock(&pool->lock);
    }
    run_work(work, user, 0);
    if (threads > 1) {
        pthread_mutex_lock(&pool->lock);
        while (pool->running > 0)
            pthread_cond_wait(&pool->end, &pool->lock);
        pthread_mutex_unlock(&pool->lock);
    }
}

void att_barrier_init(att_barrier *barrier, int count)
{
    atomic_init(&barrier->waiting, 0);
    atomic_init(&barrier->sleeping, 0);
    atomic_init(&barrier->generation, 0);
    barrier->count = count;
}

/* Returns when the generation differs from the given one, or earlier. */
static void sleep_in(att_barrier *barrier, int generation)
{
    atomic_fetch_add(&barrier->sleeping, 1);
    syscall(SYS_futex, &barrier->generation, FUTEX_WAIT_PRIVATE, generation, NULL, NULL, 0);
    atomic_fetch_sub(&barrier->sleeping, 1);
}

/* A thread that goes to sleep has been counted before the system compares the generation, so that it is either woken or
 * does not fall asleep. */
static void open_barrier(att_barrier *barrier)
{
    atomic_store(&barrier->waiting, 0);
    atomic_fetch_add(&barrier->generation, 1);
    if (atomic_load(&barrier->sleeping) > 0)
        syscall(SYS_futex, &barrier->generation, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void att_barrier_wait(att_barrier *barrier)
{
    if (barrier->count <= 1)
        return;
    int generation = atomic_load(&barrier->generation);
    if (atomic_fetch_add(&barrier->waiting, 1) == barrier->count - 1) {
        open_barrier(barrier);
        return;
    }
    for (int spins = 0; atomic_load(&barrier->generation) == generation; spins++)
        if (spins >= SPINS_BEFORE_SLEEP)
            sleep_in(barrier, generation);
}
