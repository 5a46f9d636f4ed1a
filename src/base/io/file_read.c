#include "base/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/system.h"

enum { FIRST_READ = 1 << 16, MOST_READ = 1 << 22 };

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
            return att_system_fail(context, errno, path, "read");
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

att_status att_file_read(att_context *context, const char *path, size_t cap, char **bytes, size_t *size)
{
    struct stat info;
    int descriptor = att_system_open_regular(path, O_RDONLY, &info);
    if (descriptor < 0)
        return att_system_fail(context, errno, path, "opened");
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
    uint64_t begin, size;      /* of the part that is read; begin: 0 unless it is one of another reader */
    const att_file_reader *of; /* the reader of the whole file, which has the descriptor; NULL: this one */
    struct timespec changed;   /* when it was changed last, when it was opened */
};

static att_status start_reader(att_file_reader *reader, const char *path)
{
    reader->path = att_copy_string(reader->context, path);
    if (reader->path == NULL)
        return att_fail_memory(reader->context, strlen(path) + 1, path);
    struct stat info;
    reader->descriptor = att_system_open_regular(path, O_RDONLY, &info);
    if (reader->descriptor < 0)
        return att_system_fail(reader->context, errno, path, "opened");
    reader->size = (uint64_t)info.st_size;
    reader->changed = info.st_mtim;
    return ATT_OK;
}

att_status att_file_reader_open(att_context *context, const char *path, att_file_reader **reader)
{
    att_file_reader *created;
    ATT_TRY(att_new(context, &created, 1, path));
    created->context = context;
    created->descriptor = -1;
    att_status status = start_reader(created, path);
    if (status != ATT_OK)
        att_file_reader_close(&created);
    else
        *reader = created;
    return status;
}

att_status att_file_reader_open_part(const att_file_reader *of, uint64_t begin, uint64_t size, att_file_reader **part)
{
    att_file_reader *created;
    ATT_TRY(att_new(of->context, &created, 1, of->path));
    *created = (att_file_reader){of->context, NULL, of->descriptor, of->begin + begin, size, of, of->changed};
    created->path = att_copy_string(of->context, of->path);
    if (created->path)
        *part = created;
    else
        att_file_reader_close(&created);
    return created ? ATT_OK : att_fail_memory(of->context, strlen(of->path) + 1, of->path);
}

att_status att_file_reader_check(const att_file_reader *reader)
{
    struct stat now;
    if (reader->of)
        return att_file_reader_check(reader->of);
    if (fstat(reader->descriptor, &now) != 0)
        return att_system_fail(reader->context, errno, reader->path, "read");
    if ((uint64_t)now.st_size != reader->size || now.st_mtim.tv_sec != reader->changed.tv_sec ||
        now.st_mtim.tv_nsec != reader->changed.tv_nsec)
        return att_fail(reader->context, ATT_ERR_IO,
                        "%s has changed since it was opened; another program writes it: open it again once it is "
                        "complete",
                        reader->path);
    return ATT_OK;
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
        ssize_t got = pread(reader->descriptor, (char *)out + done, some, (off_t)(reader->begin + offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return att_system_fail(reader->context, errno, reader->path, "read");
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
    if (done->descriptor >= 0 && !done->of)
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
