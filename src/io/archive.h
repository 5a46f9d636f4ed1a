/* io/archive.h - random access to the files in a .tar, .tar.gz or .zip.
 *
 * Opening walks the archive once (libarchive) and notes where each file's bytes begin; reading then goes straight
 * there. A gzipped tar cannot be sought: its files' bytes are kept in memory. The kind is found from the contents,
 * never from the name. Folders are not listed; links, devices, sparse files, and names that are absolute or hold ".."
 * are skipped and counted. A zip's file that is needed and is encrypted, or compressed by another method than deflate,
 * is refused with the method's name. So is what was compressed twice, and what unpacks to more than 100 times the size
 * of the file and more than 1 GiB (io/archive_source.h). A zip's files are compared with their checksums as they are
 * read, and a zip without its directory, which lies at its end, is refused. A tar without the two blocks of zeros that
 * end it gives a warning.
 */
#ifndef ATT_IO_ARCHIVE_H
#define ATT_IO_ARCHIVE_H

#include <attscope/context.h>

typedef struct att_archive att_archive;

/* cache_bytes: the most bytes a gzipped tar may keep in memory; beyond them ERR_UNSUPPORTED advises to unpack it. On
 * success *archive is the caller's. Errors: ERR_FORMAT (no archive, truncated, corrupt), ERR_UNSUPPORTED,
 * ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
att_status att_archive_open(att_context *context, const char *path, size_t cache_bytes, att_archive **archive);
/* What a file of an archive is needed for. */
typedef enum att_archive_use {
    ATT_ARCHIVE_PASS, /* it is neither listed nor counted */
    ATT_ARCHIVE_LIST, /* its name and size are; of a gzipped tar its bytes are not kept and cannot be read */
    ATT_ARCHIVE_KEEP,
} att_archive_use;
/* Says it of the file `name` before any of its bytes are read; *use is KEEP. A failure ends the opening. */
typedef att_status (*att_archive_choose)(void *user, const char *name, size_t size, att_archive_use *use);
/* The same with what is chosen of its files. */
att_status att_archive_open_some(att_context *context, const char *path, size_t cache_bytes, att_archive_choose choose,
                                 void *user, att_archive **archive);
void att_archive_close(att_archive **archive);

/* Whether `fits` is true of one of the first `most` files' paths, in the archive's order; false where there is no
 * archive. Reads no further than it must. */
bool att_archive_begins_with(att_context *context, const char *path, int most,
                             bool (*fits)(void *user, const char *name), void *user);

/* "tar", "tar.gz" or "zip". */
const char *att_archive_kind(const att_archive *archive);
int64_t att_archive_count(const att_archive *archive);
int64_t att_archive_skipped(const att_archive *archive);
/* Path of a file inside the archive, without a leading "./"; lives as long as the archive. */
const char *att_archive_name(const att_archive *archive, int64_t index);
size_t att_archive_size(const att_archive *archive, int64_t index);

/* Copies the file's att_archive_size() bytes to `bytes`. Thread-safe; the message of a failure goes to `context`.
 * Errors: ERR_IO, ERR_FORMAT (shortened since, corrupt), ERR_UNSUPPORTED (not kept), ERR_MEMORY. */
att_status att_archive_read(const att_archive *archive, att_context *context, int64_t index, void *bytes);

#endif
