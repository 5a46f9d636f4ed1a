/* report/sweep.h - statistics over runs that are in memory, and the list of runs in a sweep's folder. */
#ifndef ATT_REPORT_SWEEP_H
#define ATT_REPORT_SWEEP_H

#include <attscope/lab/sweep.h>

#include "lab/report/run.h"

typedef struct att_sweep_run {
    const char *folder, *setting;
    uint64_t seed;
} att_sweep_run;

typedef struct att_sweep_member {
    const att_report_run *run;
    const char *setting;
    uint64_t seed;
} att_sweep_member;

/* As att_sweep_read(), for runs that have been read. The counts have been checked. All arguments may be freed before
 * *sweep. */
att_status att_sweep_from_runs(att_context *context, const att_sweep_member *members, int count,
                               const att_sweep_pair *pairs, int pair_count, uint64_t seed, att_sweep **sweep);

/* Checks the pairs of att_sweep_read(). Errors: ERR_ARGUMENT. */
att_status att_sweep_check_pairs(att_context *context, const att_sweep_pair *pairs, int count);

/* A failed run. reason: "" if sweep.json has none. */
typedef struct att_sweep_failure {
    const char *setting, *reason;
} att_sweep_failure;

/* The measured and the failed runs of sweep.json, and the requested correlations. */
typedef struct att_sweep_file {
    att_arena arena; /* owns everything below */
    att_sweep_run *runs;
    int count;
    att_sweep_failure *failures;
    int failure_count;
    att_sweep_pair *pairs;
    int pair_count;
} att_sweep_file;

/* Reads sweep.json in `folder`. *found: false if there is none. On success the caller frees *file with
 * att_sweep_file_free(). Errors: ERR_FORMAT, ERR_IO, ERR_MEMORY. */
att_status att_sweep_file_read(att_context *context, const char *folder, bool *found, att_sweep_file *file);
void att_sweep_file_free(att_sweep_file *file);

/* Reads the runs (0 to ATT_SWEEP_MOST_RUNS) and groups them by setting. Settings keep the order in which they first
 * occur. pairs: the figures to correlate, at most ATT_SWEEP_MOST_PAIRS; pair_count 0 means each instrument's predictor,
 * in each reading, with each instrument's score (att_instrument_info). seed: for the permutations and resamples of
 * att_correlate(). On success the caller owns *sweep and frees it with att_sweep_destroy(); `runs` and `pairs` are
 * copied. Errors: ERR_ARGUMENT (a count out of range; a pointer in `runs` or `pairs` is NULL); for folders those of
 * att_report_write(). */
ATT_MUST_CHECK att_status att_sweep_read(att_context *context, const att_sweep_run *runs, int count,
                                         const att_sweep_pair *pairs, int pair_count, uint64_t seed, att_sweep **sweep);

/* Write members of the JSON object that is open: n, mean, deviation, low, high. */
void att_paired_write_members(att_json_writer *json, const att_paired *paired);
/* n, groups, kendall, spearman, permutations, exact, resamples. */
void att_correlation_write_members(att_json_writer *json, const att_correlation *correlation);

/* The index of that figure; -1 if there is none. */
int att_sweep_figure_index(const att_sweep *sweep, int setting, const char *instrument, const char *node,
                           const char *statistic);

/* Whether a larger figure of a network is better (1), or a smaller one (-1), as the metric of a task says that has the
 * name of the statistic; 0 for figures that do not rate a network. context NULL: the built-in tasks. */
int att_sweep_direction(const att_context *context, const char *instrument, const char *statistic);

#endif
