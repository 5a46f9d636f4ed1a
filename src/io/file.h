/* io/file.h - files read whole or mapped, replaced atomically, and appended to.
 *
 * Every message names the path. Errors unless said otherwise: ERR_NOT_FOUND where the path does not exist, ERR_IO for
 * what the system refused, ERR_MEMORY.
 */
#ifndef ATT_IO_FILE_H
#define ATT_IO_FILE_H

#include <attscope/context.h>

bool att_file_exists(const char *path);
/* Makes the folder and those above it that are missing; an existing folder is fine. */
att_status att_file_make_folders(att_context *context, const char *path);

/* Reads a regular file whole. *bytes (size + 1 bytes, the last one NUL) is the caller's, freed by att_free(); never
 * NULL after success. ERR_FORMAT where there are more than `cap` bytes. */
att_status att_file_read(att_context *context, const char *path, size_t cap, char **bytes, size_t *size);

/* A regular file mapped for reading; bytes is NULL where it is empty. A file that another process shortens meanwhile
 * kills the reader (SIGBUS): replace files by renaming, as the writer below does. */
typedef struct att_file_map {
    const uint8_t *bytes;
    size_t size;
} att_file_map;
att_status att_file_map_open(att_context *context, const char *path, att_file_map *map);
void att_file_map_close(att_file_map *map);

/* Replaces a file in one step: bytes go to "<path>.tmp" in the same folder, which takes the path's place on commit.
 * Until then, and after any failure, the file at `path` is what it was. A leftover of a killed process is overwritten;
 * a second writer of the same path is refused with ERR_IO while the first is at work, as is a path that exists and is
 * not a regular file. */
typedef struct att_file_writer att_file_writer;
att_status att_file_writer_open(att_context *context, const char *path, att_file_writer **writer);
/* After a failure the writer is still to be aborted (or committed, which then fails). */
att_status att_file_writer_write(att_file_writer *writer, const void *bytes, size_t size);
/* Flushes to the disk, renames, flushes the folder. Frees the writer and sets *writer to NULL in any case; the
 * temporary file is gone after a failure. Where flushing the folder alone fails the new file is in place already. */
att_status att_file_writer_commit(att_file_writer **writer);
/* Removes the temporary file and frees; NULL and pointers to NULL are allowed. */
void att_file_writer_abort(att_file_writer **writer);
/* All of the above for bytes that lie ready. */
att_status att_file_replace(att_context *context, const char *path, const void *bytes, size_t size);

/* A log that grows by whole records. */
typedef struct att_file_appender att_file_appender;
/* Opens or makes the file, cut to its first `keep` bytes (ERR_ARGUMENT where it has fewer). A second appender of the
 * same file is refused with ERR_IO while the first is open. */
att_status att_file_appender_open(att_context *context, const char *path, size_t keep, att_file_appender **appender);
/* Appends one record, all of it or, after a failure, nothing of it. */
att_status att_file_appender_write(att_file_appender *appender, const void *bytes, size_t size);
/* Waits until everything appended is on the disk. */
att_status att_file_appender_sync(att_file_appender *appender);
/* Bytes in the file. */
size_t att_file_appender_size(const att_file_appender *appender);
/* Closes and frees; NULL and pointers to NULL are allowed. */
void att_file_appender_close(att_file_appender **appender);

#endif
