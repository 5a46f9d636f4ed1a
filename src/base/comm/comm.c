#include "base/comm/comm.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"

static bool is_alone(const att_comm *comm)
{
    return !comm || comm->size == 1;
}

static att_status check(const att_comm *comm, const char *failure, const char *action)
{
    if (!failure)
        return ATT_OK;
    return att_fail(comm->context, ATT_ERR_IO, "rank %d on %s: %s failed: %s", comm->rank,
                    att_comm_host(comm, comm->rank), action, failure);
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

static att_status gather_hosts(att_comm *comm)
{
    char *own = comm->hosts + (size_t)comm->rank * ATT_HOST_NAME;
    if (gethostname(own, ATT_HOST_NAME - 1) != 0)
        strcpy(own, "an unknown host");
    for (int i = 0; i <= comm->size; i++)
        comm->offsets[ATT_COMM_MAIN][i] = (size_t)i * ATT_HOST_NAME;
    return is_alone(comm)
               ? ATT_OK
               : check(comm,
                       comm->transport->gather(comm->state, ATT_COMM_MAIN, comm->hosts, comm->offsets[ATT_COMM_MAIN]),
                       "exchanging host names");
}

static void release(att_comm *comm)
{
    for (int i = 0; i < ATT_COMM_CHANNELS; i++)
        att_free(comm->context, comm->offsets[i]);
    for (int i = 0; i < ATT_COMM_CHANNELS; i++)
        att_free(comm->context, comm->chunks[i]);
    att_free(comm->context, comm->endings);
    att_free(comm->context, comm->failed);
    att_free(comm->context, comm->hosts);
    att_free(comm->context, comm);
}

att_status att_comm_create(att_context *context, const att_transport *transport, void *state, int rank, int size,
                           att_comm **out)
{
    att_comm *comm;
    ATT_TRY(att_new(context, &comm, 1, "the communicator"));
    *comm = (att_comm){.context = context, .transport = transport, .state = state, .rank = rank, .size = size};
    size_t bytes = (size_t)size * ATT_HOST_NAME;
    comm->hosts = att_allocate(context, bytes);
    comm->endings = att_allocate_array(context, (size_t)size + 1, sizeof *comm->endings);
    comm->failed = att_allocate_array(context, (size_t)size + 1, sizeof *comm->failed);
    bool complete = comm->hosts && comm->endings && comm->failed;
    for (int i = 0; i < ATT_COMM_CHANNELS; i++) {
        comm->offsets[i] = att_allocate_array(context, (size_t)size + 1, sizeof *comm->offsets[i]);
        complete = complete && comm->offsets[i];
    }
    att_status status = complete ? gather_hosts(comm) : att_fail_memory(context, bytes, "the communicator");
    if (status != ATT_OK)
        release(comm);
    else
        *out = comm;
    return status;
}

static const char *choice(const void *user, int index)
{
    (void)user;
    static const char *const choices[] = {"auto", "openmpi", "mpich", "none"};
    return choices[index];
}

static att_status choose(att_context *context, const char *mpi, const char **plugin)
{
    enum { CHOICES = 4 };
    int chosen = 0;
    while (mpi && chosen < CHOICES && strcmp(mpi, choice(NULL, chosen)) != 0)
        chosen++;
    if (chosen == CHOICES) {
        const char *nearest = att_text_nearest(mpi, choice, NULL, CHOICES);
        return att_fail(context, ATT_ERR_ARGUMENT, "there is no MPI \"%s\"; choose auto, openmpi, mpich or none%s%s%s",
                        mpi, nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
    }
    int size;
    const att_unconnected *launcher = chosen == 0 ? att_comm_unconnected(&size) : NULL;
    if (launcher)
        return att_fail(
            context, ATT_ERR_UNSUPPORTED,
            "%s started %d processes without MPI, so they would not work together: %s; with --mpi none each "
            "process works on its own",
            launcher->name, size, launcher->advice);
    *plugin = chosen == 0 ? att_comm_launcher() : chosen == CHOICES - 1 ? NULL : choice(NULL, chosen);
    return ATT_OK;
}

/* The number of processes that were started, by the environment before MPI starts, which changes it. */
static int launched_size(void)
{
    int size;
    return att_comm_unconnected(&size) ? size : att_comm_launched().size;
}

/* Under the launcher of another MPI library, every process would work alone. */
static att_status check_size(att_context *context, const char *mpi, int size, int launched)
{
    if (launched == size)
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "the launcher says that it started %d processes, but %s connects %d: start them with the mpirun of "
                    "%s, or choose another MPI library",
                    launched, mpi, size, mpi);
}

static att_status start(att_context *context, const char *mpi, void *plugin, const att_transport *transport,
                        att_comm **comm)
{
    void *state;
    int rank, size, launched = launched_size();
    const char *failure = transport->start(&state, &rank, &size);
    if (failure)
        return att_fail(context, ATT_ERR_INTERNAL, "%s does not start: %s", mpi, failure);
    att_status status = check_size(context, mpi, size, launched);
    if (status == ATT_OK)
        status = att_comm_create(context, transport, state, rank, size, comm);
    if (status != ATT_OK)
        transport->finish(state);
    else
        (*comm)->plugin = plugin;
    return status;
}

att_status att_comm_open(att_context *context, const char *mpi, att_comm **comm)
{
    const char *name;
    void *plugin;
    const att_transport *transport;
    ATT_TRY(choose(context, mpi, &name));
    if (!name)
        return att_comm_create(context, NULL, NULL, 0, 1, comm);
    ATT_TRY(att_comm_load(context, name, &plugin, &transport));
    att_status status = start(context, name, plugin, transport, comm);
    if (status != ATT_OK)
        att_comm_unload(plugin);
    return status;
}

void att_comm_close(att_comm **out)
{
    if (!out || !*out)
        return;
    att_comm *comm = *out;
    if (comm->transport)
        comm->transport->finish(comm->state);
    att_comm_unload(comm->plugin);
    release(comm);
    *out = NULL;
}

/* --- description ------------------------------------------------------------------------------------------------- */

int att_comm_rank(const att_comm *comm)
{
    return comm ? comm->rank : 0;
}

int att_comm_size(const att_comm *comm)
{
    return comm ? comm->size : 1;
}

const char *att_comm_host(const att_comm *comm, int rank)
{
    return comm && rank >= 0 && rank < comm->size ? comm->hosts + (size_t)rank * ATT_HOST_NAME : "";
}

const char *att_comm_library(const att_comm *comm)
{
    return comm && comm->transport ? comm->transport->library(comm->state) : "";
}

static void count_seconds(_Atomic int64_t *time, double seconds)
{
    atomic_fetch_add(time, (int64_t)(1e9 * seconds));
}

void att_comm_count_wait(att_comm *comm, double seconds)
{
    count_seconds(&comm->sum_wait, seconds);
}

att_comm_figures att_comm_describe(const att_comm *comm)
{
    if (!comm)
        return (att_comm_figures){0};
    double sum_wait = 1e-9 * (double)atomic_load(&comm->sum_wait);
    return (att_comm_figures){.bytes_sent = atomic_load(&comm->sent),
                              .bytes_received = atomic_load(&comm->received),
                              .sum_seconds = 1e-9 * (double)atomic_load(&comm->sum_time),
                              .sum_wait_seconds = sum_wait,
                              .wait_seconds = sum_wait + 1e-9 * (double)atomic_load(&comm->main_time)};
}

void att_comm_abort(att_comm *comm, int exit_status)
{
    if (!is_alone(comm))
        comm->transport->abort(comm->state, exit_status);
}

/* --- collective calls -------------------------------------------------------------------------------------------- */

/* Ends a call that began at `begin`. */
static att_status end_call(att_comm *comm, int channel, double begin, const char *failure, const char *action)
{
    if (channel == ATT_COMM_MAIN)
        count_seconds(&comm->main_time, att_seconds_now() - begin);
    return check(comm, failure, action);
}

static void count_bytes(att_comm *comm, size_t sent, size_t received)
{
    atomic_fetch_add(&comm->sent, (int64_t)sent);
    atomic_fetch_add(&comm->received, (int64_t)received);
}

att_status att_comm_broadcast(att_comm *comm, int channel, void *bytes, size_t size, int root)
{
    if (is_alone(comm))
        return ATT_OK;
    double begin = att_seconds_now();
    const char *failure = comm->transport->broadcast(comm->state, channel, bytes, size, root);
    bool sends = comm->rank == root;
    count_bytes(comm, sends ? size * ((size_t)comm->size - 1) : 0, sends ? 0 : size);
    return end_call(comm, channel, begin, failure, "a broadcast");
}

static att_status gather(att_comm *comm, int channel, void *bytes)
{
    double begin = att_seconds_now();
    const size_t *offsets = comm->offsets[channel];
    size_t own = offsets[comm->rank + 1] - offsets[comm->rank];
    const char *failure = comm->transport->gather(comm->state, channel, bytes, offsets);
    count_bytes(comm, own * ((size_t)comm->size - 1), offsets[comm->size] - own);
    return end_call(comm, channel, begin, failure, "gathering rows");
}

att_status att_comm_gather(att_comm *comm, int channel, void *bytes, size_t row_bytes, const int64_t *first)
{
    for (int i = 0; comm && i <= comm->size; i++)
        comm->offsets[channel][i] = (size_t)first[i] * row_bytes;
    return is_alone(comm) ? ATT_OK : gather(comm, channel, bytes);
}

att_status att_comm_collect(att_comm *comm, int channel, void *elements, size_t bytes)
{
    for (int i = 0; comm && i <= comm->size; i++)
        comm->offsets[channel][i] = (size_t)i * bytes;
    return is_alone(comm) ? ATT_OK : gather(comm, channel, elements);
}

/* --- the ordered sum --------------------------------------------------------------------------------------------- */

enum {
    CHUNK = 1 << 18, /* bytes that travel at once */
    AHEAD = 4,       /* chunks whose receive is posted before they are needed */
    CHUNKS = 8       /* in memory: those that are received ahead, and those whose send is not complete */
};

/* Chunks that come from the previous rank, if any, and go to the next one, if any. Chunk c is in place c % CHUNKS. */
typedef struct chunk_stream {
    att_comm *comm;
    int channel;
    size_t bytes;
    bool receives, sends;
    size_t posted;  /* chunks whose receive was posted */
    double awaited; /* seconds in which this process had not computed its share yet */
    att_transfer in[CHUNKS], out[CHUNKS];
} chunk_stream;

static size_t chunk_count(const chunk_stream *stream)
{
    return (stream->bytes + CHUNK - 1) / CHUNK;
}

static size_t chunk_bytes(const chunk_stream *stream, size_t chunk)
{
    size_t left = stream->bytes - chunk * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

static char *chunk_at(const chunk_stream *stream, size_t chunk)
{
    return stream->comm->chunks[stream->channel] + chunk % CHUNKS * CHUNK;
}

static const char *wait_for(const chunk_stream *stream, att_transfer *transfer)
{
    return stream->comm->transport->wait(stream->comm->state, stream->channel, transfer);
}

static const char *post_receives(chunk_stream *stream, size_t end)
{
    const att_comm *comm = stream->comm;
    const char *failure = NULL;
    for (; stream->posted < end && stream->posted < chunk_count(stream) && !failure; stream->posted++) {
        size_t chunk = stream->posted;
        failure = wait_for(stream, &stream->out[chunk % CHUNKS]);
        if (!failure)
            failure = comm->transport->receive(comm->state, stream->channel, chunk_at(stream, chunk),
                                               chunk_bytes(stream, chunk), (comm->rank + comm->size - 1) % comm->size,
                                               &stream->in[chunk % CHUNKS]);
        count_bytes(stream->comm, 0, chunk_bytes(stream, chunk));
    }
    return failure;
}

/* Waits until this process knows its share of a chunk. Receives are posted before. */
static const char *await_share(chunk_stream *stream, const att_comm_sum *sum, size_t chunk)
{
    const char *failure = stream->receives ? post_receives(stream, chunk + AHEAD) : NULL;
    double begin = att_seconds_now();
    if (!failure)
        sum->await(sum->user, chunk * CHUNK, chunk_bytes(stream, chunk));
    stream->awaited += att_seconds_now() - begin;
    return failure;
}

/* Makes the memory of a chunk ready: with what the previous rank sent, or free to be written. */
static const char *begin_chunk(chunk_stream *stream, size_t chunk)
{
    if (!stream->receives)
        return wait_for(stream, &stream->out[chunk % CHUNKS]);
    const char *failure = post_receives(stream, chunk + AHEAD);
    return failure ? failure : wait_for(stream, &stream->in[chunk % CHUNKS]);
}

static const char *end_chunk(chunk_stream *stream, size_t chunk)
{
    att_comm *comm = stream->comm;
    if (!stream->sends)
        return NULL;
    count_bytes(comm, chunk_bytes(stream, chunk), 0);
    return comm->transport->send(comm->state, stream->channel, chunk_at(stream, chunk), chunk_bytes(stream, chunk),
                                 (comm->rank + 1) % comm->size, &stream->out[chunk % CHUNKS]);
}

static const char *end_sends(chunk_stream *stream)
{
    const char *failure = NULL;
    for (size_t i = 0; i < CHUNKS && !failure; i++)
        failure = wait_for(stream, &stream->out[i]);
    return failure;
}

/* Partial sums travel from rank 0 to the last rank; each adds its share. Writes to *awaited the seconds that were spent
 * waiting for this process's own shares. */
static const char *pass_partial(att_comm *comm, int channel, const att_comm_sum *sum, double *awaited)
{
    bool is_first = comm->rank == 0, is_last = comm->rank == comm->size - 1;
    chunk_stream stream = {
        .comm = comm, .channel = channel, .bytes = sum->bytes, .receives = !is_first, .sends = !is_last};
    const char *failure = NULL;
    for (size_t chunk = 0; chunk < chunk_count(&stream) && !failure; chunk++) {
        size_t offset = chunk * CHUNK, bytes = chunk_bytes(&stream, chunk);
        char *buffer = chunk_at(&stream, chunk);
        failure = await_share(&stream, sum, chunk);
        if (!failure)
            failure = begin_chunk(&stream, chunk);
        if (failure)
            break;
        if (is_first)
            sum->load(sum->user, offset, bytes, buffer);
        sum->add(sum->user, offset, bytes, buffer);
        if (is_last)
            sum->store(sum->user, offset, bytes, buffer);
        failure = end_chunk(&stream, chunk);
    }
    *awaited = stream.awaited;
    return failure ? failure : end_sends(&stream);
}

/* Complete sums travel from the last rank through rank 0 to the rank before the last. This begins when the partial sums
 * have left: each link carries both, so an earlier start would gain nothing. */
static const char *pass_complete(att_comm *comm, int channel, const att_comm_sum *sum)
{
    int last = comm->size - 1;
    bool is_last = comm->rank == last;
    chunk_stream stream = {
        .comm = comm, .channel = channel, .bytes = sum->bytes, .receives = !is_last, .sends = comm->rank != last - 1};
    const char *failure = NULL;
    for (size_t chunk = 0; chunk < chunk_count(&stream) && !failure; chunk++) {
        size_t offset = chunk * CHUNK, bytes = chunk_bytes(&stream, chunk);
        char *buffer = chunk_at(&stream, chunk);
        failure = begin_chunk(&stream, chunk);
        if (failure)
            break;
        if (is_last)
            sum->load(sum->user, offset, bytes, buffer);
        else
            sum->store(sum->user, offset, bytes, buffer);
        failure = end_chunk(&stream, chunk);
    }
    return failure ? failure : end_sends(&stream);
}

static att_status reserve_chunks(att_comm *comm, int channel)
{
    size_t bytes = (size_t)CHUNKS * CHUNK;
    if (!comm->chunks[channel])
        comm->chunks[channel] = att_allocate(comm->context, bytes);
    return comm->chunks[channel] ? ATT_OK : att_fail_memory(comm->context, bytes, "sums over processes");
}

att_status att_comm_reduce(att_comm *comm, int channel, const att_comm_sum *sum)
{
    ATT_TRY(reserve_chunks(comm, channel));
    double begin = att_seconds_now(), awaited;
    const char *failure = pass_partial(comm, channel, sum, &awaited);
    if (!failure)
        failure = pass_complete(comm, channel, sum);
    count_seconds(&comm->sum_time, att_seconds_now() - begin - awaited);
    return end_call(comm, channel, begin, failure, "a sum over the processes");
}
