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
ATT_API int att_instrument_count(void);
ATT_API att_instrument_info att_instrument_at(int index);
/* False where there is none of that name. */
ATT_API bool att_instrument_find(const char *name, att_instrument_info *info);
/* One object with all of that, for records: texts under their names here, where there are any; flags where they are
 * true; "statistics", an array of {statistic, title, unit}; "readings", an array of texts. */
ATT_API void att_instrument_write_json(const att_instrument_info *info, att_json_writer *writer);

/* Whether `name` names the figure: "tns/tns unit" of the whole network, "entropy/blocks.3.attn/mean" of a node, all
 * heads together. */
ATT_API bool att_measurement_is_called(const att_measurement *measurement, const char *name);

/* Whether `with`, as att_measure_create() takes it, names instruments and options that there are. ERR_NOT_FOUND,
 * ERR_ARGUMENT as there; ERR_MEMORY. */
ATT_API att_status att_instruments_check(att_context *context, const char *with);

/* Instruments at work on one graph. */
typedef struct att_measure att_measure;

/* Adds to the graph what the instruments named in `with` ("entropy,nsi:per=block"; "all") ask of the nodes whose scope
 * fits `nodes` ('*' and '?' allowed); "all" leaves out those that have nothing to see in this network, and
 * "all,-accuracy", or "-accuracy" alone, that one, too. Results of plans compiled from the graph stay the same to the
 * bit, but where a watched branch of a residual network is one that the plan would have computed together with its
 * addition: there they stay the same to rounding. On success *measure is the caller's, and the graph may be freed
 * before it. Errors: ERR_NOT_FOUND for an unknown instrument (with the nearest name) or option or where an instrument
 * finds no node; ERR_ARGUMENT for a name given twice, and where no instrument is left; ERR_UNSUPPORTED for a graph that
 * is not in f32; ERR_MEMORY. The graph may then have probes already; it still compiles. */
ATT_API ATT_MUST_CHECK att_status att_measure_create(att_graph *graph, const char *with, const char *nodes,
                                                     att_measure **measure);
ATT_API void att_measure_destroy(att_measure **measure);

/* From now on keeps the numbers of each figure's first `count` samples (0: none), for instruments whose info says
 * by_sample: they come with the figures. Forgets all samples seen so far. ERR_ARGUMENT (count), ERR_MEMORY. */
enum { ATT_MEASURE_MOST_SAMPLES = 4096 };
ATT_API ATT_MUST_CHECK att_status att_measure_keep_samples(att_measure *measure, int count);

/* Takes the samples 0..count-1 of the session's last run, which must have watched (att_session_watch()). labels: their
 * classes, NULL where there are none: instruments that need labels then leave these samples out. Errors: what
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

#ifdef __cplusplus
}
#endif
#endif
