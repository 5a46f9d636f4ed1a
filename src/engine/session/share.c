#include <string.h>

#include "base/comm/comm.h"
#include "base/core/error.h"
#include "engine/session/session.h"

/* What a session shares with other processes besides gradients: rows of a batch. */

/* By session->starts. */
static void find_own_rows(att_session *session)
{
    att_body_batch *batch = &session->batch;
    int rank = att_comm_rank(session->plan->comm);
    batch->count = (int)session->starts[att_comm_size(session->plan->comm)];
    batch->first_row = (int)session->starts[rank];
    batch->rows = (int)(session->starts[rank + 1] - session->starts[rank]);
}

void att_session_split_batch(att_session *session, int count)
{
    int processes = att_comm_size(session->plan->comm);
    for (int i = 0; i <= processes; i++)
        session->starts[i] = (int64_t)count * i / processes;
    find_own_rows(session);
}

att_status att_session_join_batch(att_session *session, int rows)
{
    att_comm *comm = session->plan->comm;
    int64_t *starts = session->starts, end = 0;
    starts[att_comm_rank(comm)] = rows;
    ATT_TRY(att_comm_collect(comm, ATT_COMM_MAIN, starts, sizeof *starts));
    for (int i = 0; i <= att_comm_size(comm); i++) {
        int64_t own = i < att_comm_size(comm) ? starts[i] : 0;
        starts[i] = end;
        end += own;
    }
    find_own_rows(session);
    return ATT_OK;
}

int att_session_samples(const att_session *session)
{
    return session->batch.count;
}

att_status att_session_fetch(att_session *session, int output)
{
    att_comm *comm = session->plan->comm;
    size_t row = (size_t)session->plan->outputs[output].row_bytes;
    if (att_comm_size(comm) == 1 || session->fetched[output])
        return ATT_OK;
    ATT_TRY(att_comm_gather(comm, ATT_COMM_MAIN, session->outputs[output], row, session->starts));
    session->fetched[output] = true;
    return ATT_OK;
}

void att_session_gather(att_session *session, const att_segment *segment)
{
    const att_body_batch *batch = &session->batch;
    size_t before = session->alone ? 0 : (size_t)batch->first_row;
    for (int i = 0; i < segment->gather_count; i++) {
        const att_gather *gather = &segment->gathers[i];
        size_t row = (size_t)gather->from.row_bytes;
        char *rows = session->gathered + gather->offset * session->max_batch;
        memcpy(rows + before * row, att_session_rows(session, &gather->from), (size_t)batch->rows * row);
        if (session->alone)
            continue;
        att_status status = att_comm_gather(session->plan->comm, ATT_COMM_MAIN, rows, row, session->starts);
        if (status != ATT_OK)
            att_runner_fail(&session->runner, status);
    }
}
