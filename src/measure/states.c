#include "measure/states.h"

#include <string.h>

#include "core/threads.h"

enum { CACHE_LINE = 64 };

static char *state_of(const att_states *states, int64_t chunk)
{
    return states->chunks + (size_t)chunk * states->size;
}

att_status att_states_create(att_context *context, const att_instrument_state *of, const att_observed *shape,
                             att_states *states)
{
    *states = (att_states){.of = of, .shape = *shape};
    states->size = (of->size(shape) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    states->total = att_allocate_array(context, 2, states->size);
    if (!states->total)
        return att_fail_memory(context, 2 * states->size, "an instrument's state");
    states->told = states->total + states->size;
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
static att_status reserve(att_context *context, att_states *states, int64_t chunks)
{
    if (chunks <= states->room)
        return ATT_OK;
    size_t rows = (size_t)chunks * (size_t)(states->shape.count > 0 ? states->shape.count : 1);
    char *more = att_allocate_array(context, (size_t)chunks, states->size);
    const float **more_rows = att_allocate_array(context, rows, sizeof *more_rows);
    if (!more || !more_rows) {
        att_free(context, more);
        att_free(context, more_rows);
        return att_fail_memory(context, (size_t)chunks * states->size, "an instrument's state");
    }
    if (states->chunks)
        memcpy(more, states->chunks, states->size);
    att_free(context, states->chunks);
    att_free(context, states->rows);
    states->chunks = more;
    states->rows = more_rows;
    states->room = chunks;
    return ATT_OK;
}

/* --- observing ---------------------------------------------------------------------------------------------------- */

/* The samples of one call, shared among threads. The first sample has the number `states->seen`. */
typedef struct sharing {
    att_states *states;
    int count, threads;
    int64_t chunks;
    const int32_t *labels;
    att_sample_fn sample;
    void *user;
} sharing;

/* Index, within the call, of the first sample after a chunk. */
static int64_t end_of(const sharing *s, int64_t chunk)
{
    int64_t end = (s->states->seen / ATT_STATE_CHUNK + chunk + 1) * ATT_STATE_CHUNK - s->states->seen;
    return end < s->count ? end : s->count;
}

static void observe_chunk(const sharing *s, int64_t chunk)
{
    const att_states *states = s->states;
    const float **rows = states->rows + chunk * states->shape.count;
    att_observed observed = states->shape;
    observed.rows = rows;
    for (int64_t i = chunk > 0 ? end_of(s, chunk - 1) : 0; i < end_of(s, chunk); i++) {
        s->sample(s->user, (int)i, rows);
        observed.label = s->labels ? s->labels[i] : -1;
        states->of->observe(state_of(states, chunk), &observed);
    }
}

static void observe_share(void *user, int thread)
{
    const sharing *s = user;
    for (int64_t chunk = thread; chunk < s->chunks; chunk += s->threads)
        observe_chunk(s, chunk);
}

/* Merges the complete chunks into the total. An incomplete last chunk becomes chunk 0. */
static void close_chunks(att_states *states, int64_t chunks, bool last_is_whole)
{
    int64_t whole = chunks - !last_is_whole;
    for (int64_t chunk = 0; chunk < whole; chunk++)
        states->of->merge(states->total, state_of(states, chunk), &states->shape);
    if (!last_is_whole)
        memmove(states->chunks, state_of(states, whole), states->size);
    size_t kept = last_is_whole ? 0 : states->size;
    memset(states->chunks + kept, 0, (size_t)states->room * states->size - kept);
}

att_status att_states_observe(att_context *context, att_states *states, int count, const int32_t *labels,
                              att_sample_fn sample, void *user)
{
    if (count == 0)
        return ATT_OK;
    int64_t end = states->seen + count, first = states->seen / ATT_STATE_CHUNK;
    int64_t chunks = (end + ATT_STATE_CHUNK - 1) / ATT_STATE_CHUNK - first;
    ATT_TRY(reserve(context, states, chunks));
    int threads = att_context_threads(context);
    threads = threads < chunks ? threads : (int)chunks;
    sharing s = {states, count, threads, chunks, labels, sample, user};
    att_threads_run(context, threads, observe_share, &s);
    close_chunks(states, chunks, end % ATT_STATE_CHUNK == 0);
    states->seen = end;
    return ATT_OK;
}

void att_states_report(att_states *states, att_figure *figures)
{
    memcpy(states->told, states->total, states->size);
    if (states->chunks)
        states->of->merge(states->told, states->chunks, &states->shape);
    states->of->report(states->told, &states->shape, figures);
}

void att_states_clear(att_states *states)
{
    memset(states->total, 0, states->size);
    if (states->chunks)
        memset(states->chunks, 0, (size_t)states->room * states->size);
    states->seen = 0;
}
