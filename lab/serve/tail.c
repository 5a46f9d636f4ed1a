#include "lab/serve/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/system.h"

enum { CHUNK = 16 << 10, LONGEST_LINE = 16 << 20 };

static bool is_same_file(const att_tail *tail, const struct stat *info)
{
    return info->st_dev == tail->device && info->st_ino == tail->inode;
}

static bool is_unchanged(const att_tail *tail, const struct stat *info)
{
    return is_same_file(tail, info) && info->st_size == tail->size && info->st_mtim.tv_sec == tail->changed.tv_sec &&
           info->st_mtim.tv_nsec == tail->changed.tv_nsec;
}

/* Whether the file still begins with what was looked at. A training run that continues cuts the file and writes other
 * records there; those differ in their times. */
static bool is_continued(const att_tail *tail, int file, const struct stat *info)
{
    char bytes[ATT_TAIL_CHECKED];
    const off_t begin = tail->size - (off_t)tail->checked_size;
    return is_same_file(tail, info) && info->st_size >= tail->size &&
           att_system_read_at(file, bytes, tail->checked_size, begin) == (ssize_t)tail->checked_size &&
           memcmp(bytes, tail->checked, tail->checked_size) == 0;
}

static att_status fail_to_read(att_context *context, const char *path)
{
    return att_system_fail(context, errno, path, "read");
}

/* The size of the whole lines at the beginning of a block. */
static size_t whole_lines(const char *block, ssize_t size)
{
    while (size > 0 && block[size - 1] != '\n')
        size--;
    return size > 0 ? (size_t)size : 0;
}

/* --- where the whole lines end ------------------------------------------------------------------------------------ */

/* Looks for the last newline in [first, end) from the end. *whole stays if there is none. */
static att_status find_whole(const att_tail *tail, int file, off_t first, off_t end, char block[static CHUNK],
                             att_context *context, off_t *whole)
{
    while (end > first) {
        const off_t begin = end - first > CHUNK ? end - CHUNK : first;
        const ssize_t count = att_system_read_at(file, block, (size_t)(end - begin), begin);
        const size_t lines = whole_lines(block, count);
        if (count < 0)
            return fail_to_read(context, tail->path);
        if (lines > 0) {
            *whole = begin + (off_t)lines;
            return ATT_OK;
        }
        end = begin;
    }
    return ATT_OK;
}

/* Keeps the bytes before the end. If the file was cut meanwhile, they are fewer, and the next call sees the cut. */
static void keep_checked(att_tail *tail, int file)
{
    const off_t size = tail->size < ATT_TAIL_CHECKED ? tail->size : ATT_TAIL_CHECKED;
    const ssize_t count = att_system_read_at(file, tail->checked, (size_t)size, tail->size - size);
    tail->checked_size = count == size ? (size_t)size : 0;
}

/* Looks at what was appended, or at the whole file if it is another one. */
static att_status look(att_tail *tail, int file, const struct stat *info, att_context *context)
{
    const bool continued = is_continued(tail, file, info);
    off_t whole = continued ? tail->whole : 0;
    char *block = att_reallocate(context, NULL, CHUNK);
    if (block == NULL)
        return att_fail_memory(context, CHUNK, tail->path);
    const att_status status = find_whole(tail, file, continued ? tail->size : 0, info->st_size, block, context, &whole);
    att_free(context, block);
    ATT_TRY(status);
    tail->edition += !continued;
    tail->device = info->st_dev;
    tail->inode = info->st_ino;
    tail->changed = info->st_mtim;
    tail->size = info->st_size;
    tail->whole = whole;
    keep_checked(tail, file);
    return ATT_OK;
}

/* --- a reader ----------------------------------------------------------------------------------------------------- */

/* Whether the last line, which has no newline yet, is too long already. */
static bool has_long_end(const att_tail *tail)
{
    return tail->size - tail->whole > LONGEST_LINE;
}

/* Whether there is nothing for the reader unless the file has changed. */
static bool is_at_end(const att_tail *tail, const att_tail_place *place)
{
    return place->edition == tail->edition && place->offset >= tail->whole && !has_long_end(tail);
}

static att_status fail_long(const att_tail *tail, att_context *context)
{
    return att_fail(context, ATT_ERR_FORMAT, "%s: a line has more than %d bytes", tail->path, LONGEST_LINE);
}

/* Reads a block of at most `size` bytes and keeps its whole lines. */
static att_status read_block(const att_tail *tail, att_tail_place *place, int file, size_t size, att_text *lines)
{
    char *block = att_reallocate(lines->context, NULL, size);
    if (block == NULL)
        return att_fail_memory(lines->context, size, tail->path);
    const ssize_t count = att_system_read_at(file, block, size, place->offset);
    const size_t whole = whole_lines(block, count);
    att_text_append_bytes(lines, block, whole);
    att_free(lines->context, block);
    if (count < 0)
        return fail_to_read(lines->context, tail->path);
    if (lines->failed)
        return att_fail_memory(lines->context, whole, tail->path);
    place->offset += (off_t)whole;
    return ATT_OK;
}

static att_status read_lines(const att_tail *tail, att_tail_place *place, int file, att_text *lines)
{
    const off_t before = place->offset;
    size_t size = 0;
    while (place->offset == before && (off_t)size < tail->whole - before) {
        if (size == LONGEST_LINE)
            return fail_long(tail, lines->context);
        size = size == 0 ? CHUNK : size * 4;
        if (tail->whole - before < (off_t)size)
            size = (size_t)(tail->whole - before);
        ATT_TRY(read_block(tail, place, file, size, lines));
    }
    return place->offset == before && has_long_end(tail) ? fail_long(tail, lines->context) : ATT_OK;
}

static att_status read_file(att_tail *tail, att_tail_place *place, int file, const struct stat *info, bool *restarted,
                            att_text *lines)
{
    if (!is_unchanged(tail, info))
        ATT_TRY(look(tail, file, info, lines->context));
    *restarted = place->edition != tail->edition;
    if (*restarted)
        *place = (att_tail_place){.edition = tail->edition};
    return read_lines(tail, place, file, lines);
}

static void forget_file(att_tail *tail)
{
    *tail = (att_tail){.path = tail->path, .edition = tail->edition > 0 ? tail->edition : 1};
}

att_status att_tail_read(att_tail *tail, att_tail_place *place, bool *restarted, att_text *lines)
{
    struct stat info;
    *restarted = false;
    const bool exists = stat(tail->path, &info) == 0;
    if (exists && is_unchanged(tail, &info) && is_at_end(tail, place))
        return ATT_OK;
    const int file = exists ? att_system_open_regular(tail->path, O_RDONLY, &info) : -1;
    if (file < 0 && errno == ENOENT) {
        forget_file(tail);
        *restarted = place->edition == 0;
        place->edition = tail->edition;
        return ATT_OK;
    }
    if (file < 0)
        return fail_to_read(lines->context, tail->path);
    const att_status status = read_file(tail, place, file, &info, restarted, lines);
    close(file);
    return status;
}
