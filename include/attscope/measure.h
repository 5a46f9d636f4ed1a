/* attscope/measure.h - instruments: what attention and residual steps did, as figures.
 *
 * An instrument names nodes of a graph and asks them for something (attscope/graph.h: probes). Most instruments make
 * one number of it for every sample and place, and their figures are mean, standard deviation and count over samples;
 * others keep what they need of all samples and report the figures at the end. Figures do not depend on threads, nor,
 * but for the last bits of the network itself, on the size of batches.
 *
 *     att_measure *measure;
 *     att_measure_create(att_model_graph(model), "entropy,nsi", "*", &measure);   before the plan is compiled
 *     ... att_session_run(session, batch); att_measure_observe(measure, session, batch, labels); ...
 *     for (int i = 0; i < att_measure_count(measure); i++) att_measurement m = att_measure_at(measure, i);
 */
#ifndef ATTSCOPE_MEASURE_H
#define ATTSCOPE_MEASURE_H

#include <attscope/event.h>
#include <attscope/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_json_writer att_json_writer; /* attscope/lab/json.h makes and fills one */

/* How people read a statistic. */
typedef struct att_statistic_info {
    const char *name;  /* as in att_measurement; of an instrument with readings without the reading */
    const char *title; /* in tables and charts: "top-1", "ζ*" */
    const char *unit;  /* NULL: the instrument's */
} att_statistic_info;

/* What an instrument says about itself; every text is one line. Tables, sweeps and pages read this, so that a new
 * instrument needs no change there. */
typedef struct att_instrument_info {
    const char *name, *summary;
    const char *title; /* "Attention entropy": a heading; NULL: the name */
    const char *unit;
    const char *formula; /* of one sample's number */
    const char *source;  /* where the formula is from */
    const char *reading; /* which choices it leaves open were made how */
    const char *options; /* "per=addition or block": behind a colon as in "nsi:per=block", the first where nothing is
                            said; NULL: none */
    bool needs_labels;   /* it compares with the classes of the samples */
    bool scores;         /* a sample is right or wrong: beside a mean stands its standard error, deviation / sqrt(n) */
    bool by_sample;      /* its single samples are worth looking at: att_measure_keep_samples() */
    bool by_block;       /* networks call the same place of a block differently: tables name a node by its block */
    /* Statistics with a title or a unit of their own; the last has no name. NULL: none. */
    const att_statistic_info *statistics;
    /* Every statistic comes once in each reading, as "tns unit", or is called as the reading. NULL-terminated; NULL:
     * there are none. */
    const char *const *readings;
    const char *readings_agree; /* what it means that all readings have the same figures, as "no gates here" */
    const char *brief;          /* the one statistic in the tables of sweeps; NULL: all */
    const char *score;          /* the statistic that says how good a network is: more is better; NULL: none */
    const char *predictor;      /* the statistic whose rank correlation with scores sweeps tell by default, in each
                                   reading; NULL: none */
    const char *excluded;       /* why another instrument leaves marked figures out; NULL: none is marked */
} att_instrument_info;
/* The instruments that a context has: the built-in ones, then those that were registered, in that order. context NULL:
 * the built-in ones. index: 0..count-1. */
ATT_API int att_instrument_count(const att_context *context);
ATT_API att_instrument_info att_instrument_at(const att_context *context, int index);
/* False where there is none of that name. */
ATT_API bool att_instrument_find(const att_context *context, const char *name, att_instrument_info *info);
/* One object with all of that, for records: texts under their names here, where there are any; flags where they are
 * true; "statistics", an array of {statistic, title, unit}; "readings", an array of texts. */
ATT_API void att_instrument_write_json(const att_instrument_info *info, att_json_writer *writer);

/* Whether `name` names the figure: "tns/tns unit" of the whole network, "entropy/blocks.3.attn/mean" of a node, all
 * heads together. */
ATT_API bool att_measurement_is_called(const att_measurement *measurement, const char *name);

/* Whether all instruments and options in `with` (as in att_measure_create()) exist. ERR_NOT_FOUND,
 * ERR_ARGUMENT as there; ERR_MEMORY. */
ATT_API att_status att_instruments_check(att_context *context, const char *with);

/* Instruments at work on one graph. A measure adds up: its figures are over all samples that it observed, in one
 * evaluation or in several, until att_measure_clear(). */
typedef struct att_measure att_measure;

/* Adds to the graph what the instruments named in `with` ("entropy,nsi:per=block"; "all") ask of the nodes whose scope
 * fits `nodes` ('*' and '?' allowed). with NULL means "all", nodes NULL means "*". "all" leaves out those that have
 * nothing to see in this network, and "all,-accuracy", or "-accuracy" alone, that one, too. Results of plans compiled
 * from the graph stay the same to the bit, but where an observed branch of a residual network is one that the plan
 * would have computed together with its addition: there they stay the same to rounding. On success *measure is the
 * caller's, and the graph may be freed before it. Errors: ERR_NOT_FOUND for an unknown instrument (with the nearest
 * name) or option or where an instrument finds no node; ERR_ARGUMENT for a name given twice, and where no instrument is
 * left; ERR_UNSUPPORTED for a graph that is not in f32; ERR_MEMORY. The graph may then have probes already; it still
 * compiles. */
ATT_API ATT_MUST_CHECK att_status att_measure_create(att_graph *graph, const char *with, const char *nodes,
                                                     att_measure **measure);
ATT_API void att_measure_destroy(att_measure **measure);

/* From now on keeps the numbers of each figure's first `count` samples (0: none), for instruments whose info says
 * by_sample: they come with the figures. Forgets all samples seen so far. ERR_ARGUMENT (count), ERR_MEMORY. */
enum { ATT_MEASURE_MOST_SAMPLES = 4096 };
ATT_API ATT_MUST_CHECK att_status att_measure_keep_samples(att_measure *measure, int count);

/* Takes the samples 0..count-1 of the session's last run, which must have observed (att_session_observe()). labels:
 * their classes, NULL where there are none: instruments that need labels then leave these samples out. Errors: what
 * att_session_output() says; ERR_MEMORY. */
ATT_API att_status att_measure_observe(att_measure *measure, att_session *session, int count, const int32_t *labels);
/* Forgets all samples. */
ATT_API void att_measure_clear(att_measure *measure);

/* The figures so far, instruments in the order of the list, then statistics, nodes in the network's order, and heads
 * with that of all together last. A figure without samples has mean and deviation NaN. Texts live as long as `measure`.
 */
ATT_API int att_measure_count(const att_measure *measure);
ATT_API att_measurement att_measure_at(const att_measure *measure, int index);
/* All of them at once; lives until the next call for this `measure`. */
ATT_API const att_measurement *att_measure_all(att_measure *measure);
/* Those of them that have samples, for an event; *count: how many. Lives as long. */
ATT_API const att_measurement *att_measure_observed(att_measure *measure, int *count);
/* Instruments at work, and what they say about themselves. */
ATT_API int att_measure_instrument_count(const att_measure *measure);
ATT_API att_instrument_info att_measure_instrument_at(const att_measure *measure, int index);

/* --- an instrument of one's own ----------------------------------------------------------------------------------
 *
 * An instrument is one descriptor. When a measure is made, ask() looks for places in the graph, asks for the values
 * that it wants to see there (rows), and declares its figures (series). Samples come later. It has one of two forms:
 *
 *   observe()  makes one number of each sample for each series. The library reports mean, deviation and count over the
 *              samples.
 *   state      keeps what it needs of all samples and reports the figures itself. This form is for figures that are no
 *              mean of one number a sample: counts, quantiles over samples, correlations.
 *
 * A program registers its own:
 *
 *     static const att_instrument mine = {.info = {.name = "mine", ...}, .ask = ask, .observe = observe};
 *     att_instrument_register(context, &mine);
 *     att_measure_create(graph, "mine,entropy", "*", &measure);
 *
 * From then on it is as good as a built-in one in every call for this context, and for no other context: by its name,
 * with "all", in trainings, records, sweeps and reports. examples/instrument.c is a whole program;
 * docs/dev/adding-an-instrument.md has an example of each form. */

/* One sample's rows, in the order in which ask() asked for them. */
typedef struct att_observed {
    const float *const *rows; /* rows[r] is row r. NULL in a `shape` (att_instrument_state), which has no sample */
    const int64_t *lengths;   /* lengths[r]: elements of row r; the same for every sample */
    int count;                /* rows */
    const double *constants;  /* constants[r]: the number that ask() gave with row r */
    int choice;               /* index of the chosen value of the instrument's option */
    int32_t label;            /* the sample's class; -1: none */
} att_observed;

/* One thing that a user may choose: "nsi:per=block". */
enum { ATT_INSTRUMENT_VALUES = 7 };
typedef struct att_instrument_option {
    const char *name;                              /* NULL: there is nothing to choose */
    const char *values[ATT_INSTRUMENT_VALUES + 1]; /* the first where nothing is said; NULL after the last. Texts
                                                      without ":,=" and blanks */
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
    /* Adds one sample. Called from several threads, each with a state of its own. */
    void (*observe)(void *state, const att_observed *observed);
    /* Adds the samples of `later`, which come after those of `state`; either may have none. */
    void (*merge)(void *state, const void *later, const att_observed *shape);
    /* figures[i]: of the i-th series declared. */
    void (*report)(const void *state, const att_observed *shape, att_figure *figures);
} att_instrument_state;

typedef struct att_asking att_asking;

typedef struct att_instrument {
    /* name: 1 to 23 letters, digits and underscores, the first a letter, not "all". Also needed are summary, unit and
     * formula, and `options` where there is an option; others may be NULL. */
    att_instrument_info info;
    att_instrument_option option;
    /* Declares the instrument's rows and figures by calling the att_asking_...() functions below. The library may call
     * it twice for one measure. Probes that it adds stay in the graph; it must not change the graph otherwise. If the
     * network has nothing that the instrument can observe, it returns the result of att_asking_found_nothing() or
     * att_asking_fail(). It reports other failures with att_fail(). */
    att_status (*ask)(att_asking *asking);
    /* values[i]: the sample's number for the i-th series declared; NaN where it has none. Called for one sample after
     * the other on the caller's thread. It must neither fail nor allocate memory. NULL for instruments that keep
     * state. */
    void (*observe)(const att_observed *observed, double *values);
    att_instrument_state state;
} att_instrument;

/* Registers an instrument with the context. The descriptor is not copied: it, and all that it points to, must outlive
 * the context. Not while another call for this context runs. Errors, the context is then as before: ERR_ARGUMENT, in
 * one sentence, for a name that there is already (a second registration, too) or that cannot be one, and for a member
 * that is missing or cannot be; ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_instrument_register(att_context *context, const att_instrument *instrument);

/* What ask() may call. Failures to keep what was asked (ERR_MEMORY; ERR_ARGUMENT for a row of a name that the graph
 * does not output) are remembered: ask() need not look at them. */

/* Index of the value chosen of the instrument's option. */
ATT_API int att_asking_choice(const att_asking *asking);
ATT_API att_graph *att_asking_graph(const att_asking *asking);
/* The index of the next node (att_graph_node_at()) of the operation `op` after `after` whose scope fits what the user
 * named; -1: none. Begin with -1. */
ATT_API int att_asking_node(const att_asking *asking, const char *op, int after);
/* Wants the rows of the output or probe `name`, a tensor of each sample in F32; `constant` comes back in observe(). */
ATT_API void att_asking_row(att_asking *asking, const char *name, double constant);
/* Makes `value` a probe called `name`, unless a probe of that name exists, and asks for its rows as att_asking_row()
 * does. Each sample's row is copied to host memory, so reduce large values with operations of the graph first. All
 * instruments share the names of probes: a name must always stand for the same value. */
ATT_API void att_asking_value(att_asking *asking, const char *name, att_value value, double constant);
/* One more series. node: where in the network, "" for the whole; copied. head: -1: of all heads together, or of
 * something without heads. statistic: its name; it lives as long as the descriptor. */
ATT_API void att_asking_series(att_asking *asking, const char *node, int head, const char *statistic);
/* Marks the series declared last: another instrument leaves it out, for the reason in info.excluded. */
ATT_API void att_asking_exclude(att_asking *asking);
/* ERR_NOT_FOUND: "no <what> fits <pattern>". */
ATT_API att_status att_asking_found_nothing(const att_asking *asking, const char *what);
/* ERR_NOT_FOUND for an instrument that fits no node of this network: "... has nothing to see: <reason>". */
ATT_API att_status att_asking_fail(const att_asking *asking, const char *format, ...) ATT_PRINTF(2, 3);

/* A residual addition x + branch of sample values, in the network's order; StepNet's guesses are no steps. */
typedef struct att_residual_step {
    int node;                /* the last one that it consists of */
    att_value before, after; /* after: behind a ReLU where one follows the sum */
    att_value branch;        /* before gates (LayerScale, drop path, attention); ATT_NONE where nothing but rounding
                              * tells it from after - before, and for blocks */
    char scope[192];         /* its name */
    bool begins;             /* the first of a stage: of the network, or where shapes change */
} att_residual_step;
/* The next one after node `after`, -1 for the first; false past the last. Of all, whatever the user named. */
ATT_API bool att_residual_step_next(const att_graph *graph, int after, att_residual_step *step);
/* Additions that follow each other under one name ("blocks.3.add1", "blocks.3.add2") as one step, "blocks.3". */
ATT_API bool att_residual_block_next(const att_graph *graph, int after, att_residual_step *block);

#ifdef __cplusplus
}
#endif
#endif
