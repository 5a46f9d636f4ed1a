/* serve/summary.h - what the list of runs says about a run. */
#ifndef ATT_SERVE_SUMMARY_H
#define ATT_SERVE_SUMMARY_H

#include <jansson.h>
#include <sys/types.h>

#include <attscope/task.h>

typedef struct att_run_summary {
    bool trained, measured;    /* whether it has metrics.jsonl, measure.jsonl */
    char model[128], task[64]; /* "": not recorded */
    double epochs;             /* finished; with --eval-every, those at the last evaluation, also parts of one */
    int64_t epochs_wanted;     /* -1: not recorded */
    int64_t step;              /* updates done */
    double seconds;            /* since the training was started or continued */
    double best;               /* the best value of the metric of the task, NaN if not evaluated */
    const char *metric, *unit; /* label and unit of this metric; NULL: the task is unknown */
    char end[32];              /* status of the recorded end: "OK", ...; "": none is recorded */
    char problem[512];         /* why the records cannot be read; "": they can */
    json_t *settings;          /* options as texts: of args.yaml, or else of run_begin; NULL: not recorded */
} att_run_summary;

/* Reads the records of a run. Damaged records are described in `problem`. On success the caller frees *summary with
 * att_run_summary_free(); on failure there is nothing to free. Errors: ERR_MEMORY, ERR_STOPPED. */
att_status att_run_summary_read(att_context *context, const char *folder, att_run_summary *summary);
void att_run_summary_free(att_run_summary *summary);

/* The files that a process of this machine has locked, as training runs lock metrics.jsonl while they write it. Zero:
 * empty. The lists of the system are read, and nothing is locked, so that no training is disturbed. */
typedef struct att_locked_files {
    ino_t *inodes;
    int count, capacity;
} att_locked_files;
/* Reads the list. Where the system has none, it stays empty. Error: ERR_MEMORY. */
att_status att_locked_files_read(att_context *context, att_locked_files *files);
bool att_locked_files_have(const att_locked_files *files, ino_t inode);
void att_locked_files_free(att_context *context, att_locked_files *files);

#endif
