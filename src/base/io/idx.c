#include "base/io/idx.h"

#include <inttypes.h>
#include <string.h>

#include <zlib.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"

/* DEFLATE_MAX_RATIO: highest compression ratio of deflate (zlib's technical notes). With it, a file's size bounds the
 * number of its elements. */
enum { DEFLATE_MAX_RATIO = 1032, GZIP_WINDOW = 15 + 16, HEADER_MAX = 4 + 4 * ATT_IDX_MAX_RANK, CHUNK = 1 << 18 };

/* Reads a file's bytes in order and decompresses them if the file is gzipped. */
typedef struct idx_stream {
    att_context *context;
    const char *path;
    att_file_window window;
    uint64_t size, used;
    bool gzipped, ended;
    z_stream inflate;
} idx_stream;

static unsigned chunk_of(size_t size)
{
    return size > CHUNK ? CHUNK : (unsigned)size;
}

static att_status inflate_into(idx_stream *stream, uint8_t *out, size_t size, size_t *done)
{
    z_stream *z = &stream->inflate;
    *done = 0;
    while (*done < size && !stream->ended) {
        const uint8_t *packed;
        size_t available;
        ATT_TRY(att_file_window_peek(&stream->window, stream->used, 1, &packed, &available));
        unsigned room = chunk_of(size - *done), supply = (unsigned)available;
        z->next_out = out + *done;
        z->avail_out = room;
        z->next_in = (z_const Bytef *)(uintptr_t)packed;
        z->avail_in = supply;
        int code = inflate(z, Z_NO_FLUSH);
        *done += room - z->avail_out;
        stream->used += supply - z->avail_in;
        if (code == Z_STREAM_END)
            stream->ended = true;
        else if (code == Z_MEM_ERROR)
            return att_fail(stream->context, ATT_ERR_MEMORY, "%s: out of memory while unpacking", stream->path);
        else if (code != Z_OK)
            return att_fail(stream->context, ATT_ERR_FORMAT, "%s: the gzip data are truncated or corrupt",
                            stream->path);
    }
    return ATT_OK;
}

/* Reads up to `size` bytes. *done: number of bytes read, less than `size` only at the end of the file. */
static att_status stream_read(idx_stream *stream, uint8_t *out, size_t size, size_t *done)
{
    if (stream->gzipped)
        return inflate_into(stream, out, size, done);
    uint64_t left = stream->size - stream->used;
    *done = size < left ? size : (size_t)left;
    ATT_TRY(att_file_reader_read(stream->window.reader, stream->used, out, *done));
    stream->used += *done;
    return ATT_OK;
}

static att_status read_exactly(idx_stream *stream, uint8_t *out, size_t size)
{
    size_t done;
    ATT_TRY(stream_read(stream, out, size, &done));
    if (done < size)
        return att_fail(stream->context, ATT_ERR_FORMAT, "%s: truncated: %zu bytes are missing", stream->path,
                        size - done);
    return ATT_OK;
}

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static att_status read_shape(idx_stream *stream, size_t cap, att_shape *shape)
{
    att_context *context = stream->context;
    uint8_t header[HEADER_MAX];
    ATT_TRY(read_exactly(stream, header, 4));
    if (header[0] != 0 || header[1] != 0)
        return att_fail(context, ATT_ERR_FORMAT, "%s: not an IDX file (it does not begin with two zero bytes)",
                        stream->path);
    if (header[2] != 8)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "%s: IDX element type 0x%02x; only unsigned bytes (0x08) are supported", stream->path,
                        header[2]);
    if (header[3] < 1 || header[3] > ATT_IDX_MAX_RANK)
        return att_fail(context, ATT_ERR_FORMAT, "%s: %d dimensions; 1 to %d are supported", stream->path, header[3],
                        ATT_IDX_MAX_RANK);
    *shape = (att_shape){.rank = header[3]};
    ATT_TRY(read_exactly(stream, header, 4 * (size_t)shape->rank));
    for (int i = 0; i < shape->rank; i++)
        shape->dims[i] = big_endian(header + 4 * i);
    int64_t count = att_shape_count(*shape);
    char text[96];
    if (count < 0 || (uint64_t)count > cap)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: dimensions %s, more than the limit of %zu bytes",
                        stream->path, att_shape_format(*shape, text, sizeof text), cap);
    if ((size_t)count / (stream->gzipped ? DEFLATE_MAX_RATIO : 1) > stream->size)
        return att_fail(context, ATT_ERR_FORMAT, "%s: dimensions %s, more than a file of %" PRIu64 " bytes can hold",
                        stream->path, att_shape_format(*shape, text, sizeof text), stream->size);
    return ATT_OK;
}

static att_status read_elements(idx_stream *stream, size_t count, uint8_t *bytes)
{
    uint8_t more;
    size_t surplus;
    ATT_TRY(read_exactly(stream, bytes, count));
    ATT_TRY(stream_read(stream, &more, 1, &surplus)); /* reading on also makes zlib verify gzip's checksum */
    if (surplus != 0)
        return att_fail(stream->context, ATT_ERR_FORMAT, "%s: longer than its dimensions require", stream->path);
    return ATT_OK;
}

static att_status read_stream(idx_stream *stream, size_t cap, att_idx *idx)
{
    att_shape shape;
    ATT_TRY(read_shape(stream, cap, &shape));
    size_t count = (size_t)att_shape_count(shape);
    uint8_t *bytes = att_reallocate(stream->context, NULL, count + 1);
    if (!bytes)
        return att_fail_memory(stream->context, count + 1, stream->path);
    att_status status = read_elements(stream, count, bytes);
    if (status == ATT_OK)
        *idx = (att_idx){shape, bytes};
    else
        att_free(stream->context, bytes);
    return status;
}

static att_status read_packed_or_plain(idx_stream *stream, size_t cap, att_idx *idx)
{
    const uint8_t *first;
    size_t shown;
    ATT_TRY(att_file_window_peek(&stream->window, 0, CHUNK, &first, &shown));
    stream->gzipped = shown >= 2 && first[0] == 0x1f && first[1] == 0x8b;
    if (!stream->gzipped)
        return read_stream(stream, cap, idx);
    if (inflateInit2(&stream->inflate, GZIP_WINDOW) != Z_OK)
        return att_fail(stream->context, ATT_ERR_MEMORY, "%s: out of memory for unpacking", stream->path);
    att_status status = read_stream(stream, cap, idx);
    inflateEnd(&stream->inflate);
    return status;
}

att_status att_idx_read(att_context *context, const char *path, size_t cap, att_idx *idx)
{
    att_file_reader *reader = NULL;
    ATT_TRY(att_file_reader_open(context, path, &reader));
    idx_stream stream = {
        .context = context, .path = path, .window.reader = reader, .size = att_file_reader_size(reader)};
    att_status status = read_packed_or_plain(&stream, cap, idx);
    att_file_window_free(&stream.window);
    att_file_reader_close(&reader);
    return status;
}
