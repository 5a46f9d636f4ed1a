/* attscope/lab/runs.h - the folders of runs: their names, checkpoints and database.
 *
 * A run is a training with its records (attscope/store.h). All runs of an output folder lie side by side:
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

/* Whether a training has written records or options into the folder. */
ATT_API bool att_run_is_folder(const char *folder);

/* *belongs: whether `checkpoint` lies in the folder of a run, or has the same bytes as a .safetensors file in there.
 * Files in there that cannot be read count as different. Errors: ERR_NOT_FOUND and ERR_IO where the checkpoint or the
 * folder cannot be read; ERR_MEMORY, ERR_STOPPED. */
ATT_API ATT_MUST_CHECK att_status att_run_owns(att_context *context, const char *folder, const char *checkpoint,
                                               bool *belongs);

/* Writes the path of the database that the run in `folder` belongs to: runs.sqlite in the folder above it. */
ATT_API ATT_MUST_CHECK att_status att_run_database(att_context *context, const char *folder, char *path, size_t size);

/* Where a training is asked to write, and from where it goes on. Only read during a call. */
typedef struct att_run_place {
    const char *output;     /* the folder that runs lie in; needed for a new run and for "auto" */
    const char *experiment; /* the run's name in there; NULL: none is asked for */
    const char *resume;     /* the checkpoint to go on from: a file; a folder, which means its last.safetensors; or
                               "auto", which means last.safetensors of OUTPUT/EXPERIMENT where that exists, and a new run
                               otherwise. NULL: a new run */
} att_run_place;

/* Refuses with ERR_ARGUMENT a name that is a path or longer than a file's name may be, and "auto" without a name. */
ATT_API ATT_MUST_CHECK att_status att_run_place_check(att_context *context, const att_run_place *place);

/* Writes the path of the checkpoint to go on from, or "" for a new run. The file need not exist, except for "auto". */
ATT_API ATT_MUST_CHECK att_status att_run_find_resume(att_context *context, const att_run_place *place, char *path,
                                                      size_t size);

typedef struct att_run_folder {
    char folder[ATT_RUN_PATH];
    char resume[ATT_RUN_PATH]; /* the checkpoint to go on from; "": a new run */
    char database[ATT_RUN_PATH];
    bool unnamed; /* the folder's name is made of the time; att_run_folder_claim() may add a number to it */
} att_run_folder;

/* Chooses where a training writes; makes nothing. A run that goes on has its checkpoint's folder. A new one has
 * OUTPUT/EXPERIMENT, or, without a name, OUTPUT/<date>-<time>-<model>-<size> as in timm, where size is "224", or
 * "224x160" where height and width differ. Errors: ERR_MISMATCH where a new run's folder holds last.safetensors of
 * another one already; those of att_run_place_check(). */
ATT_API ATT_MUST_CHECK att_status att_run_folder_choose(att_context *context, const att_run_place *place,
                                                        const char *model, int height, int width, att_run_folder *run);
/* Makes the folder of a new run without a name, and those above it. Where another run of the same second has the name,
 * a number is added: two trainings never get the same folder. Does nothing for other runs, whose folder the records
 * make (att_store_open()). Errors: ERR_IO. */
ATT_API ATT_MUST_CHECK att_status att_run_folder_claim(att_context *context, att_run_folder *run);

#ifdef __cplusplus
}
#endif
#endif
