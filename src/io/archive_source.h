/* io/archive_source.h - the bytes that libarchive walks over: a file as it is, or unpacked by gzip.
 *
 * Compression is undone here and not by libarchive, which undoes up to 25 layers of it without a limit. Exactly one
 * layer, gzip, is undone. What comes out may be at most 100 times as large as the file, or 1 GiB where that is more.
 * Archives of photographs, which are compressed already, reach less than 2 times; gzip can reach 1032 times.
 */
#ifndef ATT_IO_ARCHIVE_SOURCE_H
#define ATT_IO_ARCHIVE_SOURCE_H

#include <attscope/context.h>

/* The end of a message, with the limit as long long. */
#define ATT_UNPACK_TOO_MUCH                                                                         \
    "more than %lld bytes, the limit for a file of its size (100 times the size, at least 1 GiB); " \
    "unpack it by hand if you trust it"

/* Bytes of a tar's header, with which it begins. */
enum { ATT_TAR_HEADER = 512 };
/* Whether the bytes begin with a tar header, by its checksum. A tar begins with the name of its first file, so it can
 * look like any other format; check for a tar first. */
bool att_tar_begins(const uint8_t *bytes, size_t size);

struct archive;

/* Zero-initialise and set the context, which may ask to stop; must outlive the reader. */
typedef struct att_archive_source {
    const att_context *context;
    struct gzFile_s *packed; /* NULL: libarchive reads the file itself */
    int64_t unpacked, limit; /* bytes; the limit is set of any file */
    char reason[256];        /* of a failure that libarchive does not know of; else "" */
    uint8_t block[1 << 15];
} att_archive_source;

/* Opens `path` for a new reader whose formats are set. False where the file or its compression cannot be read:
 * `reason` says why, or archive_error_string() of the reader. To be closed in any case. */
bool att_archive_source_open(att_archive_source *source, struct archive *reader, const char *path);
/* Unpacks what libarchive left unread, which ends with gzip's checksum. False where that fails: `reason` says why. */
bool att_archive_source_finish(att_archive_source *source);
void att_archive_source_close(att_archive_source *source);

#endif
