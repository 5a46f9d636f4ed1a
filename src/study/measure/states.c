#include "study/measure/states.h"

#include <string.h>

#include "base/core/threads.h"

enum { CACHE_LINE = 64 };

static char *state_of(const att_states *states, int64_t chunk)
{
    return states->chunks + (size_t)chunk * states->size;
}

att_status att_states_create(att_context *context, const att_instrument_state *functions, const att_observed *shape,
                             att_states *states)
{
    *states = (att_states){.functions = functions, .shape = *shape};
    states->size = (functions->size(shape) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    states->total = att_allocate_array(context, 2, states->size);
    if (!states->total)
        return att_fail_memory(context, 2 * states->size, "an instrument's state");
    states->scratch = states->total + states->size;
    return ATT_OK;
}

void att_states_free(att_context *context, att_states *states)
{
    att_free(context, states->rows);
    att_free(context, states->chunks);
    att_free(context, states->total);
    *states = (att_states){0};
}

/* Grows the array to the states of `chunks` chunks. Keeps the state of the incomplete chunk. */
static att_status grow(att_context *context, att_states *states, int64_t chunks)
{
    if (chunks <= states->capacity)
        return ATT_OK;
    size_t rows = (size_t)chunks * (size_t)(states->shape.count > 0 ? states->shape.count : 1);
    char *grown = att_allocate_array(context, (size_t)chunks, states->size);
    const float **grown_rows = att_allocate_array(context, rows, sizeof *grown_rows);
    if (!grown || !grown_rows) {
        att_free(context, grown);
        att_free(context, grown_rows);
        return att_fail_memory(context, (size_t)chunks * states->size, "an instrument's state");
    }
    if (states->chunks)
        memcpy(grown, states->chunks, states->size);
    att_free(context, states->chunks);
    att_free(context, states->rows);
    states->chunks = grown;
    states->rows = grown_rows;
    states->capacity = chunks;
    return ATT_OK;
}

/* --- observing ---------------------------------------------------------------------------------------------------- */

/* The samples of one call, shared among threads. The first sample has the number `states->seen`. */
typedef struct shared_work {
    att_states *states;
    int count, threads;
    int64_t chunks;
    const int32_t *labels;
    att_sample_fn sample;
    void *user;
} shared_work;

/* Index, within the call, of the first sample after a chunk. */
static int64_t end_of(const shared_work *s, int64_t chunk)
{
    int64_t end = (s->states->seen / ATT_STATE_CHUNK + chunk + 1) * ATT_STATE_CHUNK - s->states->seen;
    return end < s->count ? end : s->count;
}

static void observe_chunk(const shared_work *s, int64_t chunk)
{
    const att_states *states = s->states;
    const float **rows = states->rows + chunk * states->shape.count;
    att_observed observed = states->shape;
    observed.rows = rows;
    for (int64_t i = chunk > 0 ? end_of(s, chunk - 1) : 0; i < end_of(s, chunk); i++) {
        s->sample(s->user, (int)i, rows);
        observed.label = s->labels ? s->labels[i] : -1;
        states->functions->observe(state_of(states, chunk), &observed);
    }
}

static void observe_chunks(void *user, int thread)
{
    const shared_work *s = user;
    for (int64_t chunk = thread; chunk < s->chunks; chunk += s->threads)
        observe_chunk(s, chunk);
}

/* Merges the complete chunks into the total. An incomplete last chunk becomes chunk 0. */
static void close_chunks(att_states *states, int64_t chunks, bool last_is_complete)
{
    int64_t complete = chunks - !last_is_complete;
    for (int64_t chunk = 0; chunk < complete; chunk++)
        states->functions->merge(states->total, state_of(states, chunk), &states->shape);
    if (!last_is_complete)
        memmove(states->chunks, state_of(states, complete), states->size);
    size_t used = last_is_complete ? 0 : states->size;
    memset(states->chunks + used, 0, (size_t)states->capacity * states->size - used);
}

att_status att_states_observe(att_context *context, att_states *states, int count, const int32_t *labels,
                              att_sample_fn sample, void *user)
{
    if (count == 0)
        return ATT_OK;
    int64_t end = states->seen + count, first = states->seen / ATT_STATE_CHUNK;
    int64_t chunks = (end + ATT_STATE_CHUNK - 1) / ATT_STATE_CHUNK - first;
    ATT_TRY(grow(context, states, chunks));
    int threads = att_context_threads(context);
    threads = threads < chunks ? threads : (int)chunks;
    shared_work s = {states, count, threads, chunks, labels, sample, user};
    att_threads_run(context, threads, observe_chunks, &s);
    close_chunks(states, chunks, end % ATT_STATE_CHUNK == 0);
    states->seen = end;
    return ATT_OK;
}

void att_states_report(att_states *states, att_figure *figures)
{
    memcpy(states->scratch, states->total, states->size);
    if (states->chunks)
        states->functions->merge(states->scratch, states->chunks, &states->shape);
    states->functions->report(states->scratch, &states->shape, figures);
}

void att_states_clear(att_states *states)
{
    memset(states->total, 0, states->size);
    if (states->chunks)
        memset(states->chunks, 0, (size_t)states->capacity * states->size);
    states->seen = 0;
}
