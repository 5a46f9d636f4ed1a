/* One process of several: makes every collective call and prints "rank R of N on HOST: right", or what is wrong. */
#include <time.h>

#include "collectives.h"

static double seconds_of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Rank 0 comes late to a meeting. The others sleep most of the time: measured 0.15 of it on a core; limit 0.5. */
static const char *check_waiting(att_comm *comm, int channel)
{
    double begin = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    if (att_comm_rank(comm) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    if (meet(comm, channel) != ATT_OK)
        return "the ranks do not meet";
    double waited = seconds_of(CLOCK_MONOTONIC) - begin;
    return seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu < 0.5 * waited ? NULL : "waiting keeps a core busy";
}

int main(int count, char **arguments)
{
    att_context *context;
    att_comm *comm;
    if (count != 2 || att_context_create(NULL, &context) != ATT_OK) {
        fprintf(stderr, "usage: make_ranks MPI\n");
        return 2;
    }
    if (att_comm_open(context, arguments[1], &comm) != ATT_OK) {
        fprintf(stderr, "%s\n", att_context_message(context));
        return 1;
    }
    const char *wrong = check_hosts(comm);
    for (int channel = 0; channel < ATT_COMM_CHANNELS && !wrong; channel++)
        wrong = check_channel(comm, channel);
    for (int channel = 0; channel < ATT_COMM_CHANNELS && !wrong && att_comm_size(comm) > 1; channel++)
        wrong = check_waiting(comm, channel);
    printf("rank %d of %d, %s: %s\n", att_comm_rank(comm), att_comm_size(comm), att_comm_library(comm),
           wrong ? wrong : "right");
    fflush(stdout);
    if (wrong)
        att_comm_abort(comm, 1);
    att_comm_close(&comm);
    att_context_destroy(&context);
    return wrong ? 1 : 0;
}
