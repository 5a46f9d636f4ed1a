/* io/file.h - reads files whole or in parts, replaces files atomically, and appends to files.
 *
 * Every error message contains the path. Errors, unless stated otherwise: ERR_NOT_FOUND if the path does not exist,
 * ERR_IO if a system call fails, ERR_MEMORY.
 */
#ifndef ATT_IO_FILE_H
#define ATT_IO_FILE_H

#include <attscope/file.h>

#include "base/core/export.h"

ATT_FOR_LAB bool att_file_exists(const char *path);
/* Returns whether "FOLDER/NAME" exists. */
ATT_FOR_LAB bool att_file_exists_in(const char *folder, const char *name);

ATT_FOR_LAB bool att_file_is_folder(const char *path);
/* Bytes that this user can still write to the file system of an existing folder; UINT64_MAX if that is not known. */
ATT_FOR_LAB uint64_t att_file_free_bytes(const char *folder);

/* Returns whether both paths lead to the same existing file or folder. */
ATT_FOR_LAB bool att_file_is_same(const char *a, const char *b);
/* Returns whether `path` leads to the existing file "FOLDER/NAME". */
ATT_FOR_LAB bool att_file_is_in(const char *folder, const char *name, const char *path);

/* The next three functions write a path into a buffer of `size` bytes. If it does not fit, they write "" and fail with
 * ERR_ARGUMENT. */

/* Writes "FOLDER/NAME" with one slash between both, or NAME if the folder is "". */
ATT_FOR_LAB att_status att_path_join(att_context *context, const char *folder, const char *name, char *path,
                                     size_t size);
/* Writes the folder that contains the path's last part, or "." if the path has no slash. */
ATT_FOR_LAB att_status att_path_folder(att_context *context, const char *path, char *folder, size_t size);
ATT_FOR_LAB att_status att_path_copy(att_context *context, const char *from, char *path, size_t size);

/* Makes later look-ups in the folder show what other machines wrote before this call. Without it, a network file system
 * may answer from a cache for up to a minute, in particular that a file does not exist. name: a name that no other
 * process uses; a file of this name is created and removed. Does nothing if that fails. */
ATT_FOR_LAB void att_file_look_again(const char *folder, const char *name);

/* Reads a whole regular file. Fails with ERR_FORMAT if it has more than `cap` bytes. After success, *bytes is not NULL
 * and has *size + 1 bytes, of which the last is NUL; caller frees it with att_free(). */
ATT_FOR_LAB att_status att_file_read(att_context *context, const char *path, size_t cap, char **bytes, size_t *size);

/* Reads parts of a regular file. The file is not mapped into memory: if another process truncates it, reading fails
 * with ERR_IO, whereas a mapping would end this process with SIGBUS. */
typedef struct att_file_reader att_file_reader;
ATT_FOR_LAB att_status att_file_reader_open(att_context *context, const char *path, att_file_reader **reader);
/* Makes a reader of `size` bytes of the file from offset `begin` on, which must be inside it, as of a file of its own.
 * The other reader must outlive it. */
att_status att_file_reader_open_part(const att_file_reader *of, uint64_t begin, uint64_t size, att_file_reader **part);
/* Size of the file in bytes when it was opened. */
ATT_FOR_LAB uint64_t att_file_reader_size(const att_file_reader *reader);
/* Fails with ERR_IO if the file was written since it was opened. A file of its name that took its place, as by a
 * rename, does not count: the reader keeps the old one. */
att_status att_file_reader_check(const att_file_reader *reader);
/* Copies `size` bytes, starting at `offset`. Errors: ERR_IO, also if the file is too short; ERR_STOPPED. Thread-safe
 * except for the error message. */
att_status att_file_reader_read(const att_file_reader *reader, uint64_t offset, void *out, size_t size);
/* Closes the file, frees the reader and sets *reader to NULL. NULL and pointers to NULL are allowed. */
ATT_FOR_LAB void att_file_reader_close(att_file_reader **reader);

/* A buffer for reading a file from front to back. Zero-initialise, then set `reader`, which the window does not own. */
typedef struct att_file_window {
    att_file_reader *reader;
    uint8_t *block;
    size_t size, capacity;
    uint64_t begin; /* `block` holds `size` bytes of the file, starting at this offset */
} att_file_window;
/* Sets *bytes to the file's bytes at `offset`, valid until the next call, and *size to how many are buffered: at least
 * `wanted`, or the rest of the file if that is shorter. The buffer grows to the largest `wanted` and never shrinks. */
ATT_FOR_LAB att_status att_file_window_peek(att_file_window *window, uint64_t offset, size_t wanted,
                                            const uint8_t **bytes, size_t *size);
/* Reads the line that begins at `offset`. *line: NULL at the end of the file. *length: without the newline. *whole:
 * false if the newline is missing, which can happen at the end of the file only. Fails with ERR_FORMAT if the line has
 * more than `most` bytes. */
att_status att_file_window_line(att_file_window *window, uint64_t offset, size_t most, const char **line,
                                size_t *length, bool *whole);
ATT_FOR_LAB void att_file_window_free(att_file_window *window);

/* Except for the database, the library creates and changes files only through the writer and the appender below
 * (tools/check-writes). They do not follow a symbolic link in a path's last part, and do not change a file with several
 * hard links in place. Reason: a folder of runs may come from another person, and its links may lead to any file of the
 * user. Both make no change that the context's guard refuses (att_context_guard_writes()). */

/* Copies the file `from` to `to`, which is replaced atomically. If both are the same path, a process that has the old
 * file open no longer changes the file at this path. */
ATT_FOR_LAB att_status att_file_copy(att_context *context, const char *from, const char *to);
/* Adds the lines of the file `from` at the end of the file `to`, which is made if it is missing and replaced atomically
 * otherwise. */
att_status att_file_add_lines(att_context *context, const char *from, const char *to);

/* Replaces a file atomically, like att_file_replace() (attscope/file.h), but takes the bytes in several calls. Opening
 * a second writer for the same path fails with ERR_IO. */
typedef struct att_file_writer att_file_writer;
ATT_FOR_LAB att_status att_file_writer_open(att_context *context, const char *path, att_file_writer **writer);
/* After a failure, caller must still abort the writer, or commit it, which then fails with the same status. */
ATT_FOR_LAB att_status att_file_writer_write(att_file_writer *writer, const void *bytes, size_t size);
/* Writes at a place of the file, which later calls of att_file_writer_write() do not notice. What no call writes is 0.
 * After a failure: as above. */
ATT_FOR_LAB att_status att_file_writer_place(att_file_writer *writer, uint64_t offset, const void *bytes, size_t size);
/* Flushes the file to the disk, renames it and flushes its folder. Always frees the writer and sets *writer to NULL.
 * A failure removes the temporary file. If only flushing the folder fails, the new file is already in place. */
ATT_FOR_LAB att_status att_file_writer_commit(att_file_writer **writer);
/* Commits a file together with `beside` in the same folder, which describes it and whose new content is *second's. If
 * *second is NULL, there is to be no such file. Both are on the disk before the old `beside` is removed; then the first
 * takes its place, then the second. After a failure to flush or to remove, the old files are unchanged. If the process
 * ends before all is done, there is no `beside`. In any case both writers are freed and set to NULL. */
att_status att_file_writer_commit_with(att_file_writer **first, const char *beside, att_file_writer **second);
/* Removes the temporary file, frees the writer and sets *writer to NULL. NULL and pointers to NULL are allowed. */
ATT_FOR_LAB void att_file_writer_abort(att_file_writer **writer);

/* A lock between processes and threads: flock() on an empty file, as Python's filelock takes it, or on a folder. */
typedef struct att_file_lock att_file_lock;
/* Takes the lock, and waits for it if another process or thread has it. If `path` is not a folder, creates the file if
 * it is missing; its folder must exist. what: for a line of the log that says why this call waits. On a file system
 * without locks, succeeds without one. Errors: ERR_STOPPED (att_settings.stop), ERR_IO. */
att_status att_file_lock_take(att_context *context, const char *path, const char *what, att_file_lock **lock);
/* Releases the lock, frees it and sets *lock to NULL. The file stays. NULL and pointers to NULL are allowed. */
void att_file_lock_release(att_file_lock **lock);

/* Appends whole records to a file. */
typedef struct att_file_appender att_file_appender;
/* Opens or creates the file and truncates it to its first `keep` bytes. Errors: ERR_ARGUMENT if the file is shorter;
 * ERR_IO, also if the path is a symbolic link, the file has several hard links, or another appender has it open. */
att_status att_file_appender_open(att_context *context, const char *path, size_t keep, att_file_appender **appender);
/* Appends one record. A failure appends nothing. */
att_status att_file_appender_write(att_file_appender *appender, const void *bytes, size_t size);
/* Waits until all appended records are on the disk. */
att_status att_file_appender_sync(att_file_appender *appender);
/* Closes the file, frees the appender and sets *appender to NULL. NULL and pointers to NULL are allowed. */
void att_file_appender_close(att_file_appender **appender);

#endif
