/* attscope/lab/runs.h - the folders of runs, and which checkpoint a training run would continue.
 *
 * A run is a training run with its records (attscope/store.h). An output folder contains the folders of several runs:
 *
 *   OUTPUT/EXPERIMENT/   one run: args.yaml, metrics.jsonl, last.safetensors, ...
 *   OUTPUT/runs.sqlite   the database of all runs in OUTPUT
 *
 * Every function that takes a path refuses paths of ATT_RUN_PATH bytes or more with ERR_ARGUMENT.
 */
#ifndef ATTSCOPE_LAB_RUNS_H
#define ATTSCOPE_LAB_RUNS_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATT_RUN_PATH = 4096 }; /* bytes of a path, its NUL included */

/* Where a training run writes, and the checkpoint that it continues. Functions read it during the call only.
 * An empty text means the same as NULL. */
typedef struct att_run_place {
    const char *output;     /* the folder that contains the runs; required for a new run and for "auto" */
    const char *experiment; /* name of the run's folder in `output`; NULL: not given */
    const char *resume; /* the checkpoint to continue: a file; a folder, which means its last.safetensors; or "auto",
                           which means last.safetensors in OUTPUT/EXPERIMENT if that exists, otherwise a new run.
                           NULL: a new run */
} att_run_place;

/* Writes the path of the checkpoint to continue, or "" for a new run. Except with "auto", the file need not exist.
 * Errors: ERR_ARGUMENT if `experiment` is a path or longer than a file name may be, or if `resume` is "auto" without
 * `experiment`. */
ATT_API ATT_MUST_CHECK att_status att_run_find_resume(att_context *context, const att_run_place *place, char *path,
                                                      size_t size);

typedef struct att_run_folder {
    char folder[ATT_RUN_PATH];
    char resume[ATT_RUN_PATH]; /* the checkpoint to continue; "": a new run */
    char database[ATT_RUN_PATH];
    bool unnamed; /* the folder is named after the time; a number may be appended when the training begins */
} att_run_folder;

#ifdef __cplusplus
}
#endif
#endif
