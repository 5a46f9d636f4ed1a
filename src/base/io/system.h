/* io/system.h - calls of the system, repeated while signals interrupt them. */
#ifndef ATT_IO_SYSTEM_H
#define ATT_IO_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <attscope/context.h>

#include "base/core/export.h"

/* Fails with the system's description of error number `code`: ERR_NOT_FOUND, ERR_MEMORY or ERR_IO. action: past
 * participle for the message, such as "read". */
ATT_FOR_LAB att_status att_system_fail(att_context *context, int code, const char *path, const char *action);

/* open(), repeated while signals interrupt it. Returns the descriptor, which child processes do not inherit, or -1. */
int att_system_open(const char *path, int flags);
/* As att_system_open(), but opens regular files only, and never waits: opening a pipe would wait for its other end.
 * *info: facts about the file. For another kind of file, errno is ENXIO, which att_system_fail() puts into words. */
ATT_FOR_LAB int att_system_open_regular(const char *path, int flags, struct stat *info);
/* Opens a file for writing, which is created if it is missing, without following a symbolic link at `path`. flags:
 * further flags of open(). */
int att_system_create(const char *path, int flags);
/* Does the same for regular files only, and never waits. Fails with ERR_IO, for a link with a sentence that says how to
 * go on. */
att_status att_system_open_writable(att_context *context, const char *path, int flags, int *descriptor,
                                    struct stat *info);

/* Returns the number of bytes read at the offset, less than `size` only at the end of the file, or -1 on failure. */
ATT_FOR_LAB ssize_t att_system_read_at(int descriptor, void *bytes, size_t size, int64_t offset);
/* Reads the first bytes of a regular file. Returns their number, 0 if the file cannot be read. */
size_t att_system_read_start(const char *path, void *bytes, size_t size);
/* Writes all bytes. Returns 0 or an error number. */
int att_system_write(int descriptor, const void *bytes, size_t size);
/* fsync(). Returns 0 or an error number. */
int att_system_sync(int descriptor);

bool att_system_is_link(const char *path);
/* Returns whether `path` is the open file. */
bool att_system_is_named(int descriptor, const char *path);

/* Locks the file until the descriptor is closed; ERR_IO if another one has it locked. On a file system without locks,
 * succeeds without one. */
att_status att_system_lock(att_context *context, int descriptor, const char *path);

#endif
