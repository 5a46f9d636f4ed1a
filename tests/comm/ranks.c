/* One process of several: makes every collective call and prints "rank R of N on HOST: right", or what is wrong. */
#include "collectives.h"

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
    printf("rank %d of %d, %s: %s\n", att_comm_rank(comm), att_comm_size(comm), att_comm_library(comm),
           wrong ? wrong : "right");
    fflush(stdout);
    if (wrong)
        att_comm_abort(comm, 1);
    att_comm_close(&comm);
    att_context_destroy(&context);
    return wrong ? 1 : 0;
}
