#include "data/agreement.h"

#include <stdio.h>
#include <string.h>

#include "base/comm/comm.h"
#include "base/core/error.h"
#include "base/core/memory.h"

enum { REASON = 240 }; /* bytes of a reason with the final 0 */

/* A failure as it travels. */
typedef struct failure_message {
    int64_t index;
    int32_t status, replaced;
    char reason[REASON];
} failure_message;

/* How the share of a process ended. */
typedef struct share_message {
    int32_t status, failures, rows; /* rows: samples that are left */
} share_message;

struct att_agreement {
    att_context *context;
    att_comm *comm;
    int batch_size, target_count;
    bool local;                /* targets are not gathered */
    share_message *shares;     /* [processes] */
    int64_t *first;            /* [processes + 1] */
    failure_message *messages; /* [batch_size] */
    att_slot_failure *failures;
    int64_t *indices;
    void **data; /* the images of this process; then [targets][batch_size] */
};

/* --- life -------------------------------------------------------------------------------------------------------- */

static att_status reserve(att_agreement *it, const size_t *target_bytes)
{
    size_t processes = (size_t)att_comm_size(it->comm), batch = (size_t)it->batch_size;
    it->shares = att_allocate_array(it->context, processes, sizeof *it->shares);
    it->first = att_allocate_array(it->context, processes + 1, sizeof *it->first);
    it->messages = att_allocate_array(it->context, batch, sizeof *it->messages);
    it->failures = att_allocate_array(it->context, batch, sizeof *it->failures);
    it->indices = att_allocate_array(it->context, batch, sizeof *it->indices);
    it->data = att_allocate_array(it->context, (size_t)it->target_count + 1, sizeof *it->data);
    bool complete = it->shares && it->first && it->messages && it->failures && it->indices && it->data;
    for (int i = 0; complete && i < it->target_count && !it->local; i++) {
        it->data[1 + i] = att_allocate_array(it->context, batch, target_bytes[i]);
        complete = it->data[1 + i];
    }
    return complete ? ATT_OK
                    : att_fail_memory(it->context, batch * sizeof *it->messages, "a batch of several processes");
}

att_status att_agreement_create(att_context *context, const att_loader_options *options, const size_t *target_bytes,
                                att_agreement **out)
{
    att_agreement *it;
    ATT_TRY(att_new(context, &it, 1, "a loader"));
    *it = (att_agreement){.context = context,
                          .comm = options->comm,
                          .batch_size = options->batch_size,
                          .target_count = options->targets.count,
                          .local = options->targets.local};
    att_status status = reserve(it, target_bytes);
    if (status == ATT_OK)
        *out = it;
    else
        att_agreement_destroy(&it);
    return status;
}

void att_agreement_destroy(att_agreement **out)
{
    att_agreement *it = *out;
    if (!it)
        return;
    for (int i = 0; it->data && i < it->target_count && !it->local; i++)
        att_free(it->context, it->data[1 + i]);
    att_free(it->context, it->data);
    att_free(it->context, it->indices);
    att_free(it->context, it->failures);
    att_free(it->context, it->messages);
    att_free(it->context, it->first);
    att_free(it->context, it->shares);
    att_free(it->context, it);
    *out = NULL;
}

/* --- agreeing ---------------------------------------------------------------------------------------------------- */

static att_status check_others(const att_agreement *it)
{
    for (int i = 0; i < att_comm_size(it->comm); i++)
        if (it->shares[i].status != ATT_OK)
            return att_fail(it->context, (att_status)it->shares[i].status,
                            "rank %d on %s could not prepare its images, and says why", i, att_comm_host(it->comm, i));
    return ATT_OK;
}

static void write_failures(att_agreement *it, const att_slot *slot, int rows)
{
    failure_message *to = it->messages + it->first[att_comm_rank(it->comm)];
    for (int i = 0; i < rows; i++) {
        const att_slot_failure *failed = &slot->failures[i];
        if (failed->status == ATT_OK)
            continue;
        *to =
            (failure_message){.index = failed->index, .status = (int32_t)failed->status, .replaced = failed->replaced};
        snprintf(to->reason, sizeof to->reason, "%s", att_slot_reason(failed));
        to++;
    }
}

static att_status gather_failures(att_agreement *it, const att_slot *slot, int rows, int *count)
{
    int processes = att_comm_size(it->comm);
    it->first[0] = 0;
    for (int i = 0; i < processes; i++)
        it->first[i + 1] = it->first[i] + it->shares[i].failures;
    *count = (int)it->first[processes];
    if (*count == 0)
        return ATT_OK;
    write_failures(it, slot, rows);
    ATT_TRY(att_comm_gather(it->comm, ATT_COMM_MAIN, it->messages, sizeof *it->messages, it->first));
    for (int i = 0; i < *count; i++) {
        failure_message *from = &it->messages[i];
        it->failures[i] = (att_slot_failure){.status = (att_status)from->status,
                                             .reason = from->reason,
                                             .index = from->index,
                                             .replaced = from->replaced != 0};
    }
    return ATT_OK;
}

static int count_left(const att_slot *slot, int rows)
{
    int left = rows;
    for (int i = 0; i < rows; i++)
        left -= slot->failures[i].status != ATT_OK && !slot->failures[i].replaced;
    return left;
}

att_status att_agreement_reach(att_agreement *it, att_status status, const att_slot *slot, int rows,
                               const att_slot_failure **failures, int *count)
{
    it->shares[att_comm_rank(it->comm)] = (share_message){
        .status = (int32_t)status, .failures = att_slot_failed(slot, rows), .rows = count_left(slot, rows)};
    ATT_TRY(att_comm_collect(it->comm, ATT_COMM_MAIN, it->shares, sizeof *it->shares));
    if (status != ATT_OK)
        return status;
    ATT_TRY(check_others(it));
    ATT_TRY(gather_failures(it, slot, rows, count));
    *failures = it->failures;
    return ATT_OK;
}

/* --- gathering --------------------------------------------------------------------------------------------------- */

/* Copies this process's rows to their place among all, and receives the others. */
static att_status gather_rows(att_agreement *it, const void *own, void *all, size_t row_bytes, const att_batch *batch)
{
    memcpy((char *)all + (size_t)batch->first_row * row_bytes, own, (size_t)batch->rows * row_bytes);
    return att_comm_gather(it->comm, ATT_COMM_MAIN, all, row_bytes, it->first);
}

att_status att_agreement_gather(att_agreement *it, const att_slot *slot, att_batch *batch)
{
    int processes = att_comm_size(it->comm), rank = att_comm_rank(it->comm);
    it->first[0] = 0;
    for (int i = 0; i < processes; i++)
        it->first[i + 1] = it->first[i] + it->shares[i].rows;
    batch->count = (int)it->first[processes];
    batch->first_row = (int)it->first[rank];
    ATT_TRY(gather_rows(it, slot->indices, it->indices, sizeof *it->indices, batch));
    for (int i = 0; i < it->target_count; i++)
        if (it->local)
            it->data[1 + i] = slot->fields[1 + i];
        else
            ATT_TRY(gather_rows(it, slot->fields[1 + i], it->data[1 + i], slot->row_bytes[1 + i], batch));
    it->data[0] = slot->fields[0];
    batch->indices = it->indices;
    batch->data = (const void *const *)it->data;
    return ATT_OK;
}
