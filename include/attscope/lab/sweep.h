/* attscope/lab/sweep.h - runs of one recipe over seeds and settings, taken together.
 *
 * A run is a folder as attscope/store.h has it: a training with metrics.jsonl and what was measured of its checkpoint,
 * measure.jsonl. Runs of one setting differ in their seed only. A sweep's own folder holds its runs' and
 *
 *   sweep.json   an object: runs, an array of name (of the run's folder in there), setting, seed, status ("measured":
 *                trained and measured; anything else: not yet, or "failed"); correlate, an array of {x, y}, where rank
 *                correlations of other figures than the default were asked; settings and correlations as
 *                att_sweep_write_json() writes them; what it was started with
 */
#ifndef ATTSCOPE_LAB_SWEEP_H
#define ATTSCOPE_LAB_SWEEP_H

#include <attscope/data.h>
#include <attscope/event.h>
#include <attscope/lab/correlation.h>
#include <attscope/lab/json.h>
#include <attscope/task.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATT_SWEEP_MOST_RUNS = ATT_CORRELATE_MOST };

/* --- one run ------------------------------------------------------------------------------------------------------ */

typedef struct att_run_state {
    bool trained;                       /* to its end */
    bool measured;                      /* then, with the instruments that were asked about */
    char listing[ATT_DATASET_LISTING];  /* of the images that it was trained on, "" where that is not said */
    char contents[ATT_DATASET_LISTING]; /* of the images of that measurement; "" likewise */
    char split[64];                     /* of these; "" likewise */
    char failure[256];                  /* why the training ended before; "" where nothing says that it did */
} att_run_state;

/* Where the run in `folder` stands. with: the list of instruments as attscope measure was given it. A folder that is
 * missing or holds no records stands at neither. Errors: ERR_FORMAT where a record is damaged; ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_run_state_read(att_context *context, const char *folder, const char *with,
                                                     att_run_state *state);

/* --- all of them -------------------------------------------------------------------------------------------------- */

typedef struct att_sweep_run {
    const char *folder, *setting;
    uint64_t seed;
} att_sweep_run;

typedef struct att_sweep_setting {
    const char *name;
    int runs;
    const uint64_t *seeds;             /* of each */
    double parameters;                 /* of the network; NaN where the training does not say */
    double seconds, seconds_deviation; /* of training, over runs */
    const char *task;                  /* of the trainings; NULL where they say none that is known */
    const att_metric *metric;          /* the task's best one; NULL where no training evaluated it */
    double score, score_deviation;     /* that metric after the last evaluated epoch, over runs; NaN: none */
    int figure_count;
} att_sweep_setting;

/* Two figures of a run, as att_measurement_is_called() names them: "tns/tns unit" and "accuracy/top1". */
typedef struct att_sweep_pair {
    const char *x, *y;
} att_sweep_pair;
enum { ATT_SWEEP_MOST_PAIRS = 32 };

/* The rank correlation of two figures over runs. */
typedef struct att_sweep_correlation {
    att_sweep_pair of;
    const char *setting; /* NULL: over the runs of all settings */
    att_correlation ranks;
} att_sweep_correlation;

/* What figures and correlations are, for people. */
#define ATT_SWEEP_FIGURES_ARE \
    "mean ± standard deviation (n - 1) over the n runs of a setting; a run's figure is its mean over images"
#define ATT_SWEEP_CORRELATIONS_ARE                                                                              \
    "x and y are figures of a run, means over the measured images; over all settings and seeds together, then " \
    "within a setting, whose runs differ in the seed only"

typedef struct att_sweep att_sweep;

/* Reads the runs (0 to ATT_SWEEP_MOST_RUNS) and takes them together by setting, settings in the order in which they
 * come. pairs: the figures whose rank correlations are asked, up to ATT_SWEEP_MOST_PAIRS; pair_count 0: every
 * instrument's predictor, in each reading, with every instrument's score (att_instrument_info). seed: of the
 * correlations. On success *sweep is the caller's; nothing of `runs` and `pairs` is needed any longer. Errors:
 * ERR_ARGUMENT (counts), and as att_report_write() says of folders. */
ATT_API ATT_MUST_CHECK att_status att_sweep_read(att_context *context, const att_sweep_run *runs, int count,
                                                 const att_sweep_pair *pairs, int pair_count, uint64_t seed,
                                                 att_sweep **sweep);
ATT_API void att_sweep_destroy(att_sweep **sweep);

ATT_API int att_sweep_setting_count(const att_sweep *sweep);
ATT_API att_sweep_setting att_sweep_setting_at(const att_sweep *sweep, int setting);
/* Figure 0..figure_count-1 of a setting, in the order in which its first run has them, without single heads: mean,
 * standard deviation (n - 1; NaN for one run) and count are over runs, each with its mean over images. */
ATT_API att_measurement att_sweep_figure_at(const att_sweep *sweep, int setting, int index);
/* The figure of that name; count 0 where the setting has none. */
ATT_API att_measurement att_sweep_figure_find(const att_sweep *sweep, int setting, const char *instrument,
                                              const char *node, const char *statistic);

/* For each pair: over all runs, then, where there are several settings, within each. Runs without both figures, or with
 * NaN, are left out, and correlations without any run, too. */
ATT_API int att_sweep_correlation_count(const att_sweep *sweep);
ATT_API att_sweep_correlation att_sweep_correlation_at(const att_sweep *sweep, int index);

/* Members of the object that is open: settings, correlations, methods (what the correlations are). */
ATT_API void att_sweep_write_json(const att_sweep *sweep, att_json_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
