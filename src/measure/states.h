/* measure/states.h - an instrument's state over all samples, observed on several threads (attscope/measure.h). */
#ifndef ATT_MEASURE_STATES_H
#define ATT_MEASURE_STATES_H

#include "core/memory.h"
#include "measure/instrument.h"

typedef struct att_states {
    const att_instrument_state *of;
    att_observed shape;
    size_t size;        /* of a state, rounded up so that no two share a cache line */
    char *total;        /* the samples of all whole chunks */
    char *told;         /* what report() reads */
    char *chunks;       /* `room` states; the first is that of the chunk that is not whole yet */
    const float **rows; /* [room][shape.count] */
    int64_t room;
    int64_t seen; /* samples */
} att_states;

/* Writes the rows of a sample of the run; called from several threads. */
typedef void (*att_sample_fn)(void *user, int sample, const float **rows);

/* shape: what ask() asked for; its arrays outlive the states. Freed by att_states_free(), after a failure too. */
att_status att_states_create(att_context *context, const att_instrument_state *of, const att_observed *shape,
                             att_states *states);
void att_states_free(att_context *context, att_states *states);
/* Adds samples 0..count-1 of a run. labels: NULL where there are none. */
att_status att_states_observe(att_context *context, att_states *states, int count, const int32_t *labels,
                              att_sample_fn sample, void *user);
void att_states_report(att_states *states, att_figure *figures);
/* Forgets all samples. */
void att_states_clear(att_states *states);

#endif
