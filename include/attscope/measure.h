/* attscope/measure.h - instruments, which compute figures of attention and residual steps.
 *
 * An instrument selects nodes of a graph and adds probes to them (attscope/graph.h). Most instruments compute one
 * number for each sample and place; their figures are mean, standard deviation and count over samples. Others keep a
 * state and compute the figures at the end. Figures do not depend on threads; they depend on the batch size only as far
 * as the last bits of the network's results do.
 *
 *     att_measure *measure = NULL;
 *     att_measure_create(att_model_graph(model), "entropy,nsi", "*", &measure);   before the plan is compiled
 *     ... att_session_run(session, batch); att_measure_observe(measure, session, batch, labels); ...
 *     for (int i = 0; i < att_measure_count(measure); i++) att_measurement m = att_measure_at(measure, i);
 */
#ifndef ATTSCOPE_MEASURE_H
#define ATTSCOPE_MEASURE_H

#include <attscope/event.h>
#include <attscope/options.h>
#include <attscope/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_json_writer att_json_writer; /* declared in attscope/lab/json.h */

/* How a statistic is shown to people. */
typedef struct att_statistic_info {
    const char *name;  /* as in att_measurement; for instruments with readings, without the reading */
    const char *title; /* for tables and charts: "top-1", "ζ*" */
    const char *unit;  /* NULL: the instrument's unit */
} att_statistic_info;

/* A value on the scale of a statistic, for people who see a measured number and ask whether it is large: what a
 * limiting case gives, or what known checkpoints show. */
typedef struct att_statistic_scale {
    const char *statistic; /* NULL: all statistics of the instrument */
    const char *text;      /* "DeiT-Tiny: 2.9 to 4.4 by layer" */
    const char *source;    /* the command that printed the number, or the publication */
} att_statistic_scale;

enum { ATT_INSTRUMENT_OPTIONS = 5 };

/* Description of an instrument. Every text is one line. Tables, sweeps and pages use it, so that a new instrument needs
 * no change there. */
typedef struct att_instrument_info {
    const char *name, *summary;
    const char *title; /* heading: "Attention entropy"; NULL: the name */
    /* How a network is looked at: "step size" (residual steps as those of a differential equation), "convolution"
     * (heads as filters), "rank" (how far tokens collapse to one), "uniform" (dense attention). NULL: none of these */
    const char *view;
    const char *unit;
    const char *formula;       /* formula of one sample's number */
    const char *source;        /* source of the formula */
    const char *reading;       /* how the instrument decides what the source leaves open */
    const att_detail *options; /* option_count options, 0 to ATT_INSTRUMENT_OPTIONS, which users set as in
                                  "nsi:per=block"; NULL: none */
    int option_count;
    bool needs_labels; /* it needs the classes of the samples */
    bool costly; /* it computes parts of the network again, or shows figures of other instruments in more detail; "all"
                    does not include it, so it must be named */
    bool scores; /* a sample is right or wrong: the standard error, deviation / sqrt(n), is shown beside the mean */
    bool by_sample; /* values of single samples are of interest: att_measure_keep_samples() */
    bool by_block;  /* nodes are shown by the name of their block, because networks name the same place of a block
                       differently */
    /* Statistics with a title or unit of their own; the last has no name. NULL: none. */
    const att_statistic_info *statistics;
    /* Names of the readings: interpretations of an ambiguous formula, in each of which every statistic is reported. A
     * statistic is then called "tns unit" (statistic and reading), or only "unit" (the reading). NULL-terminated; NULL:
     * none. */
    const char *const *readings;
    const att_statistic_scale *scales;     /* the last has no text. NULL: none */
    const att_statistic_scale *scales_f64; /* take the place of `scales` for figures of a network in f64. NULL: `scales`
                                              hold for them, too */
    const char *readings_agree;            /* meaning of equal figures in all readings: "no gates here" */
    /* Statistics that the report follows through a training run for each head. NULL-terminated; NULL: none. */
    const char *const *by_head;
    const char *brief; /* the statistic shown in tables of sweeps; NULL: all */
    const char *score; /* the statistic that rates a network, larger is better; NULL: none */
    /* The statistic whose rank correlation with scores sweeps report by default, in each reading. NULL: none. */
    const char *predictor;
    /* Why another instrument ignores figures marked by att_requests_exclude(). NULL: none is marked. */
    const char *excluded;
} att_instrument_info;
/* The instruments of a context: the built-in ones, then the registered ones in the order of registration. context NULL:
 * the built-in ones. index: 0..count-1; all zero for another index. */
ATT_API int att_instrument_count(const att_context *context);
ATT_API att_instrument_info att_instrument_at(const att_context *context, int index);
/* Finds an instrument by name. Returns false if there is none. */
ATT_API bool att_instrument_find(const att_context *context, const char *name, att_instrument_info *info);
/* Writes the description as a JSON object, for records: texts under their member names if not NULL, flags if true,
 * "options" as an array of what att_detail_write_json() writes, "statistics" as an array of {statistic, title, unit},
 * "scales" and "scales_f64" as arrays of {statistic, text, source}, "readings" and "by_head" as arrays of texts. */
ATT_API void att_instrument_write_json(const att_instrument_info *info, att_json_writer *writer);

/* Returns whether `name` is the name of the figure: "tns/tns unit" for the whole network, "entropy/blocks.3.attn/mean"
 * for all heads of a node together. */
ATT_API bool att_measurement_is_called(const att_measurement *measurement, const char *name);

/* Checks the instruments and options in `with` (see att_measure_create()). Errors: ERR_NOT_FOUND and ERR_ARGUMENT as
 * there; ERR_MEMORY. */
ATT_API att_status att_instruments_check(att_context *context, const char *with);

/* Returns the length of the first item of a list of instruments. Commas between options belong to the item:
 * "path_samples:count=2,seed=3" is the first item of "path_samples:count=2,seed=3,entropy". */
ATT_API size_t att_instruments_item(const char *list);

/* Instruments on one graph. A measure accumulates: its figures are over all samples observed, in one evaluation or in
 * several, until att_measure_clear(). */
typedef struct att_measure att_measure;

/* Adds the probes of instruments to the graph. with: names of instruments, separated by commas, with options
 * ("entropy,path_samples:count=8,seed=3,nsi:per=block": an item with a '=' before any ':' is one more option of the
 * instrument before it); "NAME?" means NAME if it applies to this network; "all" (also for NULL) means all instruments
 * that apply and are not costly, and "all,-accuracy", or "-accuracy" alone, all but accuracy. nodes: patterns
 * for the scopes of nodes, separated by commas, '*' and '?' allowed; NULL means "*". Results of plans compiled from the
 * graph keep all their bits, with one exception: if a probed branch of a residual network would have been fused with
 * its addition, results may differ by rounding. On success the caller owns *measure; the graph may be freed before it.
 * Errors: ERR_NOT_FOUND for an unknown instrument (with the nearest name), and if an instrument finds no node;
 * ERR_ARGUMENT for a name given twice, an unknown option or an invalid value, and if no instrument is left;
 * ERR_UNSUPPORTED for a part of the network that cannot be copied; ERR_MEMORY. After a failure the graph may have some
 * of the probes; it still compiles. */
ATT_API ATT_MUST_CHECK att_status att_measure_create(att_graph *graph, const char *with, const char *nodes,
                                                     att_measure **measure);
ATT_API void att_measure_destroy(att_measure **measure);

/* Keeps the values of each figure's first `count` samples (0: none), for instruments with by_sample;
 * att_measurement.samples returns them. Forgets all samples observed so far. Errors: ERR_ARGUMENT (count), ERR_MEMORY.
 */
enum { ATT_MEASURE_MOST_SAMPLES = 4096 };
ATT_API ATT_MUST_CHECK att_status att_measure_keep_samples(att_measure *measure, int count);

/* Observes the samples 0..count-1 of the session's last run, which must have computed the probes
 * (att_session_observe()). labels: their classes; NULL: none, and instruments that need labels skip these samples.
 * Errors: those of att_session_output(), ERR_MEMORY. */
ATT_API att_status att_measure_observe(att_measure *measure, att_session *session, int count, const int32_t *labels);
/* Forgets all samples observed so far. */
ATT_API void att_measure_clear(att_measure *measure);

/* The figures so far. They are ordered by instrument (as in `with`), statistic, node (in the network's order), and
 * head, with all heads together last. Without samples mean and deviation are NaN. Texts live as long as `measure`.
 * index: 0..count-1; all zero for another index. */
ATT_API int att_measure_count(const att_measure *measure);
ATT_API att_measurement att_measure_at(const att_measure *measure, int index);
/* Returns the figures that have samples, as an event needs them, and their number in *count; valid until the next call
 * for this `measure`. */
ATT_API const att_measurement *att_measure_observed(att_measure *measure, int *count);
/* The instruments of the measure, and their descriptions, whose `scales` are those of the graph's precision and whose
 * `scales_f64` is NULL; all zero for an index outside 0..count-1. */
ATT_API int att_measure_instrument_count(const att_measure *measure);
ATT_API att_instrument_info att_measure_instrument_at(const att_measure *measure, int index);
/* The values of its options, in the order of info.options: numbers, and indices of choices. They live as long as
 * `measure`. NULL for an index outside 0..count-1. */
ATT_API const double *att_measure_options_at(const att_measure *measure, int index);

/* --- writing an instrument ----------------------------------------------------------------------------------------
 *
 * An instrument is one descriptor. When a measure is created, request() searches the graph for places, requests the
 * values to observe there (rows), and declares its figures (series). Samples come later. There are two forms:
 *
 *   observe()  computes one number of each sample for each series. The library reports mean, deviation and count over
 *              the samples.
 *   state      accumulates what it needs of all samples and computes the figures itself. Use this form for figures that
 *              are not a mean of one number per sample: counts, quantiles over samples, correlations.
 *
 * A program registers its own instrument:
 *
 *     static const att_instrument mine = {.info = {.name = "mine", ...}, .request = request, .observe = observe};
 *     att_instrument_register(context, &mine);
 *     att_measure_create(graph, "mine,entropy", "*", &measure);
 *
 * Every later call for this context treats it like a built-in instrument: by its name, with "all", in training runs,
 * records, sweeps and reports. Other contexts do not know it. examples/instrument.c is a whole program;
 * docs/dev/adding-an-instrument.md has an example of each form.
 */

/* The rows of one sample, in the order in which request() requested them. */
typedef struct att_observed {
    const float *const *rows; /* rows[r]: row r. NULL in a `shape` (att_instrument_state), which has no sample */
    const int64_t *lengths;   /* lengths[r]: elements of row r, the same for every sample */
    int count;                /* number of rows */
    const double *constants;  /* constants[r]: the constant that request() gave with row r */
    const double *options;    /* options[i]: the value of the instrument's option i, see att_detail */
    int32_t label;            /* the sample's class; -1: none */
} att_observed;

/* A figure reported by an instrument with state. */
typedef struct att_figure {
    double mean, deviation; /* NaN: undefined */
    int64_t count;          /* number of samples */
    int64_t undefined;      /* how many of them have no finite value */
} att_figure;

/* The functions of an instrument with state. A state is `size` bytes without pointers to itself; it is copied by
 * memcpy(). Before the first sample all bytes are zero. Samples come in the order of the data set. They are divided
 * into chunks of ATT_STATE_CHUNK by their position alone; each chunk has a state of its own, several threads work on
 * chunks at the same time, and then the chunks are merged in order. So figures depend neither on threads nor on
 * batches. These functions must neither fail nor allocate memory. `shape` has all members of an att_observed except
 * rows and label. */
enum { ATT_STATE_CHUNK = 64 };
typedef struct att_instrument_state {
    /* Returns the size of a state. NULL: the instrument keeps no state. */
    size_t (*size)(const att_observed *shape);
    /* Adds one sample to the state. Called from several threads, each with its own state. */
    void (*observe)(void *state, const att_observed *observed);
    /* Adds the samples of `later` to `state`; they follow those of `state`. Either may be empty. */
    void (*merge)(void *state, const void *later, const att_observed *shape);
    /* Writes figures[i] for the i-th declared series. */
    void (*report)(const void *state, const att_observed *shape, att_figure *figures);
} att_instrument_state;

typedef struct att_requests att_requests;

typedef struct att_instrument {
    /* Required are name (1 to 23 letters, digits and underscores, the first a letter, not "all"), summary, unit and
     * formula. Others may be NULL. */
    att_instrument_info info;
    /* Requests rows and declares series by calling the att_asking_...() functions below. The library may call it twice
     * for one measure. The probes that it adds stay in the graph; it must not change the graph in another way. If the
     * network has nothing that the instrument can observe, return the result of att_requests_found_nothing() or
     * att_requests_fail(). Report other failures with att_fail(). */
    att_status (*request)(att_requests *requests);
    /* Computes values[i], the sample's number for the i-th declared series; NaN if it has none. Called for one sample
     * after another on the caller's thread. Must neither fail nor allocate memory. NULL for instruments with state. */
    void (*observe)(const att_observed *observed, double *values);
    att_instrument_state state;
    /* For built-in instruments that run plans of their own (src/study/measure/study.h); NULL for all others. */
    const struct att_study *study;
} att_instrument;

/* Registers an instrument with the context. The descriptor is not copied; it and everything that it points to must
 * outlive the context. Do not call this while another call for this context runs. Errors, which leave the context
 * unchanged: ERR_ARGUMENT (a name that is taken, also by an earlier registration, or invalid; a member that is missing
 * or invalid), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_instrument_register(att_context *context, const att_instrument *instrument);

/* Functions for request(). Failures to record a request (ERR_MEMORY; ERR_ARGUMENT for a row that the graph does not
 * output) are remembered; request() need not check for them. */

/* Returns the value of the instrument's option `index`: the number, or the index of the choice. */
ATT_API double att_requests_option(const att_requests *requests, int index);
ATT_API att_graph *att_requests_graph(const att_requests *requests);
/* Returns the index (att_graph_node_at()) of the next node with the operation `op` after node `after` whose scope
 * matches the user's pattern; -1: none. Begin with -1. "attention" also finds attention without content, whose nodes
 * have other operations (att_attention()). */
ATT_API int att_requests_node(const att_requests *requests, const char *op, int after);
/* Requests the rows of the output or probe `name`, a tensor per sample of the graph's type; rows in F64 are rounded to
 * F32. `constant` is passed to observe(). */
ATT_API void att_requests_row(att_requests *requests, const char *name, double constant);
/* Makes `value` a probe called `name`, unless a probe of that name exists, and asks for its rows as att_requests_row()
 * does. Each sample's row is copied to host memory, so reduce large values with operations of the graph first. All
 * instruments share the names of probes: a name must always stand for the same value. */
ATT_API void att_requests_value(att_requests *requests, const char *name, att_value value, double constant);
/* Declares a series. node: place in the network, "" for the whole network; copied. head: -1 for all heads together, or
 * for something without heads. statistic: its name, which must live as long as the descriptor. */
ATT_API void att_requests_series(att_requests *requests, const char *node, int head, const char *statistic);
/* Marks the last declared series: another instrument ignores it, for the reason in info.excluded. */
ATT_API void att_requests_exclude(att_requests *requests);
/* Sets the largest possible value of the last declared series, which tables and charts show. */
ATT_API void att_requests_bound(att_requests *requests, double bound);
/* Sets the value that the last declared series has under uniform attention, where every query gives its keys the same
 * weight. Tables and charts show it. */
ATT_API void att_requests_uniform(att_requests *requests, double value);
/* Returns ERR_NOT_FOUND: the network has no <what> that matches the user's pattern. */
ATT_API att_status att_requests_found_nothing(const att_requests *requests, const char *what);
/* Returns ERR_NOT_FOUND for an instrument that applies to no node of this network. The arguments give the reason,
 * formatted as by printf(). */
ATT_API att_status att_requests_fail(const att_requests *requests, const char *format, ...) ATT_PRINTF(2, 3);

/* A residual addition x + branch of sample values: that of a block. Additions within a branch, such as those of a
 * module there or StepNet's guess x + f(x), are not counted, nor is that of a row which a module adds to every token.
 */
typedef struct att_residual_step {
    int node;                /* index of its last node */
    att_value before, after; /* after: includes what follows the sum: a ReLU, or the norm of a post-norm block */
    /* The branch before gates (LayerScale, drop path, attention). ATT_NONE if it equals after - before except for
     * rounding, and for blocks. */
    att_value branch;
    /* What is added to `before`, the branch after its gates. ATT_NONE if it is the branch, and for blocks. */
    att_value added;
    char scope[192];
    bool begins; /* first addition of the network, or first after a change of shapes */
} att_residual_step;
/* Finds the next residual addition after node `after` (-1: the first), in the network's order. The user's pattern does
 * not matter. Returns false if there is none. */
ATT_API bool att_residual_step_next(const att_graph *graph, int after, att_residual_step *step);

#ifdef __cplusplus
}
#endif
#endif
