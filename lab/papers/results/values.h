/* results/values.h - numbers that the commands of a run left in its folder. */
#ifndef ATT_RESULTS_VALUES_H
#define ATT_RESULTS_VALUES_H

#include "lab/papers/results/result.h"
#include "lab/report/sweep.h"

/* The folder of a run: a sweep with its runs, or the files of single commands. Zero-initialise. */
typedef struct att_result_folder {
    att_context *context;
    char *path;
    bool is_sweep;
    att_sweep_file sweep;
    att_report_run *runs; /* [sweep.count] */
} att_result_folder;

/* Opens root/name. A folder that is missing is one without a sweep and without files. Caller frees *folder with
 * att_result_folder_close(), also after a failure. Errors: ERR_FORMAT, ERR_IO, ERR_MEMORY. */
att_status att_result_folder_open(att_context *context, const char *root, const char *name, att_result_folder *folder);
void att_result_folder_close(att_result_folder *folder);

/* One number for each seed, ordered as in the sweep; a single one with seed 0 of a file that has no seed in its name.
 */
typedef struct att_result_values {
    bool found; /* the figure is there, whether or not its numbers are finite */
    int count;
    uint64_t seeds[ATT_SWEEP_MOST_RUNS];
    double values[ATT_SWEEP_MOST_RUNS];
} att_result_values;
/* Runs without the figure, or with NaN, are left out. Errors: ERR_FORMAT, ERR_IO, ERR_MEMORY. */
att_status att_result_values_read(const att_result_folder *folder, const att_reading *reading,
                                  att_result_values *values);

#endif
