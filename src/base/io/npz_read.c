#include "base/io/npz_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"

enum { MOST_HEADER = 1 << 16, MOST_NAME = 1024, LISTED = 8 };

/* Limit on the total size of the arrays of a compressed archive, which are unpacked into memory: MOST_EXPANSION times
 * the size of the file, plus FREE_BYTES. Pruned weights are a tenth of their size; without a limit, a small file could
 * claim a thousand times its size. */
enum { MOST_EXPANSION = 64, FREE_BYTES = 1 << 24 };

typedef struct reading {
    const att_zip_records *archive;
    att_tensors *file;
    uint64_t bytes_left; /* how many more bytes may be unpacked */
    att_text left_out;
    int left_out_count;
} reading;

/* Format, apart from its size, of one array. */
typedef struct array {
    bool known;     /* whether tensors have numbers of this type */
    bool complex;   /* whether the numbers are complex */
    bool backwards; /* Fortran's order: the first index varies fastest */
    att_safetensors_dtype dtype;
    att_shape shape;
    uint64_t begin; /* of the numbers in the array's file */
    uint64_t bytes; /* of the numbers */
} array;

/* The file of one array in the archive. */
typedef struct content {
    const att_zip_record *record;
    const uint8_t *unpacked; /* [record->unpacked]; NULL: it is stored as it is */
} content;

static const char ARRAY[] = ".npy";

bool att_npz_holds_arrays(const att_zip_records *archive)
{
    bool holds = false;
    for (size_t i = 0; i < archive->count && !holds; i++)
        holds = att_zip_record_ends(&archive->records[i], ARRAY);
    return holds;
}

/* --- the header of an array --------------------------------------------------------------------------------------- */

static const struct {
    const char *code;
    att_safetensors_dtype dtype;
} dtypes[] = {{"<f8", ATT_SAFETENSORS_F64}, {"<f4", ATT_SAFETENSORS_F32}, {"<f2", ATT_SAFETENSORS_F16},
              {"<i8", ATT_SAFETENSORS_I64}, {"<i4", ATT_SAFETENSORS_I32}, {"<i2", ATT_SAFETENSORS_I16},
              {"|i1", ATT_SAFETENSORS_I8},  {"<u8", ATT_SAFETENSORS_U64}, {"<u4", ATT_SAFETENSORS_U32},
              {"<u2", ATT_SAFETENSORS_U16}, {"|u1", ATT_SAFETENSORS_U8},  {"|b1", ATT_SAFETENSORS_BOOL}};

/* Returns what follows "'key':" and blanks in the header's dictionary; NULL if it lacks the key. */
static const char *value_of(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *found = strstr(header, quoted);
    return found ? found + strlen(quoted) + strspn(found + strlen(quoted), " ") : NULL;
}

/* Reads "(1, 197, 768)", "(5,)" or "()". */
static bool read_shape(const char *text, att_shape *shape)
{
    *shape = (att_shape){.rank = 0};
    if (*text++ != '(')
        return false;
    for (text += strspn(text, " "); *text != ')'; text += strspn(text, ", ")) {
        char *end;
        const long long side = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;
        if (side < 0 || shape->rank == ATT_MAX_RANK)
            return false;
        shape->dims[shape->rank++] = side;
        text = end;
    }
    return true;
}

static bool read_type(const char *text, array *a)
{
    char code[8];
    if (*text != '\'') /* a type of several parts */
        return true;
    snprintf(code, sizeof code, "%.*s", (int)strcspn(text + 1, "'"), text + 1);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes && !a->known; i++) {
        a->known = strcmp(code, dtypes[i].code) == 0;
        a->dtype = dtypes[i].dtype;
    }
    a->complex = code[0] && code[1] == 'c';
    return code[0] != '>' || (code[1] != 'f' && code[1] != 'i' && code[1] != 'u');
}

static bool read_dictionary(const char *header, array *a)
{
    const char *type = value_of(header, "descr"), *order = value_of(header, "fortran_order"),
               *shape = value_of(header, "shape");
    if (!type || !order || !shape)
        return false;
    a->backwards = strncmp(order, "True", 4) == 0;
    return read_type(type, a) && (!a->known || read_shape(shape, &a->shape));
}

static att_status read_bytes(const reading *r, const content *from, uint64_t offset, void *out, size_t size)
{
    if (!from->unpacked)
        return att_file_reader_read(r->file->reader, from->record->data + offset, out, size);
    memcpy(out, from->unpacked + offset, size);
    return ATT_OK;
}

/* Reads the header: the magic text, a version, the length of a dictionary, and this as Python writes it. */
static att_status read_header(const reading *r, const content *from, array *a)
{
    static const char damaged[] = "is no array of NumPy, or one of big-endian numbers or of more than 5 dimensions";
    enum { MAGIC = 6, VERSION_1 = 10, LATER = 12 };
    uint8_t first[LATER] = {0};
    char *header;
    const att_pickle_text name = from->record->name;
    const uint64_t size = from->record->unpacked;
    *a = (array){.known = false};
    if (size < LATER)
        return att_zip_record_refuse(r->archive, name, ATT_ERR_FORMAT, damaged);
    ATT_TRY(read_bytes(r, from, 0, first, LATER));
    const uint64_t begin = first[MAGIC] == 1 ? VERSION_1 : LATER;
    uint64_t length = first[8] | (uint64_t)first[9] << 8;
    if (first[MAGIC] != 1)
        length |= (uint64_t)first[10] << 16 | (uint64_t)first[11] << 24;
    if (memcmp(first, "\x93NUMPY", MAGIC) != 0 || first[MAGIC] < 1 || first[MAGIC] > 3 || length > MOST_HEADER ||
        length > size - begin)
        return att_zip_record_refuse(r->archive, name, ATT_ERR_FORMAT, damaged);
    ATT_TRY(att_new(r->file->context, &header, (size_t)length + 1, r->file->path));
    att_status status = read_bytes(r, from, begin, header, (size_t)length);
    if (status == ATT_OK) {
        a->begin = begin + length;
        a->bytes = size - begin - length;
        if (!read_dictionary(header, a))
            status = att_zip_record_refuse(r->archive, name, ATT_ERR_UNSUPPORTED, damaged);
    }
    att_free(r->file->context, header);
    return status;
}

/* --- items -------------------------------------------------------------------------------------------------------- */

/* why: behind the name, " (complex numbers)"; "": nothing. */
static att_status leave_out(reading *r, att_pickle_text name, const char *why)
{
    char shown[ATT_PICKLE_SHOWN];
    if (r->left_out_count < LISTED)
        att_text_append(&r->left_out, "%s%s%s", r->left_out_count ? ", " : "", att_pickle_show(name, shown), why);
    else if (r->left_out_count == LISTED)
        att_text_append(&r->left_out, ", ...");
    r->left_out_count++;
    return ATT_OK;
}

static att_status set_strides(const reading *r, att_tensors_item *item)
{
    const att_shape *shape = &item->info.shape;
    int64_t *strides = att_arena_allocate(&r->file->arena, sizeof(int64_t[ATT_MAX_RANK])), step = 1;
    if (!strides)
        return att_fail_memory(r->file->context, sizeof(int64_t[ATT_MAX_RANK]), r->file->path);
    for (int d = 0; d < shape->rank; d++) {
        strides[d] = shape->dims[d] == 1 ? 0 : step;
        step *= shape->dims[d];
    }
    item->strides = strides;
    return ATT_OK;
}

/* Sets the item's name, which is that of the file without its ending. */
static att_status name_item(const reading *r, const att_zip_record *record, att_tensors_item *item)
{
    const size_t length = record->name.length - strlen(ARRAY);
    char *name = length > 0 && length <= MOST_NAME ? att_arena_allocate(&r->file->arena, length + 1) : NULL;
    if (!name)
        return length > 0 && length <= MOST_NAME
                   ? att_fail_memory(r->file->context, length + 1, r->file->path)
                   : att_zip_record_refuse(r->archive, record->name, ATT_ERR_FORMAT, "has no name, or too long a name");
    memcpy(name, record->name.bytes, length);
    for (size_t i = 0; i < length; i++)
        name[i] = name[i] == '/' ? '.' : name[i];
    if (strlen(name) != length || !att_utf8_valid(name))
        return att_zip_record_refuse(r->archive, record->name, ATT_ERR_FORMAT, "has a name that is not valid UTF-8");
    item->info.name = name;
    return ATT_OK;
}

/* Unpacks the array's file into the arena. */
static att_status unpack(reading *r, content *from)
{
    const uint64_t size = from->record->unpacked;
    if (size == 0)
        return ATT_OK;
    if (size > r->bytes_left)
        return att_zip_record_refuse(r->archive, from->record->name, ATT_ERR_FORMAT,
                                     "would be larger than an archive of this size may hold");
    r->bytes_left -= size;
    uint8_t *bytes = att_arena_allocate(&r->file->arena, (size_t)size);
    if (!bytes)
        return att_fail_memory(r->file->context, (size_t)size, r->file->path);
    from->unpacked = bytes;
    return att_zip_record_unpack(r->archive, from->record, bytes);
}

static att_status add_array(reading *r, att_zip_record *record)
{
    att_tensors *file = r->file;
    content from = {.record = record};
    array a;
    ATT_TRY(record->deflated ? unpack(r, &from)
                             : att_zip_record_check_plain(r->archive, record,
                                                          "as numpy.savez() writes it, or one of savez_compressed()"));
    ATT_TRY(read_header(r, &from, &a));
    if (!a.known)
        return leave_out(r, record->name, a.complex ? " (complex numbers)" : "");
    const int64_t count = att_shape_count(a.shape), size = (int64_t)att_safetensors_dtype_size(a.dtype);
    if (count < 0 || count > INT64_MAX / size || (uint64_t)(count * size) != a.bytes)
        return att_zip_record_refuse(r->archive, record->name, ATT_ERR_FORMAT,
                                     "has more or fewer bytes than its shape says");
    if (!from.unpacked)
        ATT_TRY(att_zip_record_check(r->archive, record));
    att_tensors_item item = {.info = {.dtype = a.dtype, .shape = a.shape, .count = count},
                             .place = record->data + a.begin,
                             .data = from.unpacked ? from.unpacked + a.begin : NULL};
    ATT_TRY(name_item(r, record, &item));
    if (a.backwards && count > 0)
        ATT_TRY(set_strides(r, &item));
    file->items[file->count++] = item;
    return ATT_OK;
}

static att_status add_arrays(reading *r, att_text *origin)
{
    ATT_TRY(att_new(r->file->context, &r->file->items, r->archive->count, r->file->path));
    for (size_t i = 0; i < r->archive->count; i++)
        ATT_TRY(att_zip_record_ends(&r->archive->records[i], ARRAY) ? add_array(r, &r->archive->records[i])
                                                                    : leave_out(r, r->archive->records[i].name, ""));
    if (r->file->count == 0)
        return att_fail(r->file->context, ATT_ERR_UNSUPPORTED,
                        "%s: an archive of NumPy without arrays of real numbers; it has %s", r->file->path,
                        r->left_out.data ? r->left_out.data : "");
    att_text_append(origin, "NumPy's arrays");
    ATT_TRY(r->file->is_shard ? ATT_OK : att_tensors_normalize_names(r->file, 0, origin));
    if (r->left_out_count > 0)
        att_text_append(origin, "; left out: %s", r->left_out.data ? r->left_out.data : "");
    r->file->origin = origin->failed || r->left_out.failed ? NULL : att_arena_string(&r->file->arena, origin->data);
    if (r->file->origin)
        return ATT_OK;
    r->file->origin = "";
    return att_fail_memory(r->file->context, origin->length, r->file->path);
}

att_status att_npz_collect(const att_zip_records *archive)
{
    att_context *context = archive->file->context;
    reading r = {.archive = archive,
                 .file = archive->file,
                 .bytes_left = att_file_reader_size(archive->file->reader) * MOST_EXPANSION + FREE_BYTES,
                 .left_out.context = context};
    att_text origin = {.context = context};
    att_status status = add_arrays(&r, &origin);
    att_text_free(&r.left_out);
    att_text_free(&origin);
    return status;
}
