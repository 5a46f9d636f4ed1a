#include "study/train/processes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/comm/comm.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "study/train/clock.h"

enum { VALUE = 160 }; /* bytes of a value in a message */

static bool is_alone(const att_processes *processes)
{
    return att_comm_size(processes->comm) == 1;
}

att_status att_processes_open(att_context *context, att_comm *comm, att_processes *processes)
{
    size_t count = (size_t)att_comm_size(comm);
    *processes = (att_processes){.context = context, .comm = comm};
    ATT_TRY(att_new(context, &processes->pulses, count, "the list of processes"));
    att_processes_begin(processes);
    return ATT_OK;
}

void att_processes_close(att_processes *processes)
{
    if (processes->context)
        att_free(processes->context, processes->pulses);
    *processes = (att_processes){0};
}

/* --- meetings ---------------------------------------------------------------------------------------------------- */

void att_processes_begin(att_processes *processes)
{
    processes->started = att_seconds_now();
    processes->waited = att_comm_describe(processes->comm).wait_seconds;
    processes->slowest_rank = -1;
    processes->others_share = NAN;
}

/* The others wait for the slowest process, which itself waits least. */
static void find_slowest(att_processes *processes)
{
    const att_pulse *pulses = processes->pulses;
    int count = att_comm_size(processes->comm);
    double sum = 0;
    processes->slowest_rank = 0;
    for (int i = 0; i < count; i++) {
        sum += pulses[i].waited;
        if (pulses[i].waited < pulses[processes->slowest_rank].waited)
            processes->slowest_rank = i;
    }
    processes->others_share = att_ratio(sum / count, att_seconds_now() - processes->started);
}

att_status att_processes_meet(att_processes *processes, bool *stop)
{
    if (is_alone(processes))
        return ATT_OK;
    int rank = att_comm_rank(processes->comm), size = att_comm_size(processes->comm);
    processes->pulses[rank] =
        (att_pulse){.waited = att_comm_describe(processes->comm).wait_seconds - processes->waited, .stop = *stop};
    ATT_TRY(att_comm_collect(processes->comm, ATT_COMM_MAIN, processes->pulses, sizeof *processes->pulses));
    for (int i = 0; i < size; i++)
        *stop |= processes->pulses[i].stop != 0;
    find_slowest(processes);
    return ATT_OK;
}

void att_processes_describe(const att_processes *processes, att_progress *progress)
{
    progress->slowest_rank = processes->slowest_rank;
    progress->others_share = processes->others_share;
}

/* --- settings ---------------------------------------------------------------------------------------------------- */

att_status att_processes_least(att_processes *processes, int value, int *least)
{
    size_t count = (size_t)att_comm_size(processes->comm);
    *least = value;
    if (is_alone(processes))
        return ATT_OK;
    int *values;
    ATT_TRY(att_new(processes->context, &values, count, "the list of processes"));
    values[att_comm_rank(processes->comm)] = value;
    att_status status = att_comm_collect(processes->comm, ATT_COMM_MAIN, values, sizeof *values);
    for (size_t i = 0; i < count && status == ATT_OK; i++)
        *least = values[i] < *least ? values[i] : *least;
    att_free(processes->context, values);
    return status;
}

att_status att_processes_sum(att_processes *processes, int64_t *values, int64_t count)
{
    size_t size = (size_t)att_comm_size(processes->comm), own = (size_t)count;
    int64_t *all;
    if (is_alone(processes))
        return ATT_OK;
    ATT_TRY(att_new(processes->context, &all, att_size_product(size, own), "the counts of all processes"));
    memcpy(all + (size_t)att_comm_rank(processes->comm) * own, values, own * sizeof *values);
    att_status status = att_comm_collect(processes->comm, ATT_COMM_MAIN, all, own * sizeof *all);
    memset(values, 0, own * sizeof *values);
    for (size_t i = 0; i < size * own && status == ATT_OK; i++)
        values[i % own] += all[i];
    att_free(processes->context, all);
    return status;
}

/* The values of one line, of all processes. */
static att_status refuse(att_processes *processes, const att_shared_line *line, int rank)
{
    att_context *context = processes->context;
    att_comm *comm = processes->comm;
    size_t count = (size_t)att_comm_size(comm);
    char(*values)[VALUE] = att_allocate_array(context, count, sizeof *values);
    if (!values)
        return att_fail_memory(context, count * sizeof *values, "the settings of all processes");
    snprintf(values[att_comm_rank(comm)], VALUE, "%s", line->value);
    att_status status = att_comm_collect(comm, ATT_COMM_MAIN, values, sizeof *values);
    if (status == ATT_OK)
        status = att_fail(context, ATT_ERR_MISMATCH,
                          "the processes differ in %s: it is \"%s\" for rank 0 on %s and \"%s\" for rank %d on %s",
                          line->what, values[0], att_comm_host(comm, 0), values[rank], rank, att_comm_host(comm, rank));
    att_free(context, values);
    return status;
}

/* digests: [processes][count]. */
static att_status compare(att_processes *processes, const att_shared_line *lines, int count, uint64_t *digests)
{
    uint64_t *own = digests + (size_t)att_comm_rank(processes->comm) * (size_t)count;
    for (int i = 0; i < count; i++)
        own[i] = att_random_hash(lines[i].value);
    ATT_TRY(att_comm_collect(processes->comm, ATT_COMM_MAIN, digests, (size_t)count * sizeof *digests));
    for (int rank = 1; rank < att_comm_size(processes->comm); rank++)
        for (int i = 0; i < count; i++)
            if (digests[rank * count + i] != digests[i])
                return refuse(processes, &lines[i], rank);
    return ATT_OK;
}

att_status att_processes_compare(att_processes *processes, const att_shared_line *lines, int count)
{
    if (is_alone(processes))
        return ATT_OK;
    size_t all = (size_t)att_comm_size(processes->comm) * (size_t)count;
    uint64_t *digests;
    ATT_TRY(att_new(processes->context, &digests, all, "the settings of all processes"));
    att_status status = compare(processes, lines, count, digests);
    att_free(processes->context, digests);
    return status;
}
