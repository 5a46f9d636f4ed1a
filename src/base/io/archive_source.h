/* io/archive_source.h - feeds libarchive with the bytes of a file, or of a part of it, decompressed if it is gzipped.
 *
 * A plain tar is read here too, in blocks of one memory page. libarchive would read 64 KiB around each header, which is
 * most of a tar of photographs.
 *
 * Decompression happens here because libarchive decompresses up to 25 nested layers without a limit on the size. Here,
 * only one layer of gzip is decompressed. The output may have at most 100 times the size of the file, or 1 GiB if that
 * is more. Archives of photographs, which are already compressed, reach a ratio below 2; gzip can reach 1032.
 */
#ifndef ATT_IO_ARCHIVE_SOURCE_H
#define ATT_IO_ARCHIVE_SOURCE_H

#include <attscope/context.h>

/* End of a printf format for messages; its argument is the limit as long long. */
#define ATT_UNPACK_TOO_MUCH                                                                         \
    "more than %lld bytes, the limit for a file of its size (100 times the size, at least 1 GiB); " \
    "unpack it by hand if you trust it"

/* Size in bytes of the header at the beginning of a tar. */
enum { ATT_TAR_HEADER = 512 };
/* Returns whether the bytes begin with a tar header whose checksum is right. Check for a tar before other formats: a
 * tar begins with the name of its first file, which can equal the signature of any other format. */
bool att_tar_begins(const uint8_t *bytes, size_t size);
/* Returns whether the path is a regular file that begins so: a tar that is not compressed. */
bool att_tar_is_plain(const char *path);

struct archive;

/* Zero-initialise, then set the context, whose `stop` callback is checked while reading. Must outlive the reader. */
typedef struct att_archive_source {
    const att_context *context;
    struct gzFile_s *packed; /* NULL if the file is not gzipped */
    bool plain;              /* a plain tar: */
    int descriptor;          /* of its file */
    int64_t at, end;         /* offsets in the file of the next byte and of the tar's end */
    int64_t unpacked, limit; /* bytes decompressed so far; most bytes allowed (also set if the file is not gzipped) */
    char reason[256];        /* reason of a failure in this module; "" if there was none */
    uint8_t block[1 << 15];
} att_archive_source;

/* Opens `path` for a new libarchive reader whose formats are set. Returns false on failure; the reason is in `reason`
 * or, if that is "", in archive_error_string(reader). Call att_archive_source_close() in both cases. */
bool att_archive_source_open(att_archive_source *source, struct archive *reader, const char *path);
/* Opens the plain tar that occupies `size` bytes of a file from the offset `begin` on. Takes over the descriptor of the
 * file. Otherwise like att_archive_source_open(). */
bool att_archive_source_open_part(att_archive_source *source, struct archive *reader, int descriptor, int64_t begin,
                                  int64_t size);
/* Decompresses the rest of the file, which libarchive has not read, to verify gzip's checksum at its end. Returns false
 * on failure, with the reason in `reason`. */
bool att_archive_source_finish(att_archive_source *source);
void att_archive_source_close(att_archive_source *source);

#endif
