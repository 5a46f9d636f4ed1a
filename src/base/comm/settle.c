#include <math.h>

#include "base/comm/comm.h"
#include "base/core/clock.h"

/* Every process tells rank 0 how it ended; when all have, rank 0 tells all which one failed first. */

/* Seconds that a process which failed waits. Rank 0 waits the shortest time, so that only it reports when
 * several fail. */
static const double patience_of_rank_0 = 2, patience_of_others = 3.5;

/* Whether all transfers complete before the deadline. */
static bool complete(att_comm *comm, att_transfer *transfers, int count, double deadline)
{
    for (int i = 0; i < count;) {
        bool done;
        if (comm->transport->test(comm->state, ATT_COMM_ENDINGS, &transfers[i], &done) != NULL)
            return false;
        if (done)
            i++;
        else if (att_seconds_now() > deadline)
            return false;
        else
            att_sleep(0.001);
    }
    return true;
}

static bool exchange(att_comm *comm, int64_t *value, int other, bool sends, att_transfer *transfer)
{
    const att_transport *transport = comm->transport;
    return (sends ? transport->send(comm->state, ATT_COMM_ENDINGS, value, sizeof *value, other, transfer)
                  : transport->receive(comm->state, ATT_COMM_ENDINGS, value, sizeof *value, other, transfer)) == NULL;
}

static int64_t first_failed_of(const att_comm *comm)
{
    for (int i = 0; i < comm->size; i++)
        if (comm->failed[i])
            return i;
    return -1;
}

static bool settle_as_rank_0(att_comm *comm, double deadline)
{
    int64_t *verdict = &comm->failed[comm->size];
    bool ok = true;
    for (int i = 1; i < comm->size && ok; i++)
        ok = exchange(comm, &comm->failed[i], i, false, &comm->endings[i]);
    if (!ok || !complete(comm, comm->endings + 1, comm->size - 1, deadline))
        return false;
    *verdict = first_failed_of(comm);
    for (int i = 1; i < comm->size && ok; i++)
        ok = exchange(comm, verdict, i, true, &comm->endings[i]);
    return ok && complete(comm, comm->endings + 1, comm->size - 1, INFINITY);
}

static bool settle_as_another(att_comm *comm, double deadline)
{
    return exchange(comm, &comm->failed[comm->rank], 0, true, &comm->endings[0]) &&
           exchange(comm, &comm->failed[comm->size], 0, false, &comm->endings[1]) &&
           complete(comm, comm->endings, 2, deadline);
}

bool att_comm_settle(att_comm *comm, bool failed, int *first_failed)
{
    bool settled = true;
    int64_t first = failed ? 0 : -1;
    if (att_comm_size(comm) > 1) {
        double patience = comm->rank == 0 ? patience_of_rank_0 : patience_of_others;
        double deadline = failed ? att_seconds_now() + patience : INFINITY;
        comm->failed[comm->rank] = failed;
        settled = comm->rank == 0 ? settle_as_rank_0(comm, deadline) : settle_as_another(comm, deadline);
        first = comm->failed[comm->size];
    }
    if (settled && first_failed)
        *first_failed = (int)first;
    return settled;
}
