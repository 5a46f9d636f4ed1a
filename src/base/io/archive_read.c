/* Reads members of an archive. */
#include "base/io/archive_members.h"

#include <limits.h>
#include <string.h>

#include <zlib.h>

#include "base/core/error.h"
#include "base/io/system.h"

enum { INFLATE_BLOCK = 1 << 15, RAW_DEFLATE = -15 };

static att_status fail_member(const att_archive *archive, att_context *context, const att_archive_member *from,
                              att_status status, const char *reason)
{
    return att_fail(context, status, "%s in %s: %s", from->name, archive->path, reason);
}

static att_status read_stored(const att_archive *archive, att_context *context, const att_archive_member *from,
                              uint8_t *bytes)
{
    ssize_t got = att_system_read_at(archive->descriptor, bytes, from->size, from->offset);
    if (got < 0)
        return fail_member(archive, context, from, ATT_ERR_IO, "could not be read");
    if ((size_t)got < from->size)
        return fail_member(archive, context, from, ATT_ERR_FORMAT, "the archive is truncated");
    return ATT_OK;
}

/* Decompresses a member. Returns Z_STREAM_END if the output has exactly the member's size, else an error code of zlib
 * (Z_BUF_ERROR: the output is larger). */
static int inflate_member(const att_archive *archive, const att_archive_member *from, z_stream *z, uint8_t *block)
{
    int64_t offset = from->offset;
    int code = Z_OK;
    while (code == Z_OK) {
        ssize_t got = att_system_read_at(archive->descriptor, block, INFLATE_BLOCK, offset);
        if (got <= 0)
            return got < 0 ? Z_ERRNO : Z_DATA_ERROR;
        offset += got;
        z->next_in = block;
        z->avail_in = (unsigned)got;
        code = inflate(z, Z_NO_FLUSH);
    }
    return code == Z_STREAM_END && z->avail_out > 0 ? Z_DATA_ERROR : code;
}

static att_status read_deflated(const att_archive *archive, att_context *context, const att_archive_member *from,
                                uint8_t *bytes)
{
    if (from->size > UINT_MAX)
        return fail_member(archive, context, from, ATT_ERR_UNSUPPORTED,
                           "compressed files of 4 GiB or more are not supported");
    uint8_t *block = att_reallocate(context, NULL, INFLATE_BLOCK);
    z_stream z = {.next_out = bytes, .avail_out = (unsigned)from->size};
    if (!block || inflateInit2(&z, RAW_DEFLATE) != Z_OK) {
        att_free(context, block);
        return fail_member(archive, context, from, ATT_ERR_MEMORY, "out of memory for unpacking");
    }
    int code = inflate_member(archive, from, &z, block);
    inflateEnd(&z);
    att_free(context, block);
    switch (code) {
    case Z_STREAM_END:
        return ATT_OK;
    case Z_ERRNO:
        return fail_member(archive, context, from, ATT_ERR_IO, "could not be read");
    case Z_MEM_ERROR:
        return fail_member(archive, context, from, ATT_ERR_MEMORY, "out of memory for unpacking");
    default:
        return fail_member(archive, context, from, ATT_ERR_FORMAT, "truncated or corrupt, or its size is wrong");
    }
}

static att_status check_sum(const att_archive *archive, att_context *context, const att_archive_member *from,
                            const uint8_t *bytes)
{
    if (crc32_z(0, bytes, from->size) == from->checksum)
        return ATT_OK;
    return fail_member(archive, context, from, ATT_ERR_FORMAT,
                       "its checksum (CRC-32) differs; the archive is damaged: copy or download it again");
}

att_status att_archive_read(const att_archive *archive, att_context *context, int64_t index, void *bytes)
{
    const att_archive_member *from = &archive->members[index];
    if (from->size == 0)
        return ATT_OK;
    if (archive->descriptor < 0) {
        if (!from->kept)
            return fail_member(archive, context, from, ATT_ERR_UNSUPPORTED, "not kept when the archive was opened");
        memcpy(bytes, from->kept, from->size);
        return ATT_OK;
    }
    ATT_TRY(from->deflated ? read_deflated(archive, context, from, bytes) : read_stored(archive, context, from, bytes));
    return att_archive_is_zip(archive) ? check_sum(archive, context, from, bytes) : ATT_OK;
}
