#include "base/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/system.h"

bool att_file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

/* Returns the length of the path. If it does not fit, `path` holds its beginning. */
static size_t join(const char *folder, const char *name, char *path, size_t size)
{
    size_t length = strlen(folder);
    const char *between = length > 0 && folder[length - 1] != '/' ? "/" : "";
    snprintf(path, size, "%s%s%s", folder, between, name);
    return length + strlen(between) + strlen(name);
}

bool att_file_exists_in(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return join(folder, name, path, sizeof path) < sizeof path && att_file_exists(path);
}

bool att_file_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

uint64_t att_file_free_bytes(const char *folder)
{
    struct statvfs info;
    if (statvfs(folder, &info) != 0 || info.f_frsize == 0 || info.f_bavail > UINT64_MAX / info.f_frsize)
        return UINT64_MAX;
    return (uint64_t)info.f_bavail * info.f_frsize;
}

bool att_file_is_same(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

bool att_file_is_in(const char *folder, const char *name, const char *path)
{
    char file[PATH_MAX];
    return join(folder, name, file, sizeof file) < sizeof file && att_file_is_same(file, path);
}

/* Clears `path`. start: the path that does not fit, or its beginning; may be `path`. length: of the whole path. */
static att_status fail_no_room(att_context *context, const char *start, size_t length, char *path, size_t size)
{
    if (length >= PATH_MAX)
        att_context_set_message(context, "\"%.64s...\" is longer than a path may be", start);
    else
        att_context_set_message(context,
                                "the buffer of %zu bytes is too small for a path of %zu bytes and its terminating zero",
                                size, length);
    if (size > 0)
        *path = '\0';
    return ATT_ERR_ARGUMENT;
}

att_status att_path_join(att_context *context, const char *folder, const char *name, char *path, size_t size)
{
    size_t length = join(folder, name, path, size);
    return length < size ? ATT_OK : fail_no_room(context, path, length, path, size);
}

att_status att_path_folder(att_context *context, const char *path, char *folder, size_t size)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    if (length >= size)
        return fail_no_room(context, path, length, folder, size);
    memcpy(folder, path, length);
    folder[length] = '\0';
    return slash ? ATT_OK : att_path_copy(context, ".", folder, size);
}

att_status att_path_copy(att_context *context, const char *from, char *path, size_t size)
{
    size_t length = strlen(from);
    if (length >= size)
        return fail_no_room(context, from, length, path, size);
    memcpy(path, from, length + 1);
    return ATT_OK;
}

static att_status make_folder(att_context *context, const char *path)
{
    if (mkdir(path, 0777) == 0)
        return ATT_OK;
    int code = errno;
    struct stat info;
    if (stat(path, &info) != 0)
        return att_system_fail(context, code, path, "created as a folder");
    if (S_ISDIR(info.st_mode))
        return ATT_OK;
    return att_fail(context, ATT_ERR_IO, "%s is a file, but must be a folder", path);
}

att_status att_file_make_folders(att_context *context, const char *path)
{
    char *prefix = att_copy_string(context, path);
    if (prefix == NULL)
        return att_fail_memory(context, strlen(path) + 1, "a folder's name");
    att_status status = ATT_OK;
    for (char *slash = strchr(prefix + (prefix[0] != '\0'), '/'); slash != NULL && status == ATT_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        status = make_folder(context, prefix);
        *slash = '/';
    }
    if (status == ATT_OK)
        status = make_folder(context, prefix);
    att_free(context, prefix);
    return status;
}

void att_file_look_again(const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (join(folder, name, path, sizeof path) >= sizeof path)
        return;
    int descriptor = att_system_create(path, O_EXCL);
    if (descriptor < 0)
        return;
    close(descriptor);
    unlink(path);
}
