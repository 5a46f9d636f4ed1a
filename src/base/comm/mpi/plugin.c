/* The transport over MPI. It is compiled once for each MPI library, whose ABIs differ. */
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/comm/transport.h"
#include "base/core/clock.h"

typedef struct mpi_channel {
    MPI_Comm comm;
    double yielding;       /* seconds of a wait before it sleeps */
    int *counts, *offsets; /* [size], for gathering */
    char failure[MPI_MAX_ERROR_STRING];
} mpi_channel;

typedef struct mpi_state {
    mpi_channel channels[ATT_COMM_CHANNELS];
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, size;
} mpi_state;

static const char *check(mpi_channel *channel, int code)
{
    int length = 0;
    if (code == MPI_SUCCESS)
        return NULL;
    MPI_Error_string(code, channel->failure, &length);
    return channel->failure;
}

static mpi_channel *channel_of(void *state, int channel)
{
    return &((mpi_state *)state)->channels[channel];
}

/* --- waiting ----------------------------------------------------------------------------------------------------- */

/* A blocking call of MPI keeps its core busy until it returns, and takes the core from a thread that computes. So each
 * wait is a loop of tests: at first without a pause, then with yields, then with sleeps. On the main channel the caller
 * has nothing else to do, and short exchanges follow each other closely, so yields go on for longer there. */
static double yielding_seconds(int index)
{
    return index == ATT_COMM_MAIN ? 1e-3 : 50e-6;
}

/* A sleep takes about a quarter of the time waited so far, so that it delays a long wait little. */
static void pause_after(double waited, double yielding)
{
    const double spinning = 10e-6, shortest = 20e-6, longest = 200e-6;
    double sleep = waited / 4;
    if (waited < spinning)
        return;
    if (waited < yielding) {
        sched_yield();
        return;
    }
    sleep = sleep < shortest ? shortest : sleep > longest ? longest : sleep;
    att_sleep(sleep);
}

static const char *complete(mpi_channel *channel, MPI_Request request)
{
    double begin = MPI_Wtime();
    for (;;) {
        int done = 0;
        const char *failure = check(channel, MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (failure || done)
            return failure;
        pause_after(MPI_Wtime() - begin, channel->yielding);
    }
}

/* Waits for a request whose start returned `code`. */
static const char *started(mpi_channel *channel, int code, const MPI_Request *request)
{
    const char *failure = check(channel, code);
    return failure ? failure : complete(channel, *request);
}

static const char *wait_for_all(mpi_channel *channel)
{
    MPI_Request request;
    return started(channel, MPI_Ibarrier(channel->comm, &request), &request);
}

/* --- starting and ending ----------------------------------------------------------------------------------------- */

static void release(mpi_state *state)
{
    for (int i = 0; i < ATT_COMM_CHANNELS; i++) {
        free(state->channels[i].counts);
        free(state->channels[i].offsets);
    }
    free(state);
}

static void finish(void *user)
{
    mpi_state *state = user;
    if (state->channels[ATT_COMM_MAIN].comm != MPI_COMM_NULL)
        wait_for_all(&state->channels[ATT_COMM_MAIN]); /* MPI_Finalize() waits too, but keeps its core busy */
    for (int i = 0; i < ATT_COMM_CHANNELS; i++)
        if (state->channels[i].comm != MPI_COMM_NULL)
            MPI_Comm_free(&state->channels[i].comm);
    MPI_Finalize();
    release(state);
}

static const char *open_channel(const mpi_state *state, int index, mpi_channel *channel)
{
    channel->yielding = yielding_seconds(index);
    channel->counts = calloc((size_t)state->size, sizeof *channel->counts);
    channel->offsets = calloc((size_t)state->size, sizeof *channel->offsets);
    if (!channel->counts || !channel->offsets)
        return "no memory is left";
    if (MPI_Comm_dup(MPI_COMM_WORLD, &channel->comm) != MPI_SUCCESS)
        return "MPI_Comm_dup failed";
    MPI_Comm_set_errhandler(channel->comm, MPI_ERRORS_RETURN);
    return NULL;
}

static const char *prepare(mpi_state *state)
{
    int length;
    const char *failure = NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &state->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &state->size);
    MPI_Get_library_version(state->library, &length);
    state->library[strcspn(state->library, "\n,")] = 0;
    for (char *tab = state->library; (tab = strchr(tab, '\t'));)
        *tab = ' ';
    for (int i = 0; i < ATT_COMM_CHANNELS && !failure; i++)
        failure = open_channel(state, i, &state->channels[i]);
    return failure;
}

static const char *start(void **out, int *rank, int *size)
{
    int given = MPI_THREAD_SINGLE;
    mpi_state *state = calloc(1, sizeof *state);
    if (!state)
        return "no memory is left";
    for (int i = 0; i < ATT_COMM_CHANNELS; i++)
        state->channels[i].comm = MPI_COMM_NULL;
    const char *failure = NULL;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &given) != MPI_SUCCESS) {
        release(state);
        return "MPI_Init_thread failed";
    }
    if (given < MPI_THREAD_MULTIPLE)
        failure = "this MPI library does not support MPI_THREAD_MULTIPLE";
    if (!failure)
        failure = prepare(state);
    if (failure) {
        finish(state);
        return failure;
    }
    *rank = state->rank;
    *size = state->size;
    *out = state;
    return NULL;
}

static const char *library(void *state)
{
    return ((mpi_state *)state)->library;
}

static void end_all(void *state, int exit_status)
{
    (void)state;
    MPI_Abort(MPI_COMM_WORLD, exit_status);
}

/* --- transfers --------------------------------------------------------------------------------------------------- */

/* MPI_Request is a pointer in Open MPI and an int in MPICH. */
_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request fits into att_transfer");

static void keep(att_transfer *transfer, MPI_Request request)
{
    *transfer = (att_transfer){.pending = 1};
    memcpy(&transfer->request, &request, sizeof request);
}

static const char *send_bytes(void *state, int index, const void *bytes, size_t size, int to, att_transfer *transfer)
{
    mpi_channel *channel = channel_of(state, index);
    MPI_Request request;
    const char *failure = check(channel, MPI_Isend(bytes, (int)size, MPI_BYTE, to, 0, channel->comm, &request));
    if (!failure)
        keep(transfer, request);
    return failure;
}

static const char *receive_bytes(void *state, int index, void *bytes, size_t size, int from, att_transfer *transfer)
{
    mpi_channel *channel = channel_of(state, index);
    MPI_Request request;
    const char *failure = check(channel, MPI_Irecv(bytes, (int)size, MPI_BYTE, from, 0, channel->comm, &request));
    if (!failure)
        keep(transfer, request);
    return failure;
}

static const char *wait_for(void *state, int index, att_transfer *transfer)
{
    MPI_Request request;
    if (!transfer->pending)
        return NULL;
    memcpy(&request, &transfer->request, sizeof request);
    *transfer = (att_transfer){0};
    return complete(channel_of(state, index), request);
}

static const char *test_for(void *state, int index, att_transfer *transfer, bool *done)
{
    mpi_channel *channel = channel_of(state, index);
    MPI_Request request;
    int complete_now = 0;
    *done = !transfer->pending;
    if (*done)
        return NULL;
    memcpy(&request, &transfer->request, sizeof request);
    const char *failure = check(channel, MPI_Test(&request, &complete_now, MPI_STATUS_IGNORE));
    *done = !failure && complete_now;
    if (*done)
        *transfer = (att_transfer){0};
    else
        keep(transfer, request);
    return failure;
}

/* --- collective calls -------------------------------------------------------------------------------------------- */

/* MPI counts in int, so much is sent in pieces. */
static const char *broadcast(void *state, int index, void *bytes, size_t size, int root)
{
    mpi_channel *channel = channel_of(state, index);
    MPI_Request request;
    const char *failure = NULL;
    for (size_t done = 0; done < size && !failure; done += ATT_TRANSFER_BYTES) {
        size_t piece = size - done < ATT_TRANSFER_BYTES ? size - done : ATT_TRANSFER_BYTES;
        int code = MPI_Ibcast((char *)bytes + done, (int)piece, MPI_BYTE, root, channel->comm, &request);
        failure = started(channel, code, &request);
    }
    return failure;
}

static const char *gather_at_once(mpi_state *state, mpi_channel *channel, void *bytes, const size_t *offsets)
{
    MPI_Request request;
    for (int i = 0; i < state->size; i++) {
        channel->offsets[i] = (int)offsets[i];
        channel->counts[i] = (int)(offsets[i + 1] - offsets[i]);
    }
    int code = MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bytes, channel->counts, channel->offsets, MPI_BYTE,
                               channel->comm, &request);
    return started(channel, code, &request);
}

static const char *gather(void *user, int index, void *bytes, const size_t *offsets)
{
    mpi_state *state = user;
    const char *failure = NULL;
    if (offsets[state->size] <= ATT_TRANSFER_BYTES)
        return gather_at_once(state, channel_of(state, index), bytes, offsets);
    for (int i = 0; i < state->size && !failure; i++)
        failure = broadcast(state, index, (char *)bytes + offsets[i], offsets[i + 1] - offsets[i], i);
    return failure;
}

/* The plugin's only symbol: ATT_TRANSPORT_SYMBOL. */
__attribute__((visibility("default"))) extern const att_transport att_transport_plugin;
const att_transport att_transport_plugin = {.interface = ATT_TRANSPORT_INTERFACE,
                                            .start = start,
                                            .library = library,
                                            .send = send_bytes,
                                            .receive = receive_bytes,
                                            .wait = wait_for,
                                            .test = test_for,
                                            .broadcast = broadcast,
                                            .gather = gather,
                                            .abort = end_all,
                                            .finish = finish};
