/* io/archive_members.h - the members of an archive, shared by its opening (archive.c) and the reading of members
 * (archive_read.c). */
#ifndef ATT_IO_ARCHIVE_MEMBERS_H
#define ATT_IO_ARCHIVE_MEMBERS_H

#include <string.h>
#include <sys/types.h>

#include "base/core/memory.h"
#include "base/io/archive.h"

typedef struct att_archive_member {
    const char *name;
    size_t size;
    int64_t offset; /* offset of its data (compressed data, if deflated) in the archive */
    uint8_t *kept;  /* gzipped tar: its data; else NULL */
    bool deflated;
    uint32_t checksum; /* zip: CRC-32 of the uncompressed data */
    uint64_t header;   /* zip: offset of the local header to which `checksum` belongs */
} att_archive_member;

struct att_archive {
    att_context *context;
    char *path;
    int descriptor;
    const char *kind;
    att_arena names;
    att_archive_member *members;
    int64_t count, capacity, skipped;
    size_t kept_bytes;
    int64_t begin, end; /* offsets of the archive in the file: 0 and the file's size, unless it lies in another one */
};

static inline bool att_archive_is_zip(const att_archive *archive)
{
    return archive->kind && strcmp(archive->kind, "zip") == 0;
}

#endif
