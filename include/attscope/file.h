/* attscope/file.h - files written in one step. */
#ifndef ATTSCOPE_FILE_H
#define ATTSCOPE_FILE_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the file at `path` hold these bytes: they go to "<path>.tmp" in the same folder, are flushed to the disk, and
 * take the path's place by rename(). After a failure the file is what it was. No symbolic link is followed: one at
 * `path` is itself replaced, and one at "<path>.tmp", like what a killed process left there, is removed. Errors: ERR_IO
 * (the system's reason; another process is writing the same path; a path that is neither a regular file nor a link to
 * one is not replaced), ERR_NOT_FOUND (no such folder), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_file_replace(att_context *context, const char *path, const void *bytes,
                                                   size_t size);

#ifdef __cplusplus
}
#endif
#endif
