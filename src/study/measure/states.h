/* measure/states.h - accumulates an instrument's state over samples on several threads (attscope/measure.h). The result
 * does not depend on the number of threads. */
#ifndef ATT_MEASURE_STATES_H
#define ATT_MEASURE_STATES_H

#include "base/core/memory.h"
#include "study/measure/instrument.h"

typedef struct att_states {
    const att_instrument_state *functions;
    att_observed shape;
    size_t size;        /* bytes of a state, rounded up so that no two states share a cache line */
    char *total;        /* state of the samples of all complete chunks */
    char *scratch;      /* for att_states_report(): total merged with the incomplete chunk */
    char *chunks;       /* `capacity` states; the first is that of the incomplete chunk */
    const float **rows; /* [capacity][shape.count] */
    int64_t capacity;
    int64_t seen; /* samples observed so far */
} att_states;

/* Sets rows[] to the rows of sample `sample` of the call. Called from several threads. */
typedef void (*att_sample_fn)(void *user, int sample, const float **rows);

/* shape: the instrument's rows; its arrays must outlive the states. The caller calls att_states_free(), also after a
 * failure. */
att_status att_states_create(att_context *context, const att_instrument_state *functions, const att_observed *shape,
                             att_states *states);
void att_states_free(att_context *context, att_states *states);
/* Observes samples 0..count-1 of this call. labels: NULL if there are none. */
att_status att_states_observe(att_context *context, att_states *states, int count, const int32_t *labels,
                              att_sample_fn sample, void *user);
void att_states_report(att_states *states, att_figure *figures);
/* Resets the states to no samples. */
void att_states_clear(att_states *states);

#endif
