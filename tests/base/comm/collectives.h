/* Checks of every collective call, made by each rank of a communicator. Returns NULL, or what is wrong. */
#ifndef TEST_COLLECTIVES_H
#define TEST_COLLECTIVES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/comm/comm.h"

/* Many chunks and a part of one, so that every transfer waits for earlier ones. */
enum { COLLECTIVE_ELEMENTS = 20 * (1 << 16) + 12345 };

/* A share whose sums depend on their order: large terms of changing sign. */
static inline float collective_share(int rank, size_t index)
{
    return (float)((rank % 2 ? -1.0 : 1.0) * 1e7) + (float)(index % 1000) * 0.37F + (float)rank * 1.1F;
}

typedef struct collective_user {
    float *sum;
    int rank;
    size_t awaited, added, stored; /* expected offsets of the next calls */
    bool in_order;
} collective_user;

static inline void collective_await(void *user, size_t offset, size_t bytes)
{
    collective_user *own = user;
    own->in_order = own->in_order && offset == own->awaited && offset == own->added;
    own->awaited = offset + bytes;
}

static inline void collective_load(void *user, size_t offset, size_t bytes, char *buffer)
{
    memcpy(buffer, (char *)((collective_user *)user)->sum + offset, bytes);
}

static inline void collective_add(void *user, size_t offset, size_t bytes, char *buffer)
{
    collective_user *own = user;
    float *values = (float *)buffer;
    own->in_order = own->in_order && offset == own->added && offset + bytes == own->awaited;
    own->added = offset + bytes;
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] += collective_share(own->rank, offset / sizeof *values + i);
}

static inline void collective_store(void *user, size_t offset, size_t bytes, const char *buffer)
{
    collective_user *own = user;
    own->in_order = own->in_order && offset == own->stored;
    own->stored = offset + bytes;
    memcpy((char *)own->sum + offset, buffer, bytes);
}

static inline const char *check_reduce(att_comm *comm, int channel, size_t elements)
{
    int rank = att_comm_rank(comm);
    size_t bytes = elements * sizeof(float);
    collective_user user = {.sum = malloc(bytes + 1), .rank = rank, .in_order = true};
    for (size_t i = 0; i < elements; i++)
        user.sum[i] = rank == 0 ? 0.5F : -1e30F;
    att_comm_sum sum = {.bytes = bytes,
                        .user = &user,
                        .await = collective_await,
                        .load = collective_load,
                        .add = collective_add,
                        .store = collective_store};
    bool right = att_comm_reduce(comm, channel, &sum) == ATT_OK;
    for (size_t i = 0; i < elements && right; i++) {
        float expected = 0.5F;
        for (int other = 0; other < att_comm_size(comm); other++)
            expected += collective_share(other, i);
        right = user.sum[i] == expected;
    }
    free(user.sum);
    return !right ? "a reduced sum differs from the sum in rank order"
           : user.in_order && user.added == bytes && user.stored == bytes ? NULL
                                                                          : "ranges did not come once and in order";
}

static inline const char *check_broadcast(att_comm *comm, int channel, int root)
{
    int64_t value[3] = {0};
    if (att_comm_rank(comm) == root)
        value[0] = value[2] = 40 + root;
    if (att_comm_broadcast(comm, channel, value, sizeof value, root) != ATT_OK)
        return "a broadcast failed";
    return value[0] == 40 + root && value[1] == 0 && value[2] == 40 + root ? NULL : "a broadcast brought other bytes";
}

/* Rank r contributes r + 1 rows, but rank 1 none. */
static inline const char *check_gather(att_comm *comm, int channel)
{
    enum { COLUMNS = 7, MOST_RANKS = 64 };
    int size = att_comm_size(comm), rank = att_comm_rank(comm);
    int64_t first[MOST_RANKS + 1] = {0};
    for (int i = 0; i < size; i++)
        first[i + 1] = first[i] + (i == 1 ? 0 : i + 1);
    int32_t *rows = calloc((size_t)first[size] * COLUMNS, sizeof *rows);
    for (int64_t i = first[rank] * COLUMNS; i < first[rank + 1] * COLUMNS; i++)
        rows[i] = (int32_t)i * 3 + 1;
    bool right = att_comm_gather(comm, channel, rows, COLUMNS * sizeof *rows, first) == ATT_OK;
    for (int64_t i = 0; i < first[size] * COLUMNS && right; i++)
        right = rows[i] == (int32_t)i * 3 + 1;
    free(rows);
    return right ? NULL : "gathered rows differ";
}

static inline const char *check_hosts(const att_comm *comm)
{
    for (int i = 0; i < att_comm_size(comm); i++)
        if (!*att_comm_host(comm, i))
            return "a host has no name";
    return *att_comm_host(comm, -1) || *att_comm_host(comm, att_comm_size(comm)) ? "a rank that is none has a host"
                                                                                 : NULL;
}

/* Returns once all ranks have called this. */
static inline att_status meet(att_comm *comm, int channel)
{
    char *elements = calloc((size_t)att_comm_size(comm), 1);
    att_status status = elements ? att_comm_collect(comm, channel, elements, 1) : ATT_ERR_MEMORY;
    free(elements);
    return status;
}

static inline const char *check_channel(att_comm *comm, int channel)
{
    const char *wrong = NULL;
    if (att_comm_size(comm) > 1)
        wrong = check_reduce(comm, channel, COLLECTIVE_ELEMENTS);
    for (size_t elements = 0; elements < 3 && att_comm_size(comm) > 1 && !wrong; elements++)
        wrong = check_reduce(comm, channel, elements);
    for (int root = 0; root < att_comm_size(comm) && !wrong; root++)
        wrong = check_broadcast(comm, channel, root);
    if (!wrong)
        wrong = check_gather(comm, channel);
    if (!wrong && meet(comm, channel) != ATT_OK)
        wrong = "the ranks do not meet";
    return wrong;
}

#endif
