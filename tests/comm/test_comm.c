/* Collective calls and failures, with threads as processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "comm/collectives.h"
#include "comm/threads.h"

/* --- collective calls -------------------------------------------------------------------------------------------- */

static const char *check_all(att_context *context, att_comm *comm, void *user)
{
    (void)context, (void)user;
    const char *wrong = check_hosts(comm);
    for (int channel = 0; channel < ATT_COMM_CHANNELS && !wrong; channel++)
        wrong = check_channel(comm, channel);
    return wrong;
}

static void test_collectives(void **state)
{
    (void)state;
    for (int size = 1; size <= MOST_RANKS; size++)
        run_ranks(size, 1, check_all, NULL, 0);
}

typedef struct background {
    att_comm *comm;
    const char *wrong;
} background;

static void *run_background(void *user)
{
    background *own = user;
    own->wrong = check_channel(own->comm, ATT_COMM_BACKGROUND);
    return NULL;
}

static const char *check_both_channels(att_context *context, att_comm *comm, void *user)
{
    (void)context, (void)user;
    background other = {.comm = comm};
    pthread_t id;
    if (pthread_create(&id, NULL, run_background, &other) != 0)
        return "a thread could not be started";
    const char *wrong = check_channel(comm, ATT_COMM_MAIN);
    pthread_join(id, NULL);
    return wrong ? wrong : other.wrong;
}

static void test_channels_at_once(void **state)
{
    (void)state;
    run_ranks(3, 1, check_both_channels, NULL, 0);
}

/* --- failures ---------------------------------------------------------------------------------------------------- */

static const char *wait_for_aborted(att_context *context, att_comm *comm, void *user)
{
    (void)user;
    if (att_comm_rank(comm) == 1) {
        att_comm_abort(comm, 1);
        return NULL;
    }
    char byte = 0;
    att_status statuses[] = {att_comm_barrier(comm, ATT_COMM_MAIN),
                             att_comm_broadcast(comm, ATT_COMM_MAIN, &byte, 1, 1)};
    const char *message = att_context_message(context);
    return statuses[0] == ATT_ERR_IO && statuses[1] == ATT_ERR_IO && strstr(message, "ended") ? NULL : "no call failed";
}

static void test_abort(void **state)
{
    (void)state;
    run_ranks(3, 1, wait_for_aborted, NULL, 0);
}

static void test_alone(void **state)
{
    (void)state;
    att_context *context;
    att_comm *comm;
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    assert_int_equal(att_comm_open(context, "none", &comm), ATT_OK);
    assert_int_equal(att_comm_size(comm), 1);
    assert_string_equal(att_comm_library(comm), "");
    assert_null(check_all(context, comm, NULL));
    att_comm_abort(comm, 1); /* returns */
    att_comm_close(&comm);
    assert_null(check_channel(NULL, ATT_COMM_MAIN));
    assert_int_equal(att_comm_rank(NULL), 0);
    assert_int_equal(att_comm_size(NULL), 1);
    assert_int_equal(att_comm_open(context, "openmp", &comm), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_context_message(context), "did you mean \"openmpi\"?"));
    att_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_collectives), cmocka_unit_test(test_channels_at_once),
                                       cmocka_unit_test(test_abort), cmocka_unit_test(test_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
