/* Writes .npz: a zip of .npy files, stored without compression. (numpy.lib.format, version 1.0; PKWARE APPNOTE 6.3) */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include <attscope/file.h>
#include <attscope/npz.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, MOST_ARRAYS = 65535, MOST_NAME = 200 };
enum { HEADER = 128, PREFIX = 10 }; /* of a .npy file, and what precedes the text of its header */

/* A file in the archive. */
typedef struct member {
    char name[MOST_NAME + 8];
    char header[HEADER + 128];
    size_t header_bytes, data_bytes, at;
    uint32_t check;
} member;

static size_t element_bytes(const char *type)
{
    static const char *const types[] = {"<f8", "<f4", "<i8", "<i4", "|u1"};
    static const size_t bytes[] = {8, 4, 8, 4, 1};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], type) == 0)
            return bytes[i];
    return 0;
}

/* Little-endian, whatever the machine. */
static void put(att_text *out, uint32_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        att_text_append_bytes(out, &(uint8_t){(uint8_t)(number >> (8 * i))}, 1);
}

static void make_header(const att_npz_array *array, member *m)
{
    char shape[160] = "", text[HEADER + 100];
    for (int i = 0; i < array->shape.rank; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld,", (long long)array->shape.dims[i]);
    int length =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", array->type, shape);
    m->header_bytes = ((size_t)(PREFIX + length) / 64 + 1) * 64;
    const size_t spaces = m->header_bytes - PREFIX;
    memcpy(m->header, "\x93NUMPY\x01", 7);
    m->header[7] = 0;
    m->header[8] = (char)(spaces & 255);
    m->header[9] = (char)(spaces >> 8);
    snprintf(m->header + PREFIX, sizeof m->header - PREFIX, "%-*s\n", (int)spaces - 1, text);
}

static att_status prepare(att_context *context, const att_npz_array *array, member *m)
{
    const size_t element = element_bytes(array->type);
    if (!*array->name || strlen(array->name) > MOST_NAME || strchr(array->name, '/') || element == 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "the array \"%.64s\" of type \"%.8s\" cannot be written as .npz",
                        array->name, array->type);
    snprintf(m->name, sizeof m->name, "%s.npy", array->name);
    m->data_bytes = att_size_product((size_t)att_shape_count(array->shape), element);
    make_header(array, m);
    m->check = (uint32_t)crc32(0, (const unsigned char *)m->header, (unsigned)m->header_bytes);
    if (m->data_bytes > 0 && m->data_bytes <= INT32_MAX)
        m->check = (uint32_t)crc32(m->check, array->data, (unsigned)m->data_bytes);
    return ATT_OK;
}

/* What both headers of a member have in common. */
static void put_member(att_text *out, const member *m)
{
    const uint32_t bytes = (uint32_t)(m->header_bytes + m->data_bytes);
    put(out, 20, 2); /* version needed */
    put(out, 0, 2);  /* flags */
    put(out, 0, 2);  /* stored */
    put(out, 0, 2);  /* time */
    put(out, 33, 2); /* date: 1980-01-01, so that equal arrays give equal files */
    put(out, m->check, 4);
    put(out, bytes, 4);
    put(out, bytes, 4);
    put(out, (uint32_t)strlen(m->name), 2);
    put(out, 0, 2); /* extra field */
}

static void append(att_text *out, const att_npz_array *array, member *m)
{
    m->at = out->length;
    put(out, LOCAL, 4);
    put_member(out, m);
    att_text_append_bytes(out, m->name, strlen(m->name));
    att_text_append_bytes(out, m->header, m->header_bytes);
    att_text_append_bytes(out, array->data, m->data_bytes);
}

static void append_directory(att_text *out, const member *members, int count)
{
    const size_t start = out->length;
    for (int i = 0; i < count; i++) {
        put(out, CENTRAL, 4);
        put(out, 20, 2); /* made by */
        put_member(out, &members[i]);
        put(out, 0, 2); /* comment */
        put(out, 0, 2); /* disk */
        put(out, 0, 2); /* attributes */
        put(out, 0, 4);
        put(out, (uint32_t)members[i].at, 4);
        att_text_append_bytes(out, members[i].name, strlen(members[i].name));
    }
    const size_t bytes = out->length - start;
    put(out, END, 4);
    put(out, 0, 4); /* disks */
    put(out, (uint32_t)count, 2);
    put(out, (uint32_t)count, 2);
    put(out, (uint32_t)bytes, 4);
    put(out, (uint32_t)start, 4);
    put(out, 0, 2); /* comment */
}

static att_status write_archive(att_context *context, const att_npz_array *arrays, member *members, int count,
                                const char *path)
{
    att_text out = {.context = context};
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        ATT_TRY(prepare(context, &arrays[i], &members[i]));
        bytes = att_size_sum(bytes, att_size_sum(members[i].data_bytes, 1024));
    }
    if (bytes > INT32_MAX)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: the arrays have more than 2 GiB", path);
    for (int i = 0; i < count; i++)
        append(&out, &arrays[i], &members[i]);
    append_directory(&out, members, count);
    const att_status status = out.failed ? att_fail_memory(context, bytes, "an .npz file")
                                         : att_file_replace(context, path, out.data, out.length);
    att_text_free(&out);
    return status;
}

att_status att_npz_write(att_context *context, const att_npz_array *arrays, int count, const char *path)
{
    member *members;
    if (count < 0 || count > MOST_ARRAYS)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: an .npz file holds at most %d arrays", path, MOST_ARRAYS);
    ATT_TRY(att_new(context, &members, (size_t)count + 1, "the arrays of an .npz file"));
    const att_status status = write_archive(context, arrays, members, count, path);
    att_free(context, members);
    return status;
}
