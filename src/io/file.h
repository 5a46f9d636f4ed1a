/* io/file.h - files read whole or in parts, replaced atomically, and appended to.
 *
 * Every message names the path. Errors unless said otherwise: ERR_NOT_FOUND where the path does not exist, ERR_IO for
 * what the system refused, ERR_MEMORY.
 */
#ifndef ATT_IO_FILE_H
#define ATT_IO_FILE_H

#include <attscope/file.h>

#include "core/export.h"

ATT_FOR_LAB bool att_file_exists(const char *path);
/* The same of "FOLDER/NAME". */
ATT_FOR_LAB bool att_file_exists_in(const char *folder, const char *name);

/* Whether both paths lead to one file or folder that exists. */
ATT_FOR_LAB bool att_file_is_same(const char *a, const char *b);

/* These write a path into a buffer of `size` bytes. ERR_ARGUMENT where it does not fit. */

/* "FOLDER/NAME", with one slash between both; NAME where the folder is "". */
ATT_FOR_LAB att_status att_path_join(att_context *context, const char *folder, const char *name, char *path,
                                     size_t size);
/* The folder that a path's last part lies in; "." where the path has no slash. */
ATT_FOR_LAB att_status att_path_folder(att_context *context, const char *path, char *folder, size_t size);
ATT_FOR_LAB att_status att_path_copy(att_context *context, const char *from, char *path, size_t size);

/* Makes the folder and those above it that are missing; an existing folder is fine. */
ATT_FOR_LAB att_status att_file_make_folders(att_context *context, const char *path);

/* Reads a regular file whole. *bytes (size + 1 bytes, the last one NUL) is the caller's, freed by att_free(); never
 * NULL after success. ERR_FORMAT where there are more than `cap` bytes. */
ATT_FOR_LAB att_status att_file_read(att_context *context, const char *path, size_t cap, char **bytes, size_t *size);

/* A regular file of which parts are read. Nothing is mapped into memory: a file that another process shortens meanwhile
 * gives ERR_IO, where a mapping would end the process with SIGBUS. */
typedef struct att_file_reader att_file_reader;
ATT_FOR_LAB att_status att_file_reader_open(att_context *context, const char *path, att_file_reader **reader);
/* Bytes in the file when it was opened. */
ATT_FOR_LAB uint64_t att_file_reader_size(const att_file_reader *reader);
/* Copies `size` bytes from `offset` on; ERR_IO where the file has fewer; ERR_STOPPED. Thread-safe except for the
 * message.
 */
att_status att_file_reader_read(const att_file_reader *reader, uint64_t offset, void *out, size_t size);
/* Closes and frees; NULL and pointers to NULL are allowed. */
ATT_FOR_LAB void att_file_reader_close(att_file_reader **reader);

/* A part of a file in memory, for reading it from front to back; zero-initialise and set the reader, which is not
 * owned.
 */
typedef struct att_file_window {
    att_file_reader *reader;
    uint8_t *block;
    size_t size, capacity;
    uint64_t begin; /* the block holds `size` bytes of the file from here on */
} att_file_window;
/* *bytes: what the file has from `offset` on, valid until the next call; *size: how much of it is there, at least
 * `wanted` or all that is left of the file. The window keeps the memory that the largest call needed. */
ATT_FOR_LAB att_status att_file_window_show(att_file_window *window, uint64_t offset, size_t wanted,
                                            const uint8_t **bytes, size_t *size);
/* The line that begins at `offset`; NULL at the file's end. *length: without its newline, which only the last line of a
 * file may lack (*whole is false then). ERR_FORMAT where it has more than `most` bytes. */
att_status att_file_window_line(att_file_window *window, uint64_t offset, size_t most, const char **line,
                                size_t *length, bool *whole);
ATT_FOR_LAB void att_file_window_free(att_file_window *window);

/* Writing, here and in what follows, is the only way in which the library makes or changes a file, but for the database
 * (tools/check-writes). No symbolic link is followed in a path's last part, and no file with several hard links is
 * changed in place: a folder of runs may come from somebody else, and its links may lead to any file of the user. */

/* Replaces a file in one step, as att_file_replace() does with bytes that lie ready (attscope/file.h). A second writer
 * of the same path is refused with ERR_IO while the first is at work. */
typedef struct att_file_writer att_file_writer;
ATT_FOR_LAB att_status att_file_writer_open(att_context *context, const char *path, att_file_writer **writer);
/* After a failure the writer is still to be aborted (or committed, which then fails). */
ATT_FOR_LAB att_status att_file_writer_write(att_file_writer *writer, const void *bytes, size_t size);
/* Flushes to the disk, renames, flushes the folder. Frees the writer and sets *writer to NULL in any case; the
 * temporary file is gone after a failure. Where flushing the folder alone fails the new file is in place already. */
ATT_FOR_LAB att_status att_file_writer_commit(att_file_writer **writer);
/* Removes the temporary file and frees; NULL and pointers to NULL are allowed. */
ATT_FOR_LAB void att_file_writer_abort(att_file_writer **writer);

/* A log that grows by whole records. */
typedef struct att_file_appender att_file_appender;
/* Opens or makes the file, cut to its first `keep` bytes (ERR_ARGUMENT where it has fewer). Refused with ERR_IO: a
 * symbolic link, a file with several names (hard links), and a second appender of the same file while the first is
 * open. */
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
