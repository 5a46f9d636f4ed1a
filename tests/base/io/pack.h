/* io/pack.h - for tests: writes archives with libarchive. */
#ifndef TESTS_IO_PACK_H
#define TESTS_IO_PACK_H

#include <archive.h>
#include <archive_entry.h>

#include "base/io/scratch.h"

typedef struct pack_file {
    const char *name;
    const void *bytes;
    size_t size;
} pack_file;

typedef struct pack {
    struct archive *writer;
} pack;

/* kind: "ustar", "pax", "gnutar", each with or without ".gz", "zip" (compressed) or "zip0" (stored). */
static inline pack pack_open(const char *path, const char *kind)
{
    pack made = {archive_write_new()};
    char format[32];
    snprintf(format, sizeof(format), "%s", kind);
    char *dot = strchr(format, '.');
    if (dot != NULL) {
        *dot = '\0';
        assert_int_equal(archive_write_add_filter_gzip(made.writer), ARCHIVE_OK);
    }
    bool stored = strcmp(format, "zip0") == 0;
    assert_int_equal(archive_write_set_format_by_name(made.writer, stored ? "zip" : format), ARCHIVE_OK);
    if (stored)
        assert_int_equal(archive_write_zip_set_compression_store(made.writer), ARCHIVE_OK);
    assert_int_equal(archive_write_open_filename(made.writer, path), ARCHIVE_OK);
    return made;
}

static inline void pack_entry(pack *to, const char *name, unsigned type, const char *link, const void *bytes,
                              size_t size)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)size);
    if (link != NULL && type == AE_IFLNK)
        archive_entry_set_symlink(entry, link);
    else if (link != NULL)
        archive_entry_set_hardlink(entry, link);
    assert_int_equal(archive_write_header(to->writer, entry), ARCHIVE_OK);
    if (size > 0)
        assert_int_equal(archive_write_data(to->writer, bytes, size), size);
    archive_entry_free(entry);
}

static inline void pack_close(pack *to)
{
    assert_int_equal(archive_write_close(to->writer), ARCHIVE_OK);
    archive_write_free(to->writer);
}

static inline void pack_files(const char *path, const char *kind, const pack_file *files, int count)
{
    pack made = pack_open(path, kind);
    for (int i = 0; i < count; i++)
        pack_entry(&made, files[i].name, AE_IFREG, NULL, files[i].bytes, files[i].size);
    pack_close(&made);
}

#endif
