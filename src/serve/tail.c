#include "serve/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/system.h"

enum { CHUNK = 1 << 20, LONGEST_LINE = 16 << 20 };

/* Whether the file still begins with what was read. A training that continues cuts the file and writes other records
 * there; those differ in their times. */
static bool is_continued(const att_tail *tail, int file, const struct stat *info)
{
    char bytes[ATT_TAIL_CHECKED];
    const off_t begin = tail->offset - (off_t)tail->checked_size;
    return tail->begun && info->st_dev == tail->device && info->st_ino == tail->inode &&
           info->st_size >= tail->offset &&
           att_system_read_at(file, bytes, tail->checked_size, begin) == (ssize_t)tail->checked_size &&
           memcmp(bytes, tail->checked, tail->checked_size) == 0;
}

static void advance(att_tail *tail, const char *bytes, size_t size)
{
    tail->checked_size = size < ATT_TAIL_CHECKED ? size : ATT_TAIL_CHECKED;
    memcpy(tail->checked, bytes + size - tail->checked_size, tail->checked_size);
    tail->offset += (off_t)size;
}

static att_status fail_system(const att_tail *tail)
{
    return att_fail(tail->context, ATT_ERR_IO, "%s: %s", tail->path, strerror(errno));
}

/* The size of the whole lines at the beginning of a block. */
static size_t whole_lines(const char *block, ssize_t size)
{
    while (size > 0 && block[size - 1] != '\n')
        size--;
    return size > 0 ? (size_t)size : 0;
}

/* Reads a block of `size` bytes and keeps its whole lines. *full: it has no whole line, and the file goes on. */
static att_status read_block(att_tail *tail, int file, size_t size, att_text *lines, bool *full)
{
    char *block = att_allocate(tail->context, size);
    if (block == NULL)
        return att_fail_memory(tail->context, size, tail->path);
    att_status status = ATT_OK;
    const ssize_t count = att_system_read_at(file, block, size, tail->offset);
    const size_t whole = whole_lines(block, count);
    *full = whole == 0 && count == (ssize_t)size;
    if (count < 0)
        status = fail_system(tail);
    else if (whole > 0)
        att_text_append_bytes(lines, block, whole);
    if (lines->failed)
        status = att_fail_memory(tail->context, whole, tail->path);
    else if (status == ATT_OK && whole > 0)
        advance(tail, block, whole);
    att_free(tail->context, block);
    return status;
}

static att_status read_lines(att_tail *tail, int file, att_text *lines)
{
    bool full = true;
    for (size_t size = CHUNK; full && size <= LONGEST_LINE; size *= 4)
        ATT_TRY(read_block(tail, file, size, lines, &full));
    return full ? att_fail(tail->context, ATT_ERR_FORMAT, "%s: a line has more than %d bytes", tail->path, LONGEST_LINE)
                : ATT_OK;
}

static att_status read_file(att_tail *tail, int file, bool *restarted, att_text *lines)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return fail_system(tail);
    if (!S_ISREG(info.st_mode))
        return att_fail(tail->context, ATT_ERR_IO, "%s is not a regular file", tail->path);
    *restarted = !is_continued(tail, file, &info);
    if (*restarted) {
        tail->offset = 0;
        tail->checked_size = 0;
    }
    tail->begun = true;
    tail->device = info.st_dev;
    tail->inode = info.st_ino;
    return read_lines(tail, file, lines);
}

att_status att_tail_read(att_tail *tail, bool *restarted, att_text *lines)
{
    *restarted = false;
    const int file = open(tail->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* O_NONBLOCK: a FIFO must not block */
    if (file < 0 && errno == ENOENT) {
        *restarted = !tail->begun;
        tail->begun = true;
        return ATT_OK;
    }
    if (file < 0)
        return fail_system(tail);
    att_status status = read_file(tail, file, restarted, lines);
    close(file);
    return status;
}
