#include <pthread.h>
#include <string.h>

#include "base/comm/comm.h"
#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/threads.h"
#include "engine/session/session.h"

/* Gradients of a segment travel between the processes while the segment's last groups, and then the next segment, run.
 * The sums of a segment form one stream of bytes, in the order in which the backward pass completes them. */

enum { TURNS = 2 }; /* segments whose spare lanes are in memory at once (att_segment.turn) */

struct att_exchange {
    att_session *session;
    pthread_t thread;
    bool started, stop;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t begun, complete;           /* segments */
    const att_segment *segments[TURNS]; /* by turn: segment number n, from 0, is in place n % TURNS */
    int *completed[TURNS];              /* of each team */
    att_status status;
};

/* A walk over the stream of a segment's sums. */
typedef struct sum_stream {
    att_exchange *exchange;
    const att_segment *segment;
    int place;
    int sum;      /* that holds `offset` */
    size_t begin; /* of that sum in the stream */
} sum_stream;

typedef struct sum_range {
    const att_lane_sum *sum;
    size_t offset, bytes; /* within the sum */
} sum_range;

/* --- ranges of the stream ---------------------------------------------------------------------------------------- */

/* The sum that holds byte `offset` of the stream, and its bytes from there on, at most `bytes`. */
static sum_range find_range(sum_stream *stream, size_t offset, size_t bytes)
{
    const att_lane_sum *sums = stream->segment->sums;
    if (offset < stream->begin) {
        stream->sum = 0;
        stream->begin = 0;
    }
    while (offset >= stream->begin + sums[stream->sum].bytes)
        stream->begin += sums[stream->sum++].bytes;
    sum_range range = {.sum = &sums[stream->sum], .offset = offset - stream->begin};
    size_t left = range.sum->bytes - range.offset;
    range.bytes = left < bytes ? left : bytes;
    return range;
}

static char *gradient_at(const sum_stream *stream, const sum_range *range)
{
    return stream->exchange->session->sums[range->sum->index] + range->offset;
}

/* Waits until every team has completed sum number `sum` of the segment. */
static void wait_for_lanes(const sum_stream *stream, int sum)
{
    att_exchange *exchange = stream->exchange;
    const int *completed = exchange->completed[stream->place];
    pthread_mutex_lock(&exchange->lock);
    const int teams = att_segment_teams(exchange->session->plan, stream->segment);
    for (int team = 0; team < teams; team++)
        while (completed[team] <= sum)
            pthread_cond_wait(&exchange->changed, &exchange->lock);
    pthread_mutex_unlock(&exchange->lock);
}

static void await(void *user, size_t offset, size_t bytes)
{
    sum_stream *stream = user;
    for (size_t done = 0; done < bytes;) {
        sum_range range = find_range(stream, offset + done, bytes - done);
        wait_for_lanes(stream, stream->sum);
        done += range.bytes;
    }
}

/* On rank 0, lane 0 adds to the gradient itself. */
static void load(void *user, size_t offset, size_t bytes, char *buffer)
{
    sum_stream *stream = user;
    for (size_t done = 0; done < bytes;) {
        sum_range range = find_range(stream, offset + done, bytes - done);
        memcpy(buffer + done, gradient_at(stream, &range), range.bytes);
        done += range.bytes;
    }
}

static void store(void *user, size_t offset, size_t bytes, const char *buffer)
{
    sum_stream *stream = user;
    for (size_t done = 0; done < bytes;) {
        sum_range range = find_range(stream, offset + done, bytes - done);
        memcpy(gradient_at(stream, &range), buffer + done, range.bytes);
        done += range.bytes;
    }
}

static void add_f32(float *restrict sum, const float *restrict lane, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += lane[i];
}

static void add_f64(double *restrict sum, const double *restrict lane, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += lane[i];
}

static void add_lane(const att_session *session, char *sum, const char *lane, size_t bytes)
{
    if (session->plan->dtype == ATT_F64)
        add_f64((double *)sum, (const double *)lane, bytes / sizeof(double));
    else
        add_f32((float *)sum, (const float *)lane, bytes / sizeof(float));
}

static void add_range(const att_session *session, const sum_range *range, char *buffer)
{
    size_t first = range->sum->spare + range->offset;
    for (int lane = 0; lane < att_spare_lanes(session->plan); lane++)
        add_lane(session, buffer, session->spare + first + (size_t)lane * range->sum->bytes, range->bytes);
}

/* Adds this process's lanes in order. Lane 0 of rank 0 is in the gradient itself, which load() has copied. */
static void add(void *user, size_t offset, size_t bytes, char *buffer)
{
    sum_stream *stream = user;
    for (size_t done = 0; done < bytes;) {
        sum_range range = find_range(stream, offset + done, bytes - done);
        add_range(stream->exchange->session, &range, buffer + done);
        done += range.bytes;
    }
}

/* --- the thread -------------------------------------------------------------------------------------------------- */

static size_t stream_bytes(const att_segment *segment)
{
    size_t bytes = 0;
    for (int i = 0; i < segment->sum_count; i++)
        bytes += segment->sums[i].bytes;
    return bytes;
}

static att_status exchange_segment(att_exchange *exchange, uint64_t number)
{
    int place = (int)(number % TURNS);
    sum_stream stream = {.exchange = exchange, .segment = exchange->segments[place], .place = place};
    att_comm_sum sum = {.bytes = stream_bytes(stream.segment),
                        .user = &stream,
                        .await = await,
                        .load = load,
                        .add = add,
                        .store = store};
    return att_comm_reduce(exchange->session->plan->comm, ATT_COMM_BACKGROUND, &sum);
}

static void *run_thread(void *user)
{
    att_exchange *exchange = user;
    pthread_mutex_lock(&exchange->lock);
    for (;;) {
        while (!exchange->stop && exchange->complete == exchange->begun)
            pthread_cond_wait(&exchange->changed, &exchange->lock);
        if (exchange->stop)
            break;
        bool failed = exchange->status != ATT_OK;
        uint64_t number = exchange->complete;
        pthread_mutex_unlock(&exchange->lock);
        att_status status = failed ? ATT_OK : exchange_segment(exchange, number);
        pthread_mutex_lock(&exchange->lock);
        if (status != ATT_OK)
            exchange->status = status;
        exchange->complete++;
        pthread_cond_broadcast(&exchange->changed);
    }
    pthread_mutex_unlock(&exchange->lock);
    return NULL;
}

/* --- what the session calls -------------------------------------------------------------------------------------- */

/* Blocks until `complete` segments are exchanged. */
static void wait_until(att_exchange *exchange, uint64_t complete)
{
    if (exchange->complete >= complete)
        return;
    double begin = att_seconds_now();
    while (exchange->complete < complete)
        pthread_cond_wait(&exchange->changed, &exchange->lock);
    att_comm_count_wait(exchange->session->plan->comm, att_seconds_now() - begin);
}

void att_exchange_begin(att_exchange *exchange, const att_segment *segment)
{
    pthread_mutex_lock(&exchange->lock);
    uint64_t number = exchange->begun;
    if (segment->repeats)
        wait_until(exchange, number);
    else if (number >= TURNS)
        wait_until(exchange, number - TURNS + 1);
    int place = (int)(number % TURNS);
    exchange->segments[place] = segment;
    memset(exchange->completed[place], 0, (size_t)exchange->session->plan->teams * sizeof(int));
    exchange->begun++;
    pthread_cond_broadcast(&exchange->changed);
    pthread_mutex_unlock(&exchange->lock);
}

void att_exchange_progress(att_exchange *exchange, const att_segment *segment, int team, int completed)
{
    pthread_mutex_lock(&exchange->lock);
    int place = (int)((exchange->begun - 1) % TURNS);
    if (exchange->segments[place] != segment) /* another thread has begun the next one */
        place = (place + 1) % TURNS;
    exchange->completed[place][team] = completed;
    pthread_cond_broadcast(&exchange->changed);
    pthread_mutex_unlock(&exchange->lock);
}

void att_exchange_wait(att_exchange *exchange)
{
    pthread_mutex_lock(&exchange->lock);
    wait_until(exchange, exchange->begun);
    pthread_mutex_unlock(&exchange->lock);
}

att_status att_exchange_finish(att_exchange *exchange)
{
    att_exchange_wait(exchange);
    att_status status = exchange->status;
    exchange->status = ATT_OK;
    return status;
}

static att_status start(att_exchange *exchange)
{
    int teams = exchange->session->plan->teams;
    att_context *context = exchange->session->context;
    for (int i = 0; i < TURNS; i++) {
        exchange->completed[i] = att_allocate_array(context, (size_t)teams, sizeof(int));
        if (!exchange->completed[i])
            return att_fail_memory(context, (size_t)teams * sizeof(int), "the exchange of gradients");
    }
    ATT_TRY(att_thread_start(context, &exchange->thread, run_thread, exchange, "the thread that exchanges gradients"));
    exchange->started = true;
    return ATT_OK;
}

att_status att_exchange_create(att_session *session, att_exchange **out)
{
    att_exchange *exchange;
    ATT_TRY(att_new(session->context, &exchange, 1, "the exchange of gradients"));
    exchange->session = session;
    pthread_mutex_init(&exchange->lock, NULL);
    pthread_cond_init(&exchange->changed, NULL);
    att_status status = start(exchange);
    if (status != ATT_OK)
        att_exchange_destroy(&exchange);
    else
        *out = exchange;
    return status;
}

void att_exchange_destroy(att_exchange **out)
{
    att_exchange *exchange = *out;
    if (!exchange)
        return;
    pthread_mutex_lock(&exchange->lock);
    exchange->stop = true;
    pthread_cond_broadcast(&exchange->changed);
    pthread_mutex_unlock(&exchange->lock);
    if (exchange->started)
        pthread_join(exchange->thread, NULL);
    for (int i = 0; i < TURNS; i++)
        att_free(exchange->session->context, exchange->completed[i]);
    pthread_cond_destroy(&exchange->changed);
    pthread_mutex_destroy(&exchange->lock);
    att_free(exchange->session->context, exchange);
    *out = NULL;
}
