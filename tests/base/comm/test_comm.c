/* Collective calls and failures, with threads as processes. */
#include "base/comm/collectives.h"
#include "base/comm/threads.h"
#include "base/core/clock.h"
#include "test.h"

/* --- collective calls -------------------------------------------------------------------------------------------- */

static const char *check_all(att_context *context, att_comm *comm, void *user)
{
    (void)context, (void)user;
    const char *wrong = check_hosts(comm);
    for (int channel = 0; channel < ATT_COMM_CHANNELS && !wrong; channel++)
        wrong = check_channel(comm, channel);
    return wrong;
}

TEST(test_collectives)
{
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

TEST(test_channels_at_once)
{
    run_ranks(3, 1, check_both_channels, NULL, 0);
}

/* --- figures ----------------------------------------------------------------------------------------------------- */

enum { FIGURES_BYTES = 3 << 18, FIGURES_PAUSE = 30000000 /* nanoseconds */ };

static void sleep_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = FIGURES_PAUSE}, NULL);
}

/* A share that is known late. */
static void await_late(void *user, size_t offset, size_t bytes)
{
    (void)user, (void)bytes;
    if (offset == 0)
        sleep_briefly();
}

static void add_nothing(void *user, size_t offset, size_t bytes, char *buffer)
{
    (void)user, (void)offset, (void)bytes, (void)buffer;
}

static void keep_nothing(void *user, size_t offset, size_t bytes, const char *buffer)
{
    (void)user, (void)offset, (void)bytes, (void)buffer;
}

static const char *check_sum_figures(att_comm *comm)
{
    static const int64_t sends[] = {2, 1, 1}, receives[] = {1, 2, 1};
    const att_comm_sum sum = {
        .bytes = FIGURES_BYTES, .await = await_late, .load = add_nothing, .add = add_nothing, .store = keep_nothing};
    att_comm_figures before = att_comm_describe(comm);
    double begin = att_seconds_now();
    if (att_comm_reduce(comm, ATT_COMM_BACKGROUND, &sum) != ATT_OK)
        return "a sum failed";
    double seconds = att_seconds_now() - begin;
    att_comm_figures after = att_comm_describe(comm);
    int rank = att_comm_rank(comm);
    if (after.bytes_sent - before.bytes_sent != sends[rank] * FIGURES_BYTES ||
        after.bytes_received - before.bytes_received != receives[rank] * FIGURES_BYTES)
        return "the bytes of a sum differ";
    if (after.wait_seconds != before.wait_seconds)
        return "a sum in the background counts as waiting";
    double counted = after.sum_seconds - before.sum_seconds;
    return counted > 0 && counted <= seconds - 1e-9 * FIGURES_PAUSE ? NULL
                                                                    : "the time of a sum includes that of its share";
}

/* Rank 0 comes late. */
static const char *check_wait_figures(att_comm *comm)
{
    int rank = att_comm_rank(comm);
    double before = att_comm_describe(comm).wait_seconds, begin = att_seconds_now();
    if (rank == 0)
        sleep_briefly();
    if (meet(comm, ATT_COMM_MAIN) != ATT_OK)
        return "the ranks do not meet";
    double seconds = att_seconds_now() - begin, waited = att_comm_describe(comm).wait_seconds - before;
    if (waited > seconds || (rank == 0 && waited > seconds - 1e-9 * FIGURES_PAUSE))
        return "waiting counts more than the time that passed";
    return rank == 0 || waited > 0.5 * seconds ? NULL : "waiting is not counted";
}

static const char *check_figures(att_context *context, att_comm *comm, void *user)
{
    (void)context, (void)user;
    static const int64_t sent[] = {2 * 10 + 0, 2 * 20 + 2 * 8, 2 * 30}, received[] = {50 + 8, 40, 30 + 8};
    static const int64_t first[] = {0, 1, 3, 6};
    char bytes[60] = {0};
    int rank = att_comm_rank(comm);
    att_comm_figures none = att_comm_describe(comm);
    if (none.bytes_sent != 0 || none.bytes_received != 0 || none.sum_seconds != 0 || none.wait_seconds != 0)
        return "figures do not begin at zero";
    if (att_comm_gather(comm, ATT_COMM_MAIN, bytes, 10, first) != ATT_OK ||
        att_comm_broadcast(comm, ATT_COMM_BACKGROUND, bytes, 8, 1) != ATT_OK)
        return "a call failed";
    att_comm_figures figures = att_comm_describe(comm);
    if (figures.bytes_sent != sent[rank] || figures.bytes_received != received[rank])
        return "the bytes of gathering and of a broadcast differ";
    const char *wrong = meet(comm, ATT_COMM_BACKGROUND) == ATT_OK ? check_sum_figures(comm) : "they do not meet";
    return wrong ? wrong : check_wait_figures(comm);
}

TEST(test_figures)
{
    run_ranks(3, 1, check_figures, NULL, 0);
    assert_int_equal(att_comm_describe(NULL).bytes_sent, 0);
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
    att_status statuses[] = {meet(comm, ATT_COMM_MAIN), att_comm_broadcast(comm, ATT_COMM_MAIN, &byte, 1, 1)};
    const char *message = att_context_message(context);
    return statuses[0] == ATT_ERR_IO && statuses[1] == ATT_ERR_IO && strstr(message, "ended") ? NULL : "no call failed";
}

TEST(test_abort)
{
    run_ranks(3, 1, wait_for_aborted, NULL, 0);
}

TEST(test_alone)
{
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
    assert_fails(context, att_comm_open(context, "openmp", &comm), ATT_ERR_ARGUMENT, "did you mean \"openmpi\"?");
    att_context_destroy(&context);
}

/* Processes that a launcher started, and that no MPI connects, would all do the same work. */
TEST(test_unconnected)
{
    enum { MOST = 3 };
    static const struct {
        const char *variables[MOST][2], *mpi, *message; /* message NULL: the process may work alone */
    } cases[] = {
        {{{"WORLD_SIZE", "2"}, {"RANK", "0"}}, "auto", "torchrun, accelerate or deepspeed started 2 processes"},
        {{{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"LOCAL_RANK", "1"}},
         NULL,
         "start the command with mpirun instead; with --mpi none each process works on its own"},
        {{{"WORLD_SIZE", "2"}, {"RANK", "1"}}, "none", NULL},
        {{{"WORLD_SIZE", "1"}, {"RANK", "0"}, {"LOCAL_RANK", "0"}}, "auto", NULL},
        {{{"WORLD_SIZE", "8"}}, "auto", NULL},
        {{{"RANK", "1"}}, "auto", NULL},
        {{{"SLURM_STEP_NUM_TASKS", "3"}}, "auto", "srun started 3 processes without MPI"},
        {{{"SLURM_STEP_NUM_TASKS", "3"}}, "none", NULL},
        {{{"SLURM_STEP_NUM_TASKS", "1"}, {"WORLD_SIZE", "4"}, {"RANK", "0"}}, "auto", "deepspeed started 4 processes"},
        {{{"SLURM_STEP_NUM_TASKS", "1"}}, "auto", NULL},
    };
    att_context *context;
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_comm *comm = NULL;
        for (int v = 0; v < MOST && cases[i].variables[v][0]; v++)
            assert_int_equal(setenv(cases[i].variables[v][0], cases[i].variables[v][1], 1), 0);
        att_status status = att_comm_open(context, cases[i].mpi, &comm);
        for (int v = 0; v < MOST && cases[i].variables[v][0]; v++)
            unsetenv(cases[i].variables[v][0]);
        assert_int_equal(status, cases[i].message ? ATT_ERR_UNSUPPORTED : ATT_OK);
        if (cases[i].message)
            assert_message(context, cases[i].message);
        att_comm_close(&comm);
    }
    att_context_destroy(&context);
}
