/* report/sweep.h - statistics over runs that are in memory, and the list of runs in a sweep's folder. */
#ifndef ATT_REPORT_SWEEP_H
#define ATT_REPORT_SWEEP_H

#include <attscope/lab/sweep.h>

#include "lab/report/run.h"

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

#endif
