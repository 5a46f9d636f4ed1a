/* io/system.h - calls of the system, repeated while signals interrupt them. */
#ifndef ATT_IO_SYSTEM_H
#define ATT_IO_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <attscope/context.h>

#include "core/export.h"

/* Fails with the system's description of error number `code`: ERR_NOT_FOUND, ERR_MEMORY or ERR_IO. action: past
 * participle for the message, such as "read". */
att_status att_system_fail(att_context *context, int code, const char *path, const char *action);

/* open(), repeated while signals interrupt it. Returns the descriptor, which child processes do not inherit, or -1. */
ATT_FOR_LAB int att_system_open(const char *path, int flags);
/* Opens a file for writing, which is created if it is missing, without following a symbolic link at `path`. flags:
 * further flags of open(). */
int att_system_create(const char *path, int flags);

/* Returns the number of bytes read at the offset, less than `size` only at the end of the file, or -1 on failure. */
ATT_FOR_LAB ssize_t att_system_read_at(int descriptor, void *bytes, size_t size, int64_t offset);
/* Writes all bytes. Returns 0 or an error number. */
int att_system_write(int descriptor, const void *bytes, size_t size);
/* fsync(). Returns 0 or an error number. */
int att_system_sync(int descriptor);

/* Returns whether `path` is the open file. */
bool att_system_is_named(int descriptor, const char *path);

/* Locks the file until the descriptor is closed; ERR_IO if another one has it locked. On a file system without locks,
 * succeeds without one. */
att_status att_system_lock(att_context *context, int descriptor, const char *path);

#endif
