#include "base/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/system.h"

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

static att_status remove_temporary(const att_file_writer *writer)
{
    if (unlink(writer->temporary) == 0 || errno == ENOENT)
        return ATT_OK;
    return att_system_fail(writer->context, errno, writer->temporary, "removed");
}

/* Removes a file with the temporary file's name that a killed process or another program left. Fails if the file is
 * locked, since another writer is then using it. */
static att_status remove_leftover(const att_file_writer *writer)
{
    int descriptor = att_system_open(writer->temporary, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0)
        return remove_temporary(writer);
    att_status status = att_system_lock(writer->context, descriptor, writer->path);
    if (status == ATT_OK && att_system_is_named(descriptor, writer->temporary))
        status = remove_temporary(writer);
    close(descriptor);
    return status;
}

/* Creates and locks the temporary file. Before it is locked, another writer may take it for a leftover and remove it;
 * then this function tries again. */
static att_status open_temporary(att_file_writer *writer)
{
    for (;;) {
        writer->descriptor = att_system_create(writer->temporary, O_EXCL);
        if (writer->descriptor < 0 && errno != EEXIST)
            return att_system_fail(writer->context, errno, writer->temporary, "created");
        if (writer->descriptor < 0) {
            ATT_TRY(remove_leftover(writer));
            continue;
        }
        ATT_TRY(att_system_lock(writer->context, writer->descriptor, writer->path));
        if (att_system_is_named(writer->descriptor, writer->temporary))
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
    att_file_writer *created;
    ATT_TRY(att_new(context, &created, 1, path));
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
    int code = att_system_write(writer->descriptor, bytes, size);
    if (code != 0)
        writer->status = att_system_fail(writer->context, code, writer->path, "written");
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
            return writer->status =
                       att_system_fail(writer->context, done < 0 ? errno : ENOSPC, writer->path, "written");
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
    int descriptor = att_system_open(slash != NULL ? path : ".", O_RDONLY | O_DIRECTORY);
    int code = descriptor < 0 ? errno : att_system_sync(descriptor);
    if (descriptor >= 0)
        close(descriptor);
    if (slash != NULL)
        *slash = saved;
    /* Not errors: EINVAL (the file system does not flush folders) and EACCES (the folder is not readable). */
    if (code == 0 || code == EINVAL || code == EACCES)
        return ATT_OK;
    return att_system_fail(context, code, path, "flushed to the disk with its folder");
}

/* Flushes the temporary file. The descriptor, and so the lock, stays open until the file is renamed. An error of
 * close() would not matter: fsync() has already reported every delayed write error. */
static att_status flush_temporary(att_file_writer *writer)
{
    if (writer->status != ATT_OK)
        return writer->status;
    int code = att_system_sync(writer->descriptor);
    if (code != 0)
        return att_system_fail(writer->context, code, writer->path, "flushed to the disk");
    ATT_TRY(att_context_check_write(writer->context, writer->path));
    if (!att_system_is_named(writer->descriptor, writer->temporary))
        return att_fail(writer->context, ATT_ERR_IO, "%s could not be written: another process removed %s",
                        writer->path, writer->temporary);
    return ATT_OK;
}

static att_status move_temporary(const att_file_writer *writer)
{
    if (rename(writer->temporary, writer->path) != 0)
        return att_system_fail(writer->context, errno, writer->path, "moved into place");
    return ATT_OK;
}

/* Frees the writer of a file that is in place. */
static att_status end_writer(att_file_writer **writer)
{
    att_file_writer *done = *writer;
    *writer = NULL;
    att_status status = sync_folder_of(done->context, done->path);
    free_writer(done);
    return status;
}

att_status att_file_writer_commit(att_file_writer **writer)
{
    att_status status = flush_temporary(*writer);
    if (status == ATT_OK)
        status = move_temporary(*writer);
    if (status == ATT_OK)
        return end_writer(writer);
    att_file_writer_abort(writer);
    return status;
}

static att_status remove_old(att_context *context, const char *path)
{
    ATT_TRY(att_context_check_write(context, path));
    return unlink(path) == 0 || errno == ENOENT ? ATT_OK : att_system_fail(context, errno, path, "removed");
}

static att_status move_both(att_file_writer *first, const char *beside, att_file_writer *second)
{
    ATT_TRY(flush_temporary(first));
    if (second)
        ATT_TRY(flush_temporary(second));
    ATT_TRY(remove_old(first->context, beside));
    ATT_TRY(move_temporary(first));
    return second ? move_temporary(second) : ATT_OK;
}

att_status att_file_writer_commit_with(att_file_writer **first, const char *beside, att_file_writer **second)
{
    att_status status = move_both(*first, beside, *second);
    if (status == ATT_OK && *second) {
        free_writer(*second);
        *second = NULL;
    }
    if (status == ATT_OK)
        return end_writer(first);
    att_file_writer_abort(first);
    att_file_writer_abort(second);
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

/* *last: the last byte; unchanged if the file is empty. */
static att_status copy_bytes(const att_file_reader *from, att_file_writer *to, char *last)
{
    enum { BLOCK = 1 << 14 };
    char block[BLOCK];
    uint64_t size = att_file_reader_size(from);
    for (uint64_t done = 0; done < size;) {
        size_t count = size - done < sizeof block ? (size_t)(size - done) : sizeof block;
        ATT_TRY(att_file_reader_read(from, done, block, count));
        ATT_TRY(att_file_writer_write(to, block, count));
        done += count;
        *last = block[count - 1];
    }
    return ATT_OK;
}

static att_status write_file(att_context *context, const char *from, att_file_writer *to, char *last)
{
    att_file_reader *reader = NULL;
    ATT_TRY(att_file_reader_open(context, from, &reader));
    att_status status = copy_bytes(reader, to, last);
    att_file_reader_close(&reader);
    return status;
}

/* Replaces `to` by the contents of the given file, or of both, the second one on a new line. first: NULL is allowed. */
static att_status write_files(att_context *context, const char *first, const char *second, const char *to)
{
    char last = '\n';
    att_file_writer *file = NULL;
    ATT_TRY(att_file_writer_open(context, to, &file));
    att_status status = first ? write_file(context, first, file, &last) : ATT_OK;
    if (status == ATT_OK && last != '\n')
        status = att_file_writer_write(file, "\n", 1);
    if (status == ATT_OK)
        status = write_file(context, second, file, &last);
    if (status == ATT_OK)
        return att_file_writer_commit(&file);
    att_file_writer_abort(&file);
    return status;
}

att_status att_file_copy(att_context *context, const char *from, const char *to)
{
    return write_files(context, NULL, from, to);
}

att_status att_file_add_lines(att_context *context, const char *from, const char *to)
{
    return write_files(context, att_file_exists(to) ? to : NULL, from, to);
}
