/* comm/comm.h - what the engine asks of other processes: ordered sums, broadcast, gathering.
 *
 * All processes make the same calls on a channel in the same order. Of comm NULL and of a communicator of one process,
 * calls return at once, except att_comm_reduce(), which is only for several. Errors: ERR_IO, with the failing rank, its
 * host and what MPI said.
 */
#ifndef ATT_COMM_COMM_H
#define ATT_COMM_COMM_H

#include <attscope/comm.h>

#include "base/comm/transport.h"
#include "base/core/export.h"

struct att_comm {
    att_context *context;
    const att_transport *transport;
    void *state;
    void *plugin; /* handle of the shared object; NULL: none */
    int rank, size;
    char *hosts;                        /* [size][ATT_HOST_NAME] */
    size_t *offsets[ATT_COMM_CHANNELS]; /* [size + 1], for gathering */
    char *chunks[ATT_COMM_CHANNELS];    /* for sums; made at the first */
    _Atomic int64_t sent, received;
    _Atomic int64_t sum_time, sum_wait, main_time; /* nanoseconds; main_time: in calls on the main channel */
    att_transfer *endings; /* [size + 1], of att_comm_settle(): after a timeout they are pending until the end */
    int64_t *failed;       /* [size + 1]: 1 for a rank that failed; the last: the first such rank */
};

enum { ATT_HOST_NAME = 64 }; /* bytes of a host's name, with the final 0 */

/* A sum over all processes, as a stream of bytes. Ranges begin at multiples of 64 and come in order. */
typedef struct att_comm_sum {
    size_t bytes;
    void *user;
    /* Waits until this process's share of a range is known. Called before load() and add() of the range. */
    void (*await)(void *user, size_t offset, size_t bytes);
    /* Copies a range of this process's copy of the sum to `buffer`. */
    void (*load)(void *user, size_t offset, size_t bytes, char *buffer);
    /* Adds this process's share of a range to the partial sum in `buffer`. */
    void (*add)(void *user, size_t offset, size_t bytes, char *buffer);
    /* Copies a range of the complete sum from `buffer` to this process's copy. */
    void (*store)(void *user, size_t offset, size_t bytes, const char *buffer);
} att_comm_sum;

/* The sum over all processes in the order of their ranks, the same bits in each of them: what rank 0 has at first, plus
 * the share of rank 0, plus that of rank 1, and so on. Partial sums travel from rank to rank in chunks; behind the last
 * rank the complete ones travel on through rank 0 to all others. Each process calls await() and add() once for every
 * range, then store(), with this thread. */
ATT_FOR_LAB att_status att_comm_reduce(att_comm *comm, int channel, const att_comm_sum *sum);

/* The bytes of rank `root` become those of all. */
att_status att_comm_broadcast(att_comm *comm, int channel, void *bytes, size_t size, int root);

/* Rows of all processes, those of rank 0 first: rank r has rows [first[r], first[r + 1]) of `bytes` filled in, and
 * receives all others. first: [size + 1]. */
att_status att_comm_gather(att_comm *comm, int channel, void *bytes, size_t row_bytes, const int64_t *first);

/* One element of `bytes` bytes from each process: element r is that of rank r, and every process receives all. */
ATT_FOR_LAB att_status att_comm_collect(att_comm *comm, int channel, void *elements, size_t bytes);

/* Counts time during which computation waited for sums on the background channel. */
void att_comm_count_wait(att_comm *comm, double seconds);

/* comm/plugin.c: loads the plugin for `mpi`, "openmpi" or "mpich". */
att_status att_comm_load(att_context *context, const char *mpi, void **plugin, const att_transport **transport);
void att_comm_unload(void *plugin);
/* comm/launcher.c: the plugin that fits the launcher of this process; NULL: it was started on its own. */
const char *att_comm_launcher(void);
/* comm/launcher.c: a launcher that leaves it to the processes to connect, by the environment variables that it sets. */
typedef struct att_unconnected {
    const char *name;
    const char *sizes[2]; /* the variable with the number of processes; NULL */
    const char *rank;     /* a variable that must be set, too, because users set the other one; NULL: none */
    const char *advice;
} att_unconnected;
/* Returns the launcher if one started several processes that no MPI connects, and NULL if not. *size: the number of
 * processes. */
const att_unconnected *att_comm_unconnected(int *size);
/* comm/comm.c: a communicator over a transport that was started. On failure the caller finishes the transport. */
att_status att_comm_create(att_context *context, const att_transport *transport, void *state, int rank, int size,
                           att_comm **comm);

#endif
