#include "base/io/npz.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include <attscope/npz.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"

size_t att_npy_header(const char *type, att_shape shape, char header[ATT_NPY_HEADER])
{
    enum { PREFIX = 10, ALIGNED = 64 };
    char sides[160] = "";
    for (int i = 0; i < shape.rank; i++)
        snprintf(sides + strlen(sides), sizeof sides - strlen(sides), "%lld,%s", (long long)shape.dims[i],
                 i + 1 < shape.rank ? " " : "");
    int length = snprintf(header + PREFIX, ATT_NPY_HEADER - PREFIX,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, sides);
    size_t all = ((size_t)(PREFIX + length + 1) + ALIGNED - 1) / ALIGNED * ALIGNED;
    memset(header + PREFIX + length, ' ', all - PREFIX - (size_t)length);
    header[all - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((all - PREFIX) & 0xff);
    header[9] = (char)((all - PREFIX) >> 8);
    return all;
}

/* --- the archive -------------------------------------------------------------------------------------------------- */

enum { MOST_ARRAYS = 65535, MOST_NAME = 200, NAME = MOST_NAME + 8, LOCAL_BYTES = 30, ENTRY_BYTES = 46, END_BYTES = 22 };

typedef struct entry {
    char name[NAME];
    uint32_t checksum, size, offset;
} entry;

struct att_npz {
    att_context *context;
    att_file_writer *file;
    entry *entries;
    int count, room;
    uint64_t written;
};

static void put(uint8_t *at, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static att_status write_bytes(att_npz *npz, const void *bytes, size_t size)
{
    npz->written += size;
    return att_file_writer_write(npz->file, bytes, size);
}

/* The fields that both headers of an entry share: version needed .. length of the name. at: [26]. */
static void put_entry(uint8_t *at, const entry *e)
{
    put(at, 20, 2);       /* version */
    put(at + 8, 0x21, 2); /* the date: 1 January 1980, as numpy writes it */
    put(at + 10, e->checksum, 4);
    put(at + 14, e->size, 4);
    put(at + 18, e->size, 4);
    put(at + 22, (uint32_t)strlen(e->name), 2);
}

att_status att_npz_open(att_context *context, const char *path, att_npz **out)
{
    att_npz *npz;
    ATT_TRY(att_new(context, &npz, 1, path));
    npz->context = context;
    att_status status = att_file_writer_open(context, path, &npz->file);
    if (status == ATT_OK)
        *out = npz;
    else
        att_free(context, npz);
    return status;
}

/* Writes a local header. */
static att_status begin_entry(att_npz *npz, const char *name, uint64_t size, uint32_t checksum)
{
    uint8_t local[LOCAL_BYTES] = {'P', 'K', 3, 4};
    if (npz->written + size > UINT32_MAX / 2)
        return att_fail(npz->context, ATT_ERR_UNSUPPORTED, "a .npz file with more than 2 GiB");
    if (!att_list_grow(npz->context, &npz->entries, npz->count, &npz->room, sizeof *npz->entries))
        return att_fail_memory(npz->context, sizeof *npz->entries, "a .npz file");
    entry *e = &npz->entries[npz->count++];
    *e = (entry){.checksum = checksum, .size = (uint32_t)size, .offset = (uint32_t)npz->written};
    snprintf(e->name, sizeof e->name, "%s.npy", name);
    put_entry(local + 4, e);
    ATT_TRY(write_bytes(npz, local, sizeof local));
    return write_bytes(npz, e->name, strlen(e->name));
}

att_status att_npz_add(att_npz *npz, const char *name, const char *type, att_shape shape, const void *bytes,
                       size_t size)
{
    char header[ATT_NPY_HEADER];
    const size_t length = att_npy_header(type, shape, header);
    uLong checksum = crc32_z(0, (const Bytef *)header, length);
    checksum = size > 0 ? crc32_z(checksum, bytes, size) : checksum;
    ATT_TRY(begin_entry(npz, name, (uint64_t)length + size, (uint32_t)checksum));
    ATT_TRY(write_bytes(npz, header, length));
    return write_bytes(npz, bytes, size);
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* Writes the code points of a text; returns how many there are. codes: NULL: none is written. */
static size_t decode(const char *text, uint32_t *codes)
{
    size_t count = 0;
    while (*text) {
        uint32_t code = '?';
        const size_t bytes = att_utf8_decode(text, &code);
        if (codes)
            codes[count] = code;
        count++;
        text += bytes > 0 ? bytes : 1;
    }
    return count;
}

att_status att_npz_add_texts(att_npz *npz, const char *name, int64_t count,
                             const char *(*text)(const void *user, int64_t index), const void *user)
{
    size_t most = 1;
    char type[32];
    uint32_t *codes;
    for (int64_t i = 0; i < count; i++)
        most = decode(text(user, i), NULL) > most ? decode(text(user, i), NULL) : most;
    ATT_TRY(att_new(npz->context, &codes, (size_t)count * most + 1, "the texts of a .npz file"));
    for (int64_t i = 0; i < count; i++)
        (void)decode(text(user, i), codes + (size_t)i * most);
    snprintf(type, sizeof type, "<U%zu", most);
    const att_status status =
        att_npz_add(npz, name, type, att_shape_of(count), codes, (size_t)count * most * sizeof *codes);
    att_free(npz->context, codes);
    return status;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* Writes the directory and the record behind it. */
static att_status finish(att_npz *npz)
{
    const uint64_t begin = npz->written;
    uint8_t end[END_BYTES] = {'P', 'K', 5, 6};
    for (int i = 0; i < npz->count; i++) {
        uint8_t header[ENTRY_BYTES] = {'P', 'K', 1, 2, 20};
        put_entry(header + 6, &npz->entries[i]);
        put(header + 42, npz->entries[i].offset, 4);
        ATT_TRY(write_bytes(npz, header, sizeof header));
        ATT_TRY(write_bytes(npz, npz->entries[i].name, strlen(npz->entries[i].name)));
    }
    put(end + 8, (uint32_t)npz->count, 2);
    put(end + 10, (uint32_t)npz->count, 2);
    put(end + 12, (uint32_t)(npz->written - begin), 4);
    put(end + 16, (uint32_t)begin, 4);
    return write_bytes(npz, end, sizeof end);
}

static void release(att_npz **npz)
{
    att_context *context = (*npz)->context;
    att_free(context, (*npz)->entries);
    att_free(context, *npz);
    *npz = NULL;
}

att_status att_npz_commit(att_npz **npz)
{
    att_status status = finish(*npz);
    if (status == ATT_OK)
        status = att_file_writer_commit(&(*npz)->file);
    else
        att_file_writer_abort(&(*npz)->file);
    release(npz);
    return status;
}

void att_npz_abort(att_npz **npz)
{
    if (!npz || !*npz)
        return;
    att_file_writer_abort(&(*npz)->file);
    release(npz);
}

/* --- whole files -------------------------------------------------------------------------------------------------- */

static size_t element_bytes(const char *type)
{
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"<f8", 8}, {"<f4", 4}, {"<i8", 8}, {"<i4", 4}, {"|u1", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, type) == 0)
            return types[i].bytes;
    return 0;
}

static size_t bytes_of(const att_npz_array *array)
{
    return att_size_product((size_t)att_shape_count(array->shape), element_bytes(array->type));
}

static att_status check(att_context *context, const att_npz_array *arrays, int count, const char *path)
{
    size_t bytes = 0;
    if (count < 0 || count > MOST_ARRAYS)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: an .npz file holds at most %d arrays", path, MOST_ARRAYS);
    for (int i = 0; i < count; i++) {
        const char *name = arrays[i].name, *type = arrays[i].type;
        if (!*name || strlen(name) > MOST_NAME || strchr(name, '/') || element_bytes(type) == 0)
            return att_fail(context, ATT_ERR_ARGUMENT, "the array \"%.64s\" of type \"%.8s\" cannot be written as .npz",
                            name, type);
        bytes = att_size_sum(bytes, att_size_sum(bytes_of(&arrays[i]), 2 * ATT_NPY_HEADER));
    }
    return bytes > INT32_MAX ? att_fail(context, ATT_ERR_ARGUMENT, "%s: the arrays have more than 2 GiB", path)
                             : ATT_OK;
}

att_status att_npz_write(att_context *context, const att_npz_array *arrays, int count, const char *path)
{
    att_npz *npz;
    ATT_TRY(check(context, arrays, count, path));
    ATT_TRY(att_npz_open(context, path, &npz));
    att_status status = ATT_OK;
    for (int i = 0; i < count && status == ATT_OK; i++)
        status =
            att_npz_add(npz, arrays[i].name, arrays[i].type, arrays[i].shape, arrays[i].data, bytes_of(&arrays[i]));
    if (status == ATT_OK)
        return att_npz_commit(&npz);
    att_npz_abort(&npz);
    return status;
}
