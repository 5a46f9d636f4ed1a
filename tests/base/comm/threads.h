/* comm/threads.h - for tests: ranks that are threads of this process, each with a context and a communicator. */
#ifndef TESTS_COMM_THREADS_H
#define TESTS_COMM_THREADS_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/comm/local.h"

enum { MOST_RANKS = 4 };

/* Returns NULL, or what is wrong. */
typedef const char *(*rank_work)(att_context *context, att_comm *comm, void *user);

typedef struct rank_thread {
    pthread_t id;
    att_hub *hub;
    int rank, threads;
    rank_work work;
    void *user;
    char wrong[512];
} rank_thread;

static inline void *run_rank(void *argument)
{
    rank_thread *own = argument;
    att_context *context = NULL;
    att_comm *comm = NULL;
    att_settings settings = att_settings_defaults();
    settings.threads = own->threads;
    const char *wrong = "no communicator could be made";
    if (att_context_create(&settings, &context) == ATT_OK &&
        att_hub_join(own->hub, context, own->rank, &comm) == ATT_OK)
        wrong = att_comm_rank(comm) == own->rank ? own->work(context, comm, own->user) : "the rank is another one";
    if (wrong) {
        snprintf(own->wrong, sizeof own->wrong, "%s", wrong);
        att_comm_abort(comm, 1);
    }
    att_comm_close(&comm);
    att_context_destroy(&context);
    return NULL;
}

/* Runs work in `size` ranks of `threads` threads each (0: rank r has r + 1); user: an array of `size` elements of
 * user_size bytes. Fails the test where a rank is wrong or leaves memory behind. */
static inline void run_ranks(int size, int threads, rank_work work, void *user, size_t user_size)
{
    rank_thread ranks[MOST_RANKS];
    att_context *context;
    att_hub *hub;
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    size_t before = att_context_allocations(context).bytes_now;
    assert_int_equal(att_hub_create(context, size, &hub), ATT_OK);
    for (int i = 0; i < size; i++) {
        ranks[i] = (rank_thread){.hub = hub, .rank = i, .threads = threads ? threads : i + 1, .work = work};
        ranks[i].user = user ? (char *)user + (size_t)i * user_size : NULL;
        assert_int_equal(pthread_create(&ranks[i].id, NULL, run_rank, &ranks[i]), 0);
    }
    for (int i = 0; i < size; i++)
        pthread_join(ranks[i].id, NULL);
    att_hub_destroy(&hub);
    assert_int_equal(att_context_allocations(context).bytes_now, before);
    att_context_destroy(&context);
    for (int i = 0; i < size; i++)
        if (ranks[i].wrong[0])
            fail_msg("rank %d of %d: %s", i, size, ranks[i].wrong);
}

#endif
