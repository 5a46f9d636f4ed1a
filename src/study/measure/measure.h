/* measure/measure.h - the state of a measure, shared by its creation and use (measure.c) and by the requests of
 * instruments (requests.c). */
#ifndef ATT_MEASURE_MEASURE_H
#define ATT_MEASURE_MEASURE_H

#include <attscope/measure.h>
#include <attscope/progress.h>

#include "base/core/memory.h"
#include "engine/graph/graph.h"
#include "study/measure/moments.h"
#include "study/measure/states.h"

/* The figures of one statistic of one node. */
typedef struct att_series {
    const char *node, *statistic;
    int head;
    att_tally values; /* of the samples */
    double *samples;  /* values of the first `max_samples` samples; NULL if they are not recorded */
    bool excluded;
    double bound, uniform; /* 0: not known */
} att_series;

typedef struct att_requested_row {
    const char *output; /* NULL: computed by the instrument's study */
    int64_t elements;
    double constant;
} att_requested_row;

/* An instrument in use. Its rows and series are ranges of the measure's lists. */
typedef struct att_active_instrument {
    const att_instrument *instrument;
    bool named; /* by its own name, without a '?' */
    double options[ATT_INSTRUMENT_OPTIONS];
    int first_row, row_count, first_series, series_count;
    att_states states; /* if the instrument keeps state */
    void *study;       /* what its study keeps between runs; NULL: nothing */
} att_active_instrument;

struct att_measure {
    att_context *context;
    bool wide;       /* the graph is in F64 */
    att_arena arena; /* owns names and buffers */
    ATT_LIST(att_active_instrument) active;
    ATT_LIST(att_requested_row) rows;
    ATT_LIST(att_series) series;
    float **blocks; /* per row: the values of all samples of one observation */
    int64_t *block_sizes;
    double *values; /* scratch: an instrument's values for one sample */
    const float **sample_rows;
    int64_t *lengths;
    double *constants;
    att_figure *figures; /* per series: figures reported by instruments that keep state */
    att_measurement *all;
    int max_samples;  /* how many samples of a series are recorded, for instruments with by_sample */
    att_graph *graph; /* a copy, for studies; NULL: there are none */
    const char *nodes;
    int64_t seen; /* samples observed since the figures were cleared */
    int64_t previewed;
    att_progress_fn progress;
    void *progress_user;
};

struct att_requests {
    att_measure *measure;
    att_graph *graph;
    const att_instrument *instrument; /* the instrument whose function `request` is running */
    const char *nodes;
    const double *options;
    att_status status; /* first failure of an att_requests_...() call */
};

/* Adds an instrument with the rows and series that its function `request` asks for. Errors: ERR_ARGUMENT (it is in use
 * already), ERR_NOT_FOUND (nothing to observe), ERR_MEMORY; those of the instrument. */
att_status att_requests_add(att_requests *requests, const att_instrument *instrument);
/* As att_requests_add(), but skips an instrument that finds nothing to observe in the whole network, whichever nodes
 * are selected. */
att_status att_requests_add_if_applicable(att_requests *requests, const att_instrument *instrument);

/* Adds the samples of `other`, which has the same instruments for the same network with inputs of another length.
 * Bounds and figures of uniform attention become means over the samples. Errors: ERR_UNSUPPORTED for an instrument that
 * keeps state between samples. */
att_status att_measure_merge(att_measure *measure, const att_measure *other);

/* Returns all figures; valid until the next call for this `measure`. */
const att_measurement *att_measure_all(att_measure *measure);

#endif
