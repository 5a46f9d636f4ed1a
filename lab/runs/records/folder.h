/* records/folder.h - chooses and examines the folders of runs (attscope/lab/runs.h). */
#ifndef ATT_RECORDS_FOLDER_H
#define ATT_RECORDS_FOLDER_H

#include <attscope/lab/runs.h>

/* Whether the folder has the records or options of a training run. False for NULL. */
bool att_run_is_folder(const char *folder);

/* Sets *belongs to whether the file `checkpoint` is in the run's folder, or has the same bytes as a .safetensors file
 * in the folder. For a path in the folder nothing is read: the file need not exist. Files of the folder that cannot be
 * read count as different. Errors, if the path is elsewhere: ERR_NOT_FOUND or ERR_IO (the checkpoint cannot be read),
 * ERR_IO (the folder cannot be read), ERR_MEMORY, ERR_STOPPED; always: ERR_ARGUMENT (NULL, or a path that is too long).
 */
ATT_MUST_CHECK att_status att_run_owns(att_context *context, const char *folder, const char *checkpoint, bool *belongs);

/* Writes the path of the database to which the run in `folder` belongs: runs.sqlite in the parent folder. Errors:
 * ERR_ARGUMENT (`folder` is NULL, or `path` is too small). */
ATT_MUST_CHECK att_status att_run_database(att_context *context, const char *folder, char *path, size_t size);

/* Checks a place. Fails with ERR_ARGUMENT if `experiment` is a path or longer than a file name may be, or if `resume`
 * is "auto" without `experiment`. */
ATT_MUST_CHECK att_status att_run_place_check(att_context *context, const att_run_place *place);

/* Chooses the folder of a training run and fills *run; creates nothing. A continued run stays in its checkpoint's
 * folder. A new run gets OUTPUT/EXPERIMENT, or, without a name, OUTPUT/<date>-<time>-<model>-<size> as in timm, where
 * size is "224", or "224x160" if height and width differ. model: only used for such a name. Errors, which leave *run
 * unchanged: ERR_MISMATCH if the folder of a new run already has checkpoints of a training run: last.safetensors,
 * model_best.safetensors or checkpoint-N.safetensors; ERR_IO if it cannot be read; those of att_run_place_check(). */
ATT_MUST_CHECK att_status att_run_folder_choose(att_context *context, const att_run_place *place, const char *model,
                                                int height, int width, att_run_folder *run);
/* Called just before a training run writes. Creates the folder of a new run without a name, and its parent folders. If
 * another run of the same second has this name, a number is appended, so that two training runs never share a folder.
 * For a new run with a name, whose folder att_store_open() creates, checks again that the folder has no checkpoints.
 * Does nothing for a continued run. Errors: ERR_MISMATCH and ERR_IO, as for att_run_folder_choose(). */
ATT_MUST_CHECK att_status att_run_folder_claim(att_context *context, att_run_folder *run);

#endif
