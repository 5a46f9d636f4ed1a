/* attscope/lab/runs.h - the folders of runs: their names, checkpoints and database.
 *
 * A run is a training with its records (attscope/store.h). An output folder contains the folders of several runs:
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

/* Whether the folder has the records or options of a training. False for NULL. */
ATT_API bool att_run_is_folder(const char *folder);

/* Sets *belongs to whether the file `checkpoint` is in the run's folder, or has the same bytes as a .safetensors file
 * in the folder. For a path in the folder nothing is read: the file need not exist. Files of the folder that cannot be
 * read count as different. Errors, if the path is elsewhere: ERR_NOT_FOUND or ERR_IO (the checkpoint cannot be read),
 * ERR_IO (the folder cannot be read), ERR_MEMORY, ERR_STOPPED; always: ERR_ARGUMENT (NULL, or a path that is too long).
 */
ATT_API ATT_MUST_CHECK att_status att_run_owns(att_context *context, const char *folder, const char *checkpoint,
                                               bool *belongs);

/* Writes the path of the database to which the run in `folder` belongs: runs.sqlite in the parent folder. Errors:
 * ERR_ARGUMENT (`folder` is NULL, or `path` is too small). */
ATT_API ATT_MUST_CHECK att_status att_run_database(att_context *context, const char *folder, char *path, size_t size);

/* Where a training writes, and the checkpoint that it continues. Functions read it during the call only.
 * An empty text means the same as NULL. */
typedef struct att_run_place {
    const char *output;     /* the folder that contains the runs; required for a new run and for "auto" */
    const char *experiment; /* name of the run's folder in `output`; NULL: not given */
    const char *resume; /* the checkpoint to continue: a file; a folder, which means its last.safetensors; or "auto",
                           which means last.safetensors in OUTPUT/EXPERIMENT if that exists, otherwise a new run.
                           NULL: a new run */
} att_run_place;

/* Checks a place. Fails with ERR_ARGUMENT if `experiment` is a path or longer than a file name may be, or if `resume`
 * is "auto" without `experiment`. */
ATT_API ATT_MUST_CHECK att_status att_run_place_check(att_context *context, const att_run_place *place);

/* Writes the path of the checkpoint to continue, or "" for a new run. Except with "auto", the file need not exist.
 * Errors: those of att_run_place_check(). */
ATT_API ATT_MUST_CHECK att_status att_run_find_resume(att_context *context, const att_run_place *place, char *path,
                                                      size_t size);

typedef struct att_run_folder {
    char folder[ATT_RUN_PATH];
    char resume[ATT_RUN_PATH]; /* the checkpoint to continue; "": a new run */
    char database[ATT_RUN_PATH];
    bool unnamed; /* the folder is named after the time; att_run_folder_claim() may append a number */
} att_run_folder;

/* Chooses the folder of a training and fills *run; creates nothing. A continued run stays in its checkpoint's folder. A
 * new run gets OUTPUT/EXPERIMENT, or, without a name, OUTPUT/<date>-<time>-<model>-<size> as in timm, where size is
 * "224", or "224x160" if height and width differ. model: only used for such a name. Errors, which leave *run unchanged:
 * ERR_MISMATCH if the folder of a new run already has checkpoints of a training: last.safetensors,
 * model_best.safetensors or checkpoint-N.safetensors; ERR_IO if it cannot be read; those of att_run_place_check(). */
ATT_API ATT_MUST_CHECK att_status att_run_folder_choose(att_context *context, const att_run_place *place,
                                                        const char *model, int height, int width, att_run_folder *run);
/* Called just before a training writes. Creates the folder of a new run without a name, and its parent folders. If
 * another run of the same second has this name, a number is appended, so that two trainings never share a folder. For a
 * new run with a name, whose folder att_store_open() creates, checks again that the folder has no checkpoints. Does
 * nothing for a continued run. Errors: ERR_MISMATCH and ERR_IO, as for att_run_folder_choose(). */
ATT_API ATT_MUST_CHECK att_status att_run_folder_claim(att_context *context, att_run_folder *run);

#ifdef __cplusplus
}
#endif
#endif
