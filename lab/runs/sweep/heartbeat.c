#include "lab/runs/sweep/heartbeat.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include <attscope/lab/runs.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/threads.h"
#include "base/io/journal.h"

enum { RENEWALS = 4 }; /* per lease */

/* Counts the time during which the machine sleeps, where the system has such a clock. */
#ifdef CLOCK_BOOTTIME
static const clockid_t elapsing = CLOCK_BOOTTIME;
#else
static const clockid_t elapsing = CLOCK_MONOTONIC;
#endif

struct att_heartbeat {
    att_context *context;
    char path[ATT_RUN_PATH];
    double lease;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ends; /* under `lock` */
    atomic_bool lost;
    _Atomic double last; /* when the mark was renewed for the last time */
    _Atomic double late; /* when a renewal came late for the last time; before the first one: minus infinity */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(elapsing, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Waits for a quarter of the lease. Returns false if the thread is to end. */
static bool pause_beat(att_heartbeat *beat)
{
    const double seconds = beat->lease / RENEWALS;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const double end = (double)until.tv_nsec * 1e-9 + seconds;
    until.tv_sec += (time_t)end;
    until.tv_nsec = (long)(1e9 * (end - (double)(time_t)end));
    pthread_mutex_lock(&beat->lock);
    while (!beat->ends && pthread_cond_timedwait(&beat->wake, &beat->lock, &until) == 0)
        ;
    const bool goes_on = !beat->ends;
    pthread_mutex_unlock(&beat->lock);
    return goes_on;
}

static void *renew(void *user)
{
    att_heartbeat *beat = user;
    while (pause_beat(beat)) {
        const att_mark mark = att_mark_renew(beat->path);
        const double at = now();
        if (mark == ATT_MARK_GONE)
            atomic_store(&beat->lost, true);
        if (at - atomic_load(&beat->last) > beat->lease / 2)
            atomic_store(&beat->late, at);
        if (mark == ATT_MARK_RENEWED)
            atomic_store(&beat->last, at);
    }
    return NULL;
}

static void make_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void free_heartbeat(att_heartbeat *beat)
{
    pthread_cond_destroy(&beat->wake);
    pthread_mutex_destroy(&beat->lock);
    att_free(beat->context, beat);
}

att_status att_heartbeat_start(att_context *context, const char *path, double lease, att_heartbeat **heartbeat)
{
    att_heartbeat *beat;
    ATT_TRY(att_new(context, &beat, 1, "the thread of a claim"));
    beat->context = context;
    beat->lease = lease;
    snprintf(beat->path, sizeof beat->path, "%s", path);
    atomic_init(&beat->lost, false);
    atomic_init(&beat->last, now());
    atomic_init(&beat->late, -1e300);
    pthread_mutex_init(&beat->lock, NULL);
    make_condition(&beat->wake);
    att_status status = att_thread_start(context, &beat->thread, renew, beat, "the thread that renews a claim");
    if (status == ATT_OK)
        *heartbeat = beat;
    else
        free_heartbeat(beat);
    return status;
}

void att_heartbeat_stop(att_heartbeat **heartbeat)
{
    att_heartbeat *beat = *heartbeat;
    if (!beat)
        return;
    pthread_mutex_lock(&beat->lock);
    beat->ends = true;
    pthread_cond_signal(&beat->wake);
    pthread_mutex_unlock(&beat->lock);
    pthread_join(beat->thread, NULL);
    free_heartbeat(beat);
    *heartbeat = NULL;
}

bool att_heartbeat_is_lost(const att_heartbeat *beat)
{
    return atomic_load(&beat->lost);
}

bool att_heartbeat_is_steady(const att_heartbeat *beat)
{
    const double at = now();
    return at - atomic_load(&beat->last) <= beat->lease / 2 && at - atomic_load(&beat->late) > beat->lease;
}
