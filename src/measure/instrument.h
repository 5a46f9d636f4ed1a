/* measure/instrument.h - what an instrument is to those who write one.
 *
 * One file here that ends in one `const att_instrument`, plus its line in list.h. ask() walks the graph, says which
 * probes it wants and declares its series, one for each figure. An instrument has one of two forms:
 *
 * - observe() makes one number of each sample for each series. The figures are mean, deviation and count over samples.
 * - `state`: the instrument keeps what it needs of all samples and reports the figures itself. This form is for figures
 *   that are no mean of one number a sample: counts, quantiles over samples, correlations.
 *
 * CONTRIBUTING.md has an example of each.
 */
#ifndef ATT_MEASURE_INSTRUMENT_H
#define ATT_MEASURE_INSTRUMENT_H

#include <attscope/measure.h>

#include "core/error.h"
#include "graph/graph.h"

/* One sample's rows, in the order in which the instrument asked for them. */
typedef struct att_observed {
    const float *const *rows; /* NULL in a `shape`, which describes every sample */
    const int64_t *lengths;   /* elements of each */
    int count;
    const double *constants; /* what ask() attached to each */
    int choice;              /* of the instrument's option */
    int32_t label;           /* -1: none */
} att_observed;

typedef struct att_asking att_asking;

/* One thing that a user may choose: "nsi:per=block". */
typedef struct att_instrument_option {
    const char *name;      /* NULL: there is nothing to choose */
    const char *values[3]; /* the first where nothing is said; NULL after the last */
} att_instrument_option;

/* A figure as an instrument that keeps state reports it. */
typedef struct att_figure {
    double mean, deviation; /* NaN where there is none */
    int64_t count;          /* samples that the figure is of */
    int64_t undefined;      /* of these, samples without a finite number */
} att_figure;

/* How an instrument keeps state. A state is `size` bytes without pointers to itself, copied by memcpy(); without
 * samples it is all zeros. Samples come in the data set's order. They are observed in chunks of ATT_STATE_CHUNK, each
 * chunk in a state of its own, several chunks at once on as many threads; then the chunks are merged in order. The
 * bounds of the chunks follow from the number of a sample alone, so that figures depend neither on threads nor on
 * batches. No function here may fail or allocate memory. `shape` has everything of an att_observed but rows and label.
 */
enum { ATT_STATE_CHUNK = 64 };
typedef struct att_instrument_state {
    /* NULL: the instrument keeps no state. */
    size_t (*size)(const att_observed *shape);
    /* Adds one sample. */
    void (*observe)(void *state, const att_observed *observed);
    /* Adds the samples of `later`, which come after those of `state`; either may have none. */
    void (*merge)(void *state, const void *later, const att_observed *shape);
    /* figures[i]: of the i-th series declared. */
    void (*report)(const void *state, const att_observed *shape, att_figure *figures);
} att_instrument_state;

typedef struct att_instrument {
    att_instrument_info info;
    att_instrument_option option;
    /* Reports its failure with att_fail(). */
    att_status (*ask)(att_asking *asking);
    /* values[i]: the sample's number for the i-th series declared. NULL for instruments that keep state. */
    void (*observe)(const att_observed *observed, double *values);
    att_instrument_state state;
} att_instrument;

/* Index of the value chosen of the instrument's option. */
int att_asking_choice(const att_asking *asking);
att_graph *att_asking_graph(const att_asking *asking);
/* The index of the next node of `op` after `after` whose scope fits what the user named; -1: none. Begin with -1. */
int att_asking_node(const att_asking *asking, const char *op, int after);
/* Wants the rows of the output or probe `name`; `constant` comes back in observe(). */
void att_asking_row(att_asking *asking, const char *name, double constant);
/* Makes a value a probe, once, and wants its rows. */
void att_asking_value(att_asking *asking, const char *name, att_value value, double constant);
/* One more series. `node` is copied; `statistic` is a literal. */
void att_asking_series(att_asking *asking, const char *node, int head, const char *statistic);
/* Marks the series declared last: another instrument leaves it out, for the reason in info.excluded. */
void att_asking_exclude(att_asking *asking);
/* ERR_NOT_FOUND: "no <what> fits <pattern>". */
att_status att_asking_found_nothing(const att_asking *asking, const char *what);
/* ERR_NOT_FOUND for an instrument that fits no node of this network: "... has nothing to see: <reason>". */
att_status att_asking_fail(const att_asking *asking, const char *format, ...) ATT_PRINTF(2, 3);

/* summaries.c: for instruments that read columns of attention summaries. `columns` are statistics in the order in which
 * they were declared. side: whether the constant is 1 / the grid's longer side (only nodes with a grid), or 1. */
typedef struct att_summary_column {
    int column;
    const char *statistic;
} att_summary_column;
att_status att_summaries_ask(att_asking *asking, const att_summary_column *columns, int count, bool side);
void att_summaries_observe(const att_observed *observed, const att_summary_column *columns, int count, double *values);

/* steps.c: residual additions x + branch of sample values, in the network's order, StepNet's guesses aside. */
typedef struct att_residual_step {
    int node;                /* the last one that it consists of */
    att_value before, after; /* after: behind a ReLU where one follows the sum */
    att_value branch;        /* before gates (LayerScale, drop path, attention); ATT_NONE where nothing but rounding
                              * tells it from after - before, and for blocks */
    char scope[192];         /* its name */
    bool begins;             /* the first of a stage: of the network, or where shapes change */
} att_residual_step;
/* The next one after node `after`; false past the last. Of all, whatever the user named. */
bool att_residual_step_next(const att_graph *graph, int after, att_residual_step *step);
/* Additions that follow each other under one name ("blocks.3.add1", "blocks.3.add2") as one step, "blocks.3". */
bool att_residual_block_next(const att_graph *graph, int after, att_residual_step *block);
/* Makes the step's norms a probe, once, and wants its rows; their constant is 0 where the step begins a stage, else 1.
 */
void att_asking_step_norms(att_asking *asking, const att_residual_step *step);
/* What dt is in NSI, and so in TNS. Without a gate on any branch both readings are the same. */
extern const char *const att_nsi_readings[];
#define ATT_NSI_READINGS_AGREE "no gates here"
/* Of a row of step norms: |branch| / |before|, |after - before| / |before|. */
double att_nsi_attention(const float *row);
double att_nsi_unit(const float *row);

#endif
