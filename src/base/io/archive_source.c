#include "base/io/archive_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <zlib.h>

#include "base/core/error.h"
#include "base/io/system.h"

/* Returns the largest decompressed size that is accepted for a file of `file_bytes`. */
static int64_t unpack_limit(int64_t file_bytes)
{
    static const int64_t ratio = 100, least = (int64_t)1 << 30;
    if (file_bytes > INT64_MAX / ratio)
        return INT64_MAX;
    return file_bytes * ratio > least ? file_bytes * ratio : least;
}

/* Parses a number of a tar header: octal digits after optional blanks, up to a blank, a NUL or the end of the field.
 * Returns false if the field is not such a number. */
static bool read_octal(const uint8_t *field, size_t size, uint32_t *number)
{
    size_t at = 0, digits = 0;
    *number = 0;
    while (at < size && field[at] == ' ')
        at++;
    for (; at < size && field[at] >= '0' && field[at] <= '7'; at++, digits++)
        *number = 8 * *number + (uint32_t)(field[at] - '0');
    return digits > 0 && (at == size || field[at] == ' ' || field[at] == '\0');
}

bool att_tar_begins(const uint8_t *bytes, size_t size)
{
    enum { FIELD = 148, FIELD_SIZE = 8 }; /* the checksum's field; the sum counts its bytes as blanks */
    uint32_t wanted, sum = 0;
    if (size < ATT_TAR_HEADER || !read_octal(bytes + FIELD, FIELD_SIZE, &wanted))
        return false;
    for (size_t i = 0; i < ATT_TAR_HEADER; i++)
        sum += i >= FIELD && i < FIELD + FIELD_SIZE ? ' ' : bytes[i];
    return sum == wanted;
}

bool att_tar_is_plain(const char *path)
{
    uint8_t bytes[ATT_TAR_HEADER];
    return att_tar_begins(bytes, att_system_read_start(path, bytes, sizeof bytes));
}

/* Returns the compression format whose signature the bytes begin with, or NULL. */
static const char *compression_of(const uint8_t *bytes, size_t size)
{
    static const struct {
        const char *name, *signature;
        size_t size;
    } known[] = {{"gzip", "\x1f\x8b", 2},         {"bzip2", "BZh", 3}, {"xz", "\xfd\x37zXZ", 5},
                 {"zstd", "\x28\xb5\x2f\xfd", 4}, {"lzip", "LZIP", 4}, {"compress", "\x1f\x9d", 2}};
    if (att_tar_begins(bytes, size))
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (size >= known[i].size && memcmp(bytes, known[i].signature, known[i].size) == 0)
            return known[i].name;
    return NULL;
}

/* Stores the reason in the source, because libarchive replaces the reason that a read callback gives by its own. */
static ATT_PRINTF(2, 3) la_ssize_t fail_reading(att_archive_source *source, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(source->reason, sizeof source->reason, format, arguments);
    va_end(arguments);
    return -1;
}

static la_ssize_t read_unpacked(struct archive *reader, void *user, const void **bytes)
{
    att_archive_source *source = user;
    (void)reader;
    if (att_stop_asked(source->context))
        return fail_reading(source, "stopped on request");
    int code, got = gzread(source->packed, source->block, sizeof source->block);
    const char *reason = gzerror(source->packed, &code);
    if (got <= 0 && code == Z_BUF_ERROR)
        return fail_reading(source, "the gzip data are truncated");
    if (got < 0)
        return fail_reading(source, "gzip: %s", reason);
    const char *inner = source->unpacked == 0 ? compression_of(source->block, (size_t)got) : NULL;
    if (inner)
        return fail_reading(source, "it is compressed twice, by %s and then by gzip; expected a tar compressed once",
                            inner);
    source->unpacked += got;
    if (source->unpacked > source->limit)
        return fail_reading(source, "it unpacks to " ATT_UNPACK_TOO_MUCH, (long long)source->limit);
    *bytes = source->block;
    return got;
}

static la_ssize_t read_plain(struct archive *reader, void *user, const void **bytes)
{
    enum { PAGE = 1 << 12 };
    att_archive_source *source = user;
    (void)reader;
    if (att_stop_asked(source->context))
        return fail_reading(source, "stopped on request");
    int64_t left = source->end - source->at;
    ssize_t got;
    do
        got = pread(source->descriptor, source->block, left < PAGE ? (size_t)left : PAGE, source->at);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return fail_reading(source, "%s", strerror(errno));
    source->at += got;
    *bytes = source->block;
    return got;
}

static la_int64_t skip_plain(struct archive *reader, void *user, la_int64_t wanted)
{
    att_archive_source *source = user;
    (void)reader;
    int64_t left = source->end - source->at, skipped = wanted < left ? wanted : left;
    source->at += skipped;
    return skipped;
}

bool att_archive_source_open_part(att_archive_source *source, struct archive *reader, int descriptor, int64_t begin,
                                  int64_t size)
{
    source->plain = true;
    source->descriptor = descriptor;
    source->at = begin;
    source->end = begin + size;
    return archive_read_open2(reader, source, NULL, read_plain, skip_plain, NULL) == ARCHIVE_OK;
}

/* Sets source->limit. If the file is gzipped, opens it as source->packed; if it is a plain tar, as source->plain. */
static bool open_file(att_archive_source *source, const char *path)
{
    struct stat info;
    int file = att_system_open_regular(path, O_RDONLY, &info);
    if (file < 0) {
        fail_reading(source, "%s", strerror(errno));
        return false;
    }
    la_ssize_t got = att_system_read_at(file, source->block, sizeof source->block, 0);
    const char *compression = got > 0 ? compression_of(source->block, (size_t)got) : NULL;
    bool gzipped = compression && strcmp(compression, "gzip") == 0;
    source->limit = got < 0 ? 0 : unpack_limit(info.st_size);
    source->packed = gzipped ? gzdopen(file, "rb") : NULL;
    if (got < 0)
        fail_reading(source, "%s", strerror(errno));
    else if (gzipped && !source->packed)
        fail_reading(source, "out of memory");
    else if (compression && !gzipped)
        fail_reading(source, "it is compressed by %s, which is not supported; unpack it, or compress it by gzip",
                     compression);
    if (!source->packed && got > 0 && att_tar_begins(source->block, (size_t)got)) {
        source->plain = true;
        source->descriptor = file;
        source->end = info.st_size;
    } else if (!source->packed) {
        close(file);
    }
    return source->reason[0] == '\0';
}

bool att_archive_source_open(att_archive_source *source, struct archive *reader, const char *path)
{
    if (!open_file(source, path))
        return false;
    if (source->plain)
        return att_archive_source_open_part(source, reader, source->descriptor, 0, source->end);
    int code = source->packed ? archive_read_open(reader, source, NULL, read_unpacked, NULL)
                              : archive_read_open_filename(reader, path, sizeof source->block);
    return code == ARCHIVE_OK;
}

bool att_archive_source_finish(att_archive_source *source)
{
    const void *bytes;
    la_ssize_t got = source->packed ? 1 : 0;
    while (got > 0)
        got = read_unpacked(NULL, source, &bytes);
    return got == 0;
}

void att_archive_source_close(att_archive_source *source)
{
    if (source->packed)
        gzclose(source->packed);
    if (source->plain)
        close(source->descriptor);
    source->packed = NULL;
    source->plain = false;
}
