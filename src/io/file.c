#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "core/context.h"
#include "core/error.h"
#include "core/memory.h"

enum { FIRST_READ = 1 << 16, MOST_READ = 1 << 22 };

/* Fails with the system's description of error number `code`. action: past participle for the message, such as "read".
 */
static att_status fail_system(att_context *context, int code, const char *path, const char *action)
{
    char reason[128];
    if (strerror_r(code, reason, sizeof(reason)) != 0)
        snprintf(reason, sizeof(reason), "the system's error %d", code);
    att_status status = code == ENOENT ? ATT_ERR_NOT_FOUND : code == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO;
    return att_fail(context, status, "%s could not be %s: %s", path, action, reason);
}

static int open_retrying(const char *path, int flags)
{
    int descriptor;
    do
        descriptor = open(path, flags | O_CLOEXEC, 0666);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

/* Opens a file for writing without following a symbolic link at `path`. */
static int open_for_writing(const char *path, int flags)
{
    return open_retrying(path, O_WRONLY | O_CREAT | O_NOFOLLOW | flags);
}

static bool is_link(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

/* Returns 0 or an error number. */
static int write_all(int descriptor, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(descriptor, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : ENOSPC;
        bytes += written;
        size -= (size_t)written;
    }
    return 0;
}

static int sync_retrying(int descriptor)
{
    int result;
    do
        result = fsync(descriptor);
    while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

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
        return fail_system(context, code, path, "created as a folder");
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
    int descriptor = open_for_writing(path, O_EXCL);
    if (descriptor < 0)
        return;
    close(descriptor);
    unlink(path);
}

/* Reads to the end of the file, growing the block; stops after cap + 1 bytes. */
static att_status read_descriptor(att_context *context, const char *path, int descriptor, size_t cap, char **bytes,
                                  size_t *size)
{
    size_t limit = cap < SIZE_MAX - 2 ? cap + 1 : SIZE_MAX - 1;
    size_t capacity = 0;
    for (;;) {
        if (*size == capacity) {
            size_t grown = capacity == 0 ? FIRST_READ : capacity > limit / 2 ? limit : capacity * 2;
            grown = grown < limit ? grown : limit;
            char *block = att_reallocate(context, *bytes, grown + 1);
            if (block == NULL)
                return att_fail_memory(context, grown + 1, path);
            *bytes = block;
            capacity = grown;
        }
        ssize_t got = read(descriptor, *bytes + *size, capacity - *size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_system(context, errno, path, "read");
        *size += (size_t)got;
        if (*size > cap)
            return att_fail(context, ATT_ERR_FORMAT, "%s is larger than the limit of %zu bytes for such a file", path,
                            cap);
        if (got == 0)
            break;
    }
    (*bytes)[*size] = '\0';
    return ATT_OK;
}

/* Opens a regular file for reading. */
static att_status open_regular(att_context *context, const char *path, int *descriptor, struct stat *info)
{
    /* O_NONBLOCK: opening a pipe must not wait for its writer. */
    *descriptor = open_retrying(path, O_RDONLY | O_NONBLOCK);
    if (*descriptor < 0)
        return fail_system(context, errno, path, "opened");
    att_status status = ATT_OK;
    if (fstat(*descriptor, info) != 0)
        status = fail_system(context, errno, path, "examined");
    else if (!S_ISREG(info->st_mode))
        status = att_fail(context, ATT_ERR_IO, "%s is not a regular file", path);
    if (status != ATT_OK)
        close(*descriptor);
    return status;
}

att_status att_file_read(att_context *context, const char *path, size_t cap, char **bytes, size_t *size)
{
    int descriptor;
    struct stat info;
    ATT_TRY(open_regular(context, path, &descriptor, &info));
    char *block = NULL;
    size_t length = 0;
    att_status status = read_descriptor(context, path, descriptor, cap, &block, &length);
    close(descriptor);
    if (status != ATT_OK) {
        att_free(context, block);
        return status;
    }
    *bytes = block;
    *size = length;
    return ATT_OK;
}

struct att_file_reader {
    att_context *context;
    char *path;
    int descriptor;
    uint64_t size;
};

static att_status start_reader(att_file_reader *reader, const char *path)
{
    reader->path = att_copy_string(reader->context, path);
    if (reader->path == NULL)
        return att_fail_memory(reader->context, strlen(path) + 1, path);
    struct stat info;
    ATT_TRY(open_regular(reader->context, path, &reader->descriptor, &info));
    reader->size = (uint64_t)info.st_size;
    return ATT_OK;
}

att_status att_file_reader_open(att_context *context, const char *path, att_file_reader **reader)
{
    att_file_reader *created = att_allocate(context, sizeof(*created));
    if (created == NULL)
        return att_fail_memory(context, sizeof(*created), path);
    created->context = context;
    created->descriptor = -1;
    att_status status = start_reader(created, path);
    if (status != ATT_OK)
        att_file_reader_close(&created);
    else
        *reader = created;
    return status;
}

uint64_t att_file_reader_size(const att_file_reader *reader)
{
    return reader->size;
}

att_status att_file_reader_read(const att_file_reader *reader, uint64_t offset, void *out, size_t size)
{
    for (size_t done = 0; done < size;) {
        size_t some = size - done < MOST_READ ? size - done : MOST_READ;
        ATT_TRY(att_check_stop(reader->context, reader->path));
        ssize_t got = pread(reader->descriptor, (char *)out + done, some, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_system(reader->context, errno, reader->path, "read");
        if (got == 0)
            return att_fail(reader->context, ATT_ERR_IO,
                            "%s ended at byte %" PRIu64 " while it was read, and had %" PRIu64
                            " bytes when it was opened; another program is writing it: try again once it is complete",
                            reader->path, offset + done, reader->size);
        done += (size_t)got;
    }
    return ATT_OK;
}

void att_file_reader_close(att_file_reader **reader)
{
    if (reader == NULL || *reader == NULL)
        return;
    att_file_reader *done = *reader;
    if (done->descriptor >= 0)
        close(done->descriptor);
    att_free(done->context, done->path);
    att_free(done->context, done);
    *reader = NULL;
}

att_status att_file_window_peek(att_file_window *window, uint64_t offset, size_t wanted, const uint8_t **bytes,
                                size_t *size)
{
    const att_file_reader *reader = window->reader;
    uint64_t left = offset < reader->size ? reader->size - offset : 0;
    size_t count = left < wanted ? (size_t)left : wanted;
    uint64_t behind = window->begin + window->size;
    if (count > 0 && (offset < window->begin || offset > behind || behind - offset < count)) {
        if (count > window->capacity) {
            uint8_t *block = att_reallocate(reader->context, window->block, count);
            if (block == NULL)
                return att_fail_memory(reader->context, count, reader->path);
            window->block = block;
            window->capacity = count;
        }
        size_t most = left < window->capacity ? (size_t)left : window->capacity;
        window->size = 0;
        ATT_TRY(att_file_reader_read(reader, offset, window->block, most));
        window->begin = offset;
        window->size = most;
        behind = offset + most;
    }
    *bytes = count > 0 ? window->block + (offset - window->begin) : window->block;
    *size = count > 0 ? (size_t)(behind - offset) : 0;
    return ATT_OK;
}

att_status att_file_window_line(att_file_window *window, uint64_t offset, size_t most, const char **line,
                                size_t *length, bool *whole)
{
    const att_file_reader *reader = window->reader;
    uint64_t left = offset < reader->size ? reader->size - offset : 0;
    bool shown = offset >= window->begin && offset < window->begin + window->size;
    for (size_t wanted = shown ? 1 : FIRST_READ;;) {
        const uint8_t *bytes = NULL;
        size_t size = 0;
        ATT_TRY(att_file_window_peek(window, offset, wanted, &bytes, &size));
        const uint8_t *end = size > 0 ? memchr(bytes, '\n', size) : NULL;
        *line = left > 0 ? (const char *)bytes : NULL;
        *length = end != NULL ? (size_t)(end - bytes) : size;
        *whole = end != NULL;
        if (*length > most)
            return att_fail(reader->context, ATT_ERR_FORMAT, "%s: a line of more than %zu bytes", reader->path, most);
        if (end != NULL || size >= left)
            return ATT_OK;
        wanted = size < most ? 2 * size + 1 : SIZE_MAX;
    }
}

void att_file_window_free(att_file_window *window)
{
    if (window->reader != NULL)
        att_free(window->reader->context, window->block);
    *window = (att_file_window){.reader = NULL};
}

struct att_file_writer {
    att_context *context;
    char *path, *temporary;
    int descriptor;
    att_status status; /* the first failure; commit repeats it */
};

static void free_writer(att_file_writer *writer)
{
    if (writer->descriptor >= 0)
        close(writer->descriptor);
    att_free(writer->context, writer->path);
    att_free(writer->context, writer->temporary);
    att_free(writer->context, writer);
}

/* Locks the file until the descriptor is closed. On a file system without locks, succeeds without one. */
static att_status lock_file(att_context *context, int descriptor, const char *path)
{
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return att_fail(context, ATT_ERR_IO, "%s is being written by another process or thread", path);
    return ATT_OK;
}

/* Returns whether `path` is the open file. */
static bool is_named(int descriptor, const char *path)
{
    struct stat opened, named;
    return fstat(descriptor, &opened) == 0 && lstat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

static att_status remove_temporary(const att_file_writer *writer)
{
    if (unlink(writer->temporary) == 0 || errno == ENOENT)
        return ATT_OK;
    return fail_system(writer->context, errno, writer->temporary, "removed");
}

/* Removes a file with the temporary file's name that a killed process or another program left. Fails if the file is
 * locked, since another writer is then using it. */
static att_status remove_leftover(const att_file_writer *writer)
{
    int descriptor = open_retrying(writer->temporary, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0)
        return remove_temporary(writer);
    att_status status = lock_file(writer->context, descriptor, writer->path);
    if (status == ATT_OK && is_named(descriptor, writer->temporary))
        status = remove_temporary(writer);
    close(descriptor);
    return status;
}

/* Creates and locks the temporary file. Before it is locked, another writer may take it for a leftover and remove it;
 * then this function tries again. */
static att_status open_temporary(att_file_writer *writer)
{
    for (;;) {
        writer->descriptor = open_for_writing(writer->temporary, O_EXCL);
        if (writer->descriptor < 0 && errno != EEXIST)
            return fail_system(writer->context, errno, writer->temporary, "created");
        if (writer->descriptor < 0) {
            ATT_TRY(remove_leftover(writer));
            continue;
        }
        ATT_TRY(lock_file(writer->context, writer->descriptor, writer->path));
        if (is_named(writer->descriptor, writer->temporary))
            return ATT_OK;
        close(writer->descriptor);
    }
}

static att_status start_writer(att_file_writer *writer, const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return att_fail(writer->context, ATT_ERR_IO, "%s exists and is not a regular file; it is not replaced", path);
    size_t length = strlen(path);
    writer->path = att_copy_string(writer->context, path);
    writer->temporary = att_allocate(writer->context, length + sizeof(".tmp"));
    if (writer->path == NULL || writer->temporary == NULL)
        return att_fail_memory(writer->context, length, path);
    memcpy(writer->temporary, path, length);
    memcpy(writer->temporary + length, ".tmp", sizeof(".tmp"));
    return open_temporary(writer);
}

att_status att_file_writer_open(att_context *context, const char *path, att_file_writer **writer)
{
    att_file_writer *created = att_allocate(context, sizeof(*created));
    if (created == NULL)
        return att_fail_memory(context, sizeof(*created), path);
    created->context = context;
    created->descriptor = -1;
    att_status status = start_writer(created, path);
    if (status != ATT_OK) {
        free_writer(created);
        return status;
    }
    *writer = created;
    return ATT_OK;
}

att_status att_file_writer_write(att_file_writer *writer, const void *bytes, size_t size)
{
    if (writer->status != ATT_OK)
        return writer->status;
    int code = write_all(writer->descriptor, bytes, size);
    if (code != 0)
        writer->status = fail_system(writer->context, code, writer->path, "written");
    return writer->status;
}

att_status att_file_writer_place(att_file_writer *writer, uint64_t offset, const void *bytes, size_t size)
{
    const char *from = bytes;
    while (writer->status == ATT_OK && size > 0) {
        ssize_t done = pwrite(writer->descriptor, from, size, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return writer->status = fail_system(writer->context, done < 0 ? errno : ENOSPC, writer->path, "written");
        from += done;
        offset += (uint64_t)done;
        size -= (size_t)done;
    }
    return writer->status;
}

static att_status sync_folder_of(att_context *context, char *path)
{
    char *slash = strrchr(path, '/');
    char saved = '\0';
    if (slash != NULL) {
        slash += slash == path; /* the root keeps its slash */
        saved = *slash;
        *slash = '\0';
    }
    int descriptor = open_retrying(slash != NULL ? path : ".", O_RDONLY | O_DIRECTORY);
    int code = descriptor < 0 ? errno : sync_retrying(descriptor);
    if (descriptor >= 0)
        close(descriptor);
    if (slash != NULL)
        *slash = saved;
    /* Not errors: EINVAL (the file system does not flush folders) and EACCES (the folder is not readable). */
    if (code == 0 || code == EINVAL || code == EACCES)
        return ATT_OK;
    return fail_system(context, code, path, "flushed to the disk with its folder");
}

/* Flushes and renames the temporary file. The descriptor, and so the lock, stays open until the file is renamed. An
 * error of close() would not matter: fsync() has already reported every delayed write error. */
static att_status finish_temporary(att_file_writer *writer)
{
    if (writer->status != ATT_OK)
        return writer->status;
    int code = sync_retrying(writer->descriptor);
    if (code != 0)
        return fail_system(writer->context, code, writer->path, "flushed to the disk");
    ATT_TRY(att_context_check_write(writer->context, writer->path));
    if (!is_named(writer->descriptor, writer->temporary))
        return att_fail(writer->context, ATT_ERR_IO, "%s could not be written: another process removed %s",
                        writer->path, writer->temporary);
    if (rename(writer->temporary, writer->path) != 0)
        return fail_system(writer->context, errno, writer->path, "moved into place");
    return ATT_OK;
}

att_status att_file_writer_commit(att_file_writer **writer)
{
    att_file_writer *done = *writer;
    att_status status = finish_temporary(done);
    if (status != ATT_OK) {
        att_file_writer_abort(writer);
        return status;
    }
    *writer = NULL;
    status = sync_folder_of(done->context, done->path);
    free_writer(done);
    return status;
}

void att_file_writer_abort(att_file_writer **writer)
{
    if (writer == NULL || *writer == NULL)
        return;
    unlink((*writer)->temporary);
    free_writer(*writer);
    *writer = NULL;
}

att_status att_file_replace(att_context *context, const char *path, const void *bytes, size_t size)
{
    att_file_writer *writer = NULL;
    ATT_TRY(att_file_writer_open(context, path, &writer));
    att_status status = att_file_writer_write(writer, bytes, size);
    if (status == ATT_OK)
        return att_file_writer_commit(&writer);
    att_file_writer_abort(&writer);
    return status;
}

static att_status copy_bytes(const att_file_reader *from, att_file_writer *to)
{
    enum { BLOCK = 1 << 14 };
    char block[BLOCK];
    uint64_t size = att_file_reader_size(from);
    for (uint64_t done = 0; done < size;) {
        size_t count = size - done < sizeof block ? (size_t)(size - done) : sizeof block;
        ATT_TRY(att_file_reader_read(from, done, block, count));
        ATT_TRY(att_file_writer_write(to, block, count));
        done += count;
    }
    return ATT_OK;
}

att_status att_file_copy(att_context *context, const char *from, const char *to)
{
    att_file_reader *reader = NULL;
    att_file_writer *file = NULL;
    ATT_TRY(att_file_reader_open(context, from, &reader));
    att_status status = att_file_writer_open(context, to, &file);
    if (status == ATT_OK)
        status = copy_bytes(reader, file);
    if (status == ATT_OK)
        status = att_file_writer_commit(&file);
    att_file_writer_abort(&file);
    att_file_reader_close(&reader);
    return status;
}

struct att_file_lock {
    att_context *context;
    int descriptor;
};

/* Waits a tenth of a second at a time, so that a request to stop is noticed. */
static att_status wait_for_lock(att_context *context, int descriptor, const char *path, const char *what)
{
    const struct timespec tenth = {.tv_nsec = 100 * 1000 * 1000};
    bool told = false;
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return ATT_OK;
        if (!told)
            att_log(context, ATT_LOG_INFO, "waiting for another process: %s", what);
        told = true;
        ATT_TRY(att_check_stop(context, path));
        nanosleep(&tenth, NULL);
    }
    return ATT_OK;
}

/* The process that had the lock may have removed the file; then another process could lock a new one. */
static att_status take_lock(att_file_lock *lock, const char *path, const char *what)
{
    for (;;) {
        lock->descriptor = open_for_writing(path, 0);
        if (lock->descriptor < 0)
            return fail_system(lock->context, errno, path, "opened as a lock");
        ATT_TRY(wait_for_lock(lock->context, lock->descriptor, path, what));
        if (is_named(lock->descriptor, path))
            return ATT_OK;
        close(lock->descriptor);
        lock->descriptor = -1;
    }
}

att_status att_file_lock_take(att_context *context, const char *path, const char *what, att_file_lock **lock)
{
    att_file_lock *created = att_allocate(context, sizeof *created);
    if (created == NULL)
        return att_fail_memory(context, sizeof *created, path);
    *created = (att_file_lock){.context = context, .descriptor = -1};
    att_status status = take_lock(created, path, what);
    if (status == ATT_OK)
        *lock = created;
    else
        att_file_lock_release(&created);
    return status;
}

void att_file_lock_release(att_file_lock **lock)
{
    if (lock == NULL || *lock == NULL)
        return;
    if ((*lock)->descriptor >= 0)
        close((*lock)->descriptor);
    att_free((*lock)->context, *lock);
    *lock = NULL;
}

struct att_file_appender {
    att_context *context;
    char *path;
    int descriptor;
    size_t size;
};

static att_status start_appender(att_file_appender *appender, const char *path, size_t keep)
{
    att_context *context = appender->context;
    appender->path = att_copy_string(context, path);
    if (appender->path == NULL)
        return att_fail_memory(context, strlen(path) + 1, path);
    ATT_TRY(att_context_check_write(context, path));
    appender->descriptor = open_for_writing(path, O_APPEND | O_NONBLOCK);
    struct stat info;
    if (appender->descriptor < 0 && is_link(path))
        return att_fail(context, ATT_ERR_IO,
                        "%s is a symbolic link, which is not followed for writing: remove it, or put the file that it "
                        "leads to in its place",
                        path);
    if (appender->descriptor < 0 || fstat(appender->descriptor, &info) != 0)
        return fail_system(context, errno, path, "opened for appending");
    if (!S_ISREG(info.st_mode))
        return att_fail(context, ATT_ERR_IO, "%s exists and is not a regular file", path);
    if (info.st_nlink > 1)
        return att_fail(
            context, ATT_ERR_IO,
            "%s has %llu names (hard links), and writing to it would change the file under all of them: put "
            "a copy of it in its place",
            path, (unsigned long long)info.st_nlink);
    ATT_TRY(lock_file(context, appender->descriptor, path));
    if ((uint64_t)info.st_size < keep)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s has %lld bytes; expected at least %zu", path,
                        (long long)info.st_size, keep);
    if (ftruncate(appender->descriptor, (off_t)keep) != 0)
        return fail_system(context, errno, path, "truncated");
    appender->size = keep;
    return ATT_OK;
}

att_status att_file_appender_open(att_context *context, const char *path, size_t keep, att_file_appender **appender)
{
    att_file_appender *created = att_allocate(context, sizeof(*created));
    if (created == NULL)
        return att_fail_memory(context, sizeof(*created), path);
    created->context = context;
    created->descriptor = -1;
    att_status status = start_appender(created, path, keep);
    if (status != ATT_OK) {
        att_file_appender_close(&created);
        return status;
    }
    *appender = created;
    return ATT_OK;
}

att_status att_file_appender_write(att_file_appender *appender, const void *bytes, size_t size)
{
    ATT_TRY(att_context_check_write(appender->context, appender->path));
    int code = write_all(appender->descriptor, bytes, size);
    if (code != 0) {
        if (ftruncate(appender->descriptor, (off_t)appender->size) != 0)
            return fail_system(appender->context, code, appender->path,
                               "appended to, nor its incomplete last record removed");
        return fail_system(appender->context, code, appender->path, "appended to");
    }
    appender->size += size;
    return ATT_OK;
}

att_status att_file_appender_sync(att_file_appender *appender)
{
    int code = sync_retrying(appender->descriptor);
    return code == 0 ? ATT_OK : fail_system(appender->context, code, appender->path, "flushed to the disk");
}

size_t att_file_appender_size(const att_file_appender *appender)
{
    return appender->size;
}

void att_file_appender_close(att_file_appender **appender)
{
    if (appender == NULL || *appender == NULL)
        return;
    att_file_appender *done = *appender;
    if (done->descriptor >= 0)
        close(done->descriptor);
    att_free(done->context, done->path);
    att_free(done->context, done);
    *appender = NULL;
}
