/* attscope/lab/sweep.h - statistics over the runs of a sweep: one recipe with several seeds and settings.
 *
 * A run is a folder with records (attscope/store.h): metrics.jsonl of the training, and measure.jsonl with the figures
 * measured of its checkpoint. The runs of one setting differ only in their seed. The folder of a sweep contains the
 * folders of its runs and
 *
 *   sweep.json   an object with
 *                  runs: an array of {name, setting, seed, status, failure}. name: the run's folder in the folder of
 *                    the sweep. status: as in att_planned_run ("measured": trained and measured). failure: only for
 *                    failed runs
 *                  correlate: an array of {x, y}, the figures to correlate; missing if they are the default figures
 *                  settings, differences, rankings, correlations, methods: as att_sweep_write_json() writes them
 *                  the options with which the sweep was started
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
    bool trained;                       /* the training finished */
    bool measured;                      /* trained, and the last checkpoint was measured with these instruments */
    char listing[ATT_DATASET_LISTING];  /* digest of the training images and their classes; "" if not recorded */
    char contents[ATT_DATASET_LISTING]; /* digest of the measured images; "" if not recorded */
    char split[64];                     /* the split that was measured; "" if not recorded */
    char failure[256];                  /* why the training ended early; "" if no failure is recorded */
} att_run_state;

/* Reads the state of the run in `folder` from its records. with: the list of instruments that was passed to the
 * measurement (att_measuring_options.with); NULL means "all". A folder that is missing or has no records is neither
 * trained nor measured. Errors: ERR_FORMAT (a damaged record); ERR_ARGUMENT (`folder` is NULL); ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_run_state_read(att_context *context, const char *folder, const char *with,
                                                     att_run_state *state);

/* --- all runs of a sweep ------------------------------------------------------------------------------------------ */

typedef struct att_sweep_setting {
    const char *name;
    const char *model; /* its architecture, the name of the network; "" if not recorded */
    int runs;
    const uint64_t *seeds;             /* [runs] */
    double parameters;                 /* number of parameters of the network; NaN if not recorded */
    double seconds, seconds_deviation; /* training time: mean and standard deviation over the runs */
    const char *task;                  /* task of the training runs; NULL if not recorded, or unknown */
    const att_metric *metric;          /* the metric by which the task selects the best epoch; NULL if not evaluated */
    double score, score_deviation;     /* this metric after the last evaluated epoch: mean and standard deviation over
                                          the runs; NaN if not evaluated */
    int figure_count;
} att_sweep_setting;

/* Names of two figures of a run, as in att_measurement_is_called(): "tns/tns unit" and "accuracy/top1". */
typedef struct att_sweep_pair {
    const char *x, *y;
} att_sweep_pair;
enum { ATT_SWEEP_MOST_PAIRS = 32 };

/* The rank correlation of two figures over runs. Each p is corrected (adjusted_p) for the pairs over the same runs;
 * pairs whose figures are equal in all runs count once. */
typedef struct att_sweep_correlation {
    att_sweep_pair of;
    const char *setting;   /* over the runs of this setting; NULL: of all settings */
    const char *model;     /* over the runs of this architecture; NULL: of all architectures */
    att_correlation runs;  /* one point per run; a group is a setting or, within a setting, a run */
    att_correlation means; /* one point per setting, the means of its runs; all zero within a setting */
} att_sweep_correlation;

/* One-line explanations of figures and correlations, for tables and pages. */
#define ATT_SWEEP_FIGURES_NOTE \
    "mean ± standard deviation (n - 1) over the n runs of a setting; a run's figure is its mean over images"
#define ATT_SWEEP_CORRELATIONS_ARE                                                                                  \
    "x and y are figures of a run, means over the measured images; over all runs, then within an architecture and " \
    "within a setting, whose runs differ in the seed only. Means: one point per setting, the mean of its runs"

typedef struct att_sweep att_sweep;

ATT_API void att_sweep_destroy(att_sweep **sweep);

ATT_API int att_sweep_setting_count(const att_sweep *sweep);
/* Setting 0..count-1; all zero for other numbers. Its texts and arrays live as long as `sweep`. */
ATT_API att_sweep_setting att_sweep_setting_at(const att_sweep *sweep, int setting);
/* Figure 0..figure_count-1 of a setting, in the order of the setting's first run; figures of single heads are left out.
 * A run's value is its mean over images. mean, deviation (n - 1; NaN for one run) and count are over the runs. Other
 * numbers give a figure with count 0. */
ATT_API att_measurement att_sweep_figure_at(const att_sweep *sweep, int setting, int index);
/* The setting's figure with this name; count is 0 if there is none. */
ATT_API att_measurement att_sweep_figure_find(const att_sweep *sweep, int setting, const char *instrument,
                                              const char *node, const char *statistic);

/* The difference of two settings over the seeds that both have. */
typedef struct att_paired {
    int count;              /* n, the number of pairs */
    double mean, deviation; /* of the differences; NaN without pairs, and the deviation (n - 1) also for one pair */
    double low, high;       /* 95 % confidence interval of the mean, by Student's t; NaN for fewer than two pairs */
} att_paired;
/* Computes the differences d = a[i] - b[i] of the pairs in which both are finite; b: NULL means zeros. The interval is
 *
 *   mean(d) -/+ t s / sqrt(n), where s is the deviation of d and t the 0.975 quantile of Student's t with n - 1 degrees
 *   of freedom (Student 1908)
 *
 * It assumes that the differences are drawn from one normal distribution. With few pairs t is large: 12.7 for n = 2,
 * 4.30 for 3, 2.78 for 5. Does not fail. */
ATT_API att_paired att_paired_difference(const double *a, const double *b, int count);
/* Whether the interval does not contain 0. False without an interval. */
ATT_API bool att_paired_is_separated(const att_paired *paired);
/* One-line explanation, for tables and pages. */
#define ATT_PAIRED_NOTE                                                                                            \
    "difference of two settings over the seeds that both have, as mean [95 % interval] with Student's t on the n " \
    "differences (Student 1908); an interval is of one difference and is not corrected for their number"
/* The difference of figure `figure` of a setting and figure `other_figure` of the setting `other`, over the seeds that
 * both have. Numbers out of range give a difference with count 0. */
ATT_API att_paired att_sweep_difference(const att_sweep *sweep, int setting, int figure, int other, int other_figure);
/* The difference of the scores (att_sweep_setting.score) of two settings. Numbers out of range, and settings with
 * different metrics or without one, give a difference with count 0. */
ATT_API att_paired att_sweep_score_difference(const att_sweep *sweep, int setting, int other);

/* The settings that are best by a figure. Which ones they are is decided by the same runs, so the interval of their
 * difference is optimistic. */
typedef struct att_sweep_ranking {
    int best, second; /* settings; -1: there is none */
    att_paired lead;  /* best minus second */
} att_sweep_ranking;
/* Ranks the settings by their means of a figure. Settings without it are left out. best and second are -1 for figures
 * that do not rate a network, and if the two best means are equal. */
ATT_API att_sweep_ranking att_sweep_rank(const att_sweep *sweep, const char *instrument, const char *node,
                                         const char *statistic);

/* The rank correlations: over all runs, for each pair; then over the runs of each architecture, if there are several,
 * and it has several settings; then over the runs of each setting, if there are several. Runs that lack one of the
 * figures, or have NaN, are left out. Correlations without any run are left out. index: 0..count-1; other numbers give
 * all zero. */
ATT_API int att_sweep_correlation_count(const att_sweep *sweep);
ATT_API att_sweep_correlation att_sweep_correlation_at(const att_sweep *sweep, int index);

/* Writes members into the JSON object that is open: settings; differences, of each setting from the first one, of every
 * figure that both have; rankings, of the figures that rate a network; correlations; and methods, which describes how
 * the correlations are computed. */
ATT_API void att_sweep_write_json(const att_sweep *sweep, att_json_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
