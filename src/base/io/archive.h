/* io/archive.h - random access to the files in a .tar, .tar.gz or .zip, and in a .tar inside a .tar.
 *
 * Opening walks the archive once with libarchive and records the offset of each file's data. Reading then seeks to that
 * offset. A gzipped tar does not support seeking, so opening keeps the data of its files in memory.
 *
 * The kind of archive is detected from its contents, not from its name. Folders are not listed. Links, devices, sparse
 * files, and files whose name is absolute or contains ".." are skipped and counted.
 *
 * Opening fails for: a needed file of a zip that is encrypted or compressed by another method than deflate; an archive
 * that is compressed twice; an archive that unpacks to more than 1 GiB and more than 100 times its size
 * (io/archive_source.h); a zip without the directory at its end. Reading a file of a zip verifies the file's CRC-32. A
 * tar that lacks the two blocks of zeros at its end gives a warning.
 */
#ifndef ATT_IO_ARCHIVE_H
#define ATT_IO_ARCHIVE_H

#include <attscope/context.h>

typedef struct att_archive att_archive;

/* Opens an archive. cache_bytes: limit on the bytes of files kept in memory for a gzipped tar; a larger tar fails with
 * ERR_UNSUPPORTED and the advice to unpack it. Caller owns *archive after success. Errors: ERR_FORMAT (not an archive,
 * truncated, corrupt), ERR_UNSUPPORTED, ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
att_status att_archive_open(att_context *context, const char *path, size_t cache_bytes, att_archive **archive);
/* How a file of the archive is used. */
typedef enum att_archive_use {
    ATT_ARCHIVE_IGNORE, /* ignored: neither listed nor counted */
    ATT_ARCHIVE_LIST,   /* only name and size are needed; its data cannot be read from a gzipped tar */
    ATT_ARCHIVE_KEEP,   /* its data is needed */
} att_archive_use;
/* Sets *use, initially KEEP, for the file `name`. Called before any of the file's data is read. If it fails, opening
 * the archive fails with its status. */
typedef att_status (*att_archive_choose)(void *user, const char *name, size_t size, att_archive_use *use);
/* Like att_archive_open(), with `choose` called for each file. */
att_status att_archive_open_some(att_context *context, const char *path, size_t cache_bytes, att_archive_choose choose,
                                 void *user, att_archive **archive);
/* Opens the plain tar that is file `index` of another plain tar. It does not need `outer` any more after this call.
 * Caller owns *archive after success. Errors: ERR_UNSUPPORTED (the file is compressed, or no tar), and those of
 * att_archive_open(). */
att_status att_archive_open_inner(const att_archive *outer, int64_t index, att_archive **archive);
void att_archive_close(att_archive **archive);

/* Returns whether `fits` returns true for the path of one of the first `max_files` files of the archive. Returns false
 * if the file is not an archive. Stops reading at the first match. */
bool att_archive_begins_with(att_context *context, const char *path, int max_files,
                             bool (*fits)(void *user, const char *name), void *user);

/* "tar", "tar.gz" or "zip". */
const char *att_archive_kind(const att_archive *archive);
int64_t att_archive_count(const att_archive *archive);
int64_t att_archive_skipped(const att_archive *archive);
/* Path of a file inside the archive, without a leading "./". Valid as long as the archive. */
const char *att_archive_name(const att_archive *archive, int64_t index);
size_t att_archive_size(const att_archive *archive, int64_t index);
/* Plain tars: offset of the file's data in the file on disk, which is that of the outermost tar. */
int64_t att_archive_offset(const att_archive *archive, int64_t index);

/* Copies the file's att_archive_size() bytes to `bytes`. Thread-safe; an error message is set in `context`. Errors:
 * ERR_IO, ERR_FORMAT (truncated since opening, corrupt), ERR_UNSUPPORTED (its use is LIST, in a gzipped tar),
 * ERR_MEMORY. */
att_status att_archive_read(const att_archive *archive, att_context *context, int64_t index, void *bytes);

#endif
