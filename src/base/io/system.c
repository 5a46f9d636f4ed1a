#include "base/io/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/core/error.h"

att_status att_system_fail(att_context *context, int code, const char *path, const char *action)
{
    char reason[128];
    if (code == ENXIO)
        return att_fail(context, ATT_ERR_IO, "%s is not a regular file", path);
    if (strerror_r(code, reason, sizeof(reason)) != 0)
        snprintf(reason, sizeof(reason), "the system's error %d", code);
    att_status status = code == ENOENT ? ATT_ERR_NOT_FOUND : code == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO;
    return att_fail(context, status, "%s could not be %s: %s", path, action, reason);
}

int att_system_open(const char *path, int flags)
{
    int descriptor;
    do
        descriptor = open(path, flags | O_CLOEXEC, 0666);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

int att_system_open_regular(const char *path, int flags, struct stat *info)
{
    int descriptor = att_system_open(path, flags | O_NONBLOCK);
    if (descriptor < 0 || (fstat(descriptor, info) == 0 && S_ISREG(info->st_mode)))
        return descriptor;
    close(descriptor);
    errno = ENXIO;
    return -1;
}

enum { WRITING = O_WRONLY | O_CREAT | O_NOFOLLOW };

int att_system_create(const char *path, int flags)
{
    return att_system_open(path, WRITING | flags);
}

att_status att_system_open_writable(att_context *context, const char *path, int flags, int *descriptor,
                                    struct stat *info)
{
    *descriptor = att_system_open_regular(path, WRITING | flags, info);
    if (*descriptor >= 0)
        return ATT_OK;
    int code = errno;
    if (att_system_is_link(path))
        return att_fail(context, ATT_ERR_IO,
                        "%s is a symbolic link, which is not followed for writing: remove it, or put the file that it "
                        "leads to in its place",
                        path);
    return att_system_fail(context, code, path, "opened for writing");
}

bool att_system_is_link(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

ssize_t att_system_read_at(int descriptor, void *bytes, size_t size, int64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(descriptor, (char *)bytes + done, size - done, (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

size_t att_system_read_start(const char *path, void *bytes, size_t size)
{
    struct stat info;
    int descriptor = att_system_open_regular(path, O_RDONLY, &info);
    ssize_t got = descriptor >= 0 ? att_system_read_at(descriptor, bytes, size, 0) : 0;
    if (descriptor >= 0)
        close(descriptor);
    return got > 0 ? (size_t)got : 0;
}

int att_system_write(int descriptor, const void *bytes, size_t size)
{
    const char *left = bytes;
    while (size > 0) {
        ssize_t written = write(descriptor, left, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : ENOSPC;
        left += written;
        size -= (size_t)written;
    }
    return 0;
}

int att_system_sync(int descriptor)
{
    int result;
    do
        result = fsync(descriptor);
    while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

bool att_system_is_named(int descriptor, const char *path)
{
    struct stat opened, named;
    return fstat(descriptor, &opened) == 0 && lstat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

att_status att_system_lock(att_context *context, int descriptor, const char *path)
{
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return att_fail(context, ATT_ERR_IO,
                        "%s is being written by another process or thread; try again when that has ended", path);
    return ATT_OK;
}
