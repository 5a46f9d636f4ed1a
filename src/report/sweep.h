/* report/sweep.h - taking runs together that are in memory already, and which runs a sweep's folder has. */
#ifndef ATT_REPORT_SWEEP_H
#define ATT_REPORT_SWEEP_H

#include <attscope/lab/sweep.h>

#include "report/run.h"

typedef struct att_sweep_member {
    const att_report_run *run;
    const char *setting;
    uint64_t seed;
} att_sweep_member;

/* att_sweep_read() of runs that were read; counts within their limits. All may be freed before *sweep. */
att_status att_sweep_of(att_context *context, const att_sweep_member *members, int count, const att_sweep_pair *pairs,
                        int pair_count, uint64_t seed, att_sweep **sweep);

/* A run that failed; reason: "" where sweep.json names none. */
typedef struct att_sweep_failure {
    const char *setting, *reason;
} att_sweep_failure;

/* The runs of sweep.json that are measured, and those that failed; the correlations that were asked. */
typedef struct att_sweep_file {
    att_arena arena; /* of everything below */
    att_sweep_run *runs;
    int count;
    att_sweep_failure *failures;
    int failure_count;
    att_sweep_pair *pairs;
    int pair_count;
} att_sweep_file;

/* Where `folder` has a sweep.json: its runs, *found true. On success *file is the caller's, to be zeroed by
 * att_sweep_file_free(). Errors: ERR_FORMAT where it is something else; ERR_IO, ERR_MEMORY. */
att_status att_sweep_file_read(att_context *context, const char *folder, bool *found, att_sweep_file *file);
void att_sweep_file_free(att_sweep_file *file);

#endif
