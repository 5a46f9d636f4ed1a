/* layouts/export.h - the steps of att_model_export(): files, reading them back. */
#ifndef ATT_LAYOUTS_EXPORT_H
#define ATT_LAYOUTS_EXPORT_H

#include "networks/layouts/layout.h"

/* --- files (write_files.c) ---------------------------------------------------------------------------------------- */

/* Paths of what is written. Files are written into the folder `made`, which then takes the place of `path`, or gives
 * its weights to it. The name of `made` belongs to this process: nothing that is there is touched. */
typedef struct att_export_files {
    const char *path;
    bool is_folder; /* `path` becomes a folder, else a file */
    char made[4096], config[4096], processor[4096], weights[4096];
} att_export_files;

/* Makes the folder `made` beside `path`. On success the caller calls att_export_remove_files(). Errors: ERR_IO, also if
 * `path` is to become a folder and is something else than an empty one; that of att_context_guard_writes(). */
att_status att_export_begin_files(att_context *context, const char *path, bool is_folder, att_export_files *files);
/* Writes the files of the target's class, in place of those of another class. */
att_status att_export_write_files(const att_layout_target *target, const att_layout_tensors *tensors,
                                  const att_export_files *files);
/* Moves what was written to its place. */
att_status att_export_place_files(att_context *context, const att_export_files *files);
/* Removes `made` with what is left in it. */
void att_export_remove_files(const att_export_files *files);

/* --- reading back (read_back.c) ----------------------------------------------------------------------------------- */

/* Opens the files as those of any program. Errors: ERR_UNSUPPORTED if they give other options, weights or preprocessing
 * than the network has; those of opening. */
att_status att_export_read_back(const att_layout_target *target, const att_export_files *files);

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* Copies the word at *at, and moves *at to the next one. Returns false past the last. */
bool att_export_next_word(const char **at, char *word, size_t size);
/* Whether the failure says that the network cannot be written so. Others end the export. */
bool att_export_is_refusal(att_status status);

#endif
