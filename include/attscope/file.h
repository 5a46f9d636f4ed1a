/* attscope/file.h - a program writes its results atomically: a reader sees the old file or the new one. */
#ifndef ATTSCOPE_FILE_H
#define ATTSCOPE_FILE_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the contents of the file at `path`, or creates it. The bytes are written to "<path>.tmp" in the same folder,
 * flushed to the disk, and moved to `path` by rename(). After a failure the file is unchanged. Symbolic links are not
 * followed: a link at `path` is itself replaced. Anything at "<path>.tmp", such as a link or a file left by a killed
 * process, is removed. Errors: ERR_IO (with the system's reason; also if another process is writing the same path, or
 * if `path` is neither a regular file nor a link to one), ERR_NOT_FOUND (no such folder), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_file_replace(att_context *context, const char *path, const void *bytes,
                                                   size_t size);

/* Creates the folder and its missing parents. Succeeds if the folder exists. Errors: ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_file_make_folders(att_context *context, const char *path);

#ifdef __cplusplus
}
#endif
#endif
