#include "base/io/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/json.h"
#include "base/io/other_file.h"
#include "base/io/tensors.h"

enum { MOST_ENTRY = 1 << 16 };

/* The shortest possible entry of a tensor in the header, including a comma. */
#define SHORTEST_ENTRY "\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,0]},"

typedef struct reading {
    att_tensors *file;
    uint64_t data;      /* offset of the tensors' data in the file */
    uint64_t data_size; /* size of the tensors' data in bytes */
    size_t header_size;
} reading;

static uint64_t read_u64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* Says what a file is that begins with no length of a header, if that can be told. */
static att_status fail_other_file(const reading *r, uint64_t size)
{
    const char *path = r->file->path;
    uint8_t begin[ATT_OTHER_FILE_BYTES];
    char is[ATT_OTHER_FILE_TEXT];
    const size_t count = size < sizeof begin ? (size_t)size : sizeof begin;
    ATT_TRY(att_file_reader_read(r->file->reader, 0, begin, count));
    if (att_other_file(path, begin, count, is))
        return att_tensors_refuse_other(r->file, is);
    return att_fail(r->file->context, ATT_ERR_FORMAT,
                    "%s: neither a safetensors file nor a PyTorch checkpoint, or damaged: its first 8 bytes would "
                    "announce a header of more than %d bytes",
                    path, (int)ATT_SAFETENSORS_MAX_HEADER);
}

/* Reads the length of the header, which determines where the tensors' data begin. */
static att_status find_header(reading *r)
{
    att_context *context = r->file->context;
    const char *path = r->file->path;
    uint64_t size = r->file->whole ? r->file->whole : att_file_reader_size(r->file->reader);
    uint8_t length[ATT_SAFETENSORS_LENGTH_BYTES];
    if (size < sizeof length)
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: %" PRIu64 " bytes; a safetensors file begins with the 8 bytes of its header's length",
                        path, size);
    ATT_TRY(att_file_reader_read(r->file->reader, 0, length, sizeof length));
    uint64_t announced = read_u64(length), rest = size - sizeof length;
    if (announced > ATT_SAFETENSORS_MAX_HEADER)
        return fail_other_file(r, size);
    if (announced > rest)
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: truncated: a header of %" PRIu64 " bytes is announced, %" PRIu64 " bytes follow", path,
                        announced, rest);
    r->header_size = (size_t)announced;
    r->data = sizeof length + announced;
    r->data_size = rest - announced;
    return ATT_OK;
}

/* Reads the header's text. Names and metadata are later decoded in place, so that a header needs little more memory
 * than its length. */
static att_status load_header(reading *r)
{
    att_context *context = r->file->context;
    r->file->header = att_reallocate(context, NULL, r->header_size + 1);
    if (!r->file->header)
        return att_fail_memory(context, r->header_size + 1, r->file->path);
    ATT_TRY(att_file_reader_read(r->file->reader, ATT_SAFETENSORS_LENGTH_BYTES, r->file->header, r->header_size));
    if (r->header_size == 0 || *r->file->header != '{')
        return att_fail(context, ATT_ERR_FORMAT, "%s: the header does not begin with '{'", r->file->path);
    return ATT_OK;
}

static att_status refuse(const reading *r, const char *name, const char *found)
{
    return att_fail(r->file->context, ATT_ERR_FORMAT, "%s: tensor %s: %s", r->file->path, name, found);
}

static att_status read_dtype(const reading *r, const char *name, const json_t *value, att_safetensors_dtype *dtype)
{
    const char *text = json_string_value(value);
    if (text == NULL)
        return refuse(r, name, "\"dtype\" is missing or not a string");
#define IF_NAMED(type, bytes)            \
    if (strcmp(text, #type) == 0) {      \
        *dtype = ATT_SAFETENSORS_##type; \
        return ATT_OK;                   \
    }
    ATT_SAFETENSORS_DTYPE_LIST(IF_NAMED)
#undef IF_NAMED
    return att_fail(r->file->context, ATT_ERR_FORMAT,
                    "%s: tensor %s: unknown dtype \"%s\"; expected a dtype of safetensors, such as F32 or BF16",
                    r->file->path, name, text);
}

static att_status read_shape(const reading *r, const char *name, const json_t *value, att_shape *shape, int64_t *count)
{
    if (!json_is_array(value))
        return refuse(r, name, "\"shape\" is missing or not a list");
    size_t rank = json_array_size(value);
    if (rank > ATT_MAX_RANK)
        return att_fail(r->file->context, ATT_ERR_UNSUPPORTED,
                        "%s: tensor %s has %zu dimensions; at most %d are supported", r->file->path, name, rank,
                        (int)ATT_MAX_RANK);
    *shape = (att_shape){.rank = (int)rank};
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(value, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return refuse(r, name, "\"shape\" is not a list of non-negative whole numbers");
        shape->dims[i] = json_integer_value(dim);
    }
    *count = att_shape_count(*shape);
    if (*count < 0)
        return refuse(r, name, "\"shape\" has more elements than can be counted");
    return ATT_OK;
}

/* Cannot overflow: att_shape_count() limits the count so that elements of up to 16 bytes fit into int64. */
static uint64_t bytes_of(const att_tensors_item *tensor)
{
    return (uint64_t)tensor->info.count * att_safetensors_dtype_size(tensor->info.dtype);
}

static att_status read_offsets(const reading *r, const json_t *value, att_tensors_item *tensor)
{
    const char *name = tensor->info.name;
    const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return refuse(r, name, "\"data_offsets\" is missing or not [begin, end] with 0 <= begin <= end");
    uint64_t first = (uint64_t)json_integer_value(begin), last = (uint64_t)json_integer_value(end);
    if (last > r->data_size)
        return att_fail(r->file->context, ATT_ERR_FORMAT,
                        "%s: tensor %s: ends at byte %" PRIu64 " after the header, the file ends at %" PRIu64
                        " (truncated?)",
                        r->file->path, name, last, r->data_size);
    if (last - first != bytes_of(tensor)) {
        char shape[128];
        return att_fail(r->file->context, ATT_ERR_FORMAT,
                        "%s: tensor %s: %" PRIu64 " bytes of data; %s of %s needs %" PRIu64, r->file->path, name,
                        last - first, att_shape_format(tensor->info.shape, shape, sizeof(shape)),
                        att_safetensors_dtype_name(tensor->info.dtype), bytes_of(tensor));
    }
    tensor->place = r->data + first;
    return ATT_OK;
}

static att_status read_entry(const reading *r, const json_t *value, att_tensors_item *tensor)
{
    const char *name = tensor->info.name;
    ATT_TRY(read_dtype(r, name, json_object_get(value, "dtype"), &tensor->info.dtype));
    ATT_TRY(read_shape(r, name, json_object_get(value, "shape"), &tensor->info.shape, &tensor->info.count));
    return read_offsets(r, json_object_get(value, "data_offsets"), tensor);
}

static att_status read_tensor(const reading *r, const att_json_member *member, att_tensors_item *tensor)
{
    char what[512];
    json_t *value = NULL;
    if (*member->value != '{')
        return refuse(r, member->key, "its entry is not an object with dtype, shape and data_offsets");
    if (member->size > MOST_ENTRY)
        return refuse(r, member->key, "its entry has more than 65536 bytes; dtype, shape and data_offsets need fewer");
    snprintf(what, sizeof what, "%.300s: tensor %.150s", r->file->path, member->key);
    ATT_TRY(att_json_parse_unique(r->file->context, what, member->value, member->size, &value));
    tensor->info.name = member->key;
    att_status status = read_entry(r, value, tensor);
    json_decref(value);
    return status;
}

static att_status read_metadata(const reading *r, const att_json_member *object)
{
    att_tensors *file = r->file;
    if (file->metadata)
        return att_fail(file->context, ATT_ERR_FORMAT, "%s: the header has __metadata__ twice", file->path);
    if (*object->value != '{')
        return att_fail(file->context, ATT_ERR_FORMAT, "%s: __metadata__ is not an object of strings", file->path);
    att_json_members members = {file->context, file->path, object->value, object->size, 0, false};
    size_t capacity = att_json_members_count(members) + 1;
    ATT_TRY(att_new(file->context, &file->metadata, capacity, file->path));
    for (;;) {
        att_json_member member;
        char *value;
        ATT_TRY(att_check_stop(file->context, file->path));
        ATT_TRY(att_json_members_next(&members, &member));
        if (!member.key)
            return ATT_OK;
        if (*member.value != '"')
            return att_fail(file->context, ATT_ERR_FORMAT, "%s: __metadata__: the value of %s is not a string",
                            file->path, member.key);
        ATT_TRY(att_json_member_string(&members, &member, &value));
        file->metadata[file->metadata_count++] = (att_safetensors_pair){member.key, value};
    }
}

/* Orders tensors by offset. An empty tensor comes before another one at the same offset. */
static int compare_places(const void *a, const void *b)
{
    const att_tensors_item *left = a, *right = b;
    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    if (bytes_of(left) != bytes_of(right))
        return bytes_of(left) < bytes_of(right) ? -1 : 1;
    return strcmp(left->info.name, right->info.name);
}

static att_status check_places(const reading *r)
{
    uint64_t place = 0;
    for (int i = 0; i < r->file->count; i++) {
        const att_tensors_item *tensor = &r->file->items[i];
        uint64_t begin = tensor->place - r->data;
        if (begin != place)
            return att_fail(r->file->context, ATT_ERR_FORMAT,
                            "%s: tensor %s: begins at byte %" PRIu64 " after the header; expected %" PRIu64
                            ", where the one before it ends (%s)",
                            r->file->path, tensor->info.name, begin, place, begin < place ? "they overlap" : "a gap");
        place = begin + bytes_of(tensor);
    }
    if (place != r->data_size)
        return att_fail(r->file->context, ATT_ERR_FORMAT, "%s: %" PRIu64 " bytes after the last tensor; expected none",
                        r->file->path, r->data_size - place);
    return ATT_OK;
}

static att_status read_members(const reading *r, att_json_members *members)
{
    att_tensors *file = r->file;
    for (;;) {
        att_json_member member;
        ATT_TRY(att_check_stop(file->context, file->path));
        ATT_TRY(att_json_members_next(members, &member));
        if (!member.key)
            return ATT_OK;
        if (strcmp(member.key, ATT_SAFETENSORS_METADATA) == 0) {
            ATT_TRY(read_metadata(r, &member));
        } else {
            ATT_TRY(read_tensor(r, &member, &file->items[file->count]));
            file->count++;
        }
    }
}

static att_status read_header(const reading *r)
{
    att_tensors *file = r->file;
    att_json_members members = {file->context, file->path, file->header, r->header_size, 0, false};
    size_t count = att_json_members_count(members), most = r->header_size / (sizeof SHORTEST_ENTRY - 1);
    /* A malformed member can be shorter than SHORTEST_ENTRY, so `count` may exceed `most`. Reading fails at the first
     * malformed member, so `most` entries, and one for that member, are enough. */
    size_t capacity = (count < most ? count : most) + 1;
    ATT_TRY(att_new(file->context, &file->items, capacity, file->path));
    ATT_TRY(read_members(r, &members));
    qsort(file->items, (size_t)file->count, sizeof *file->items, compare_places);
    return check_places(r);
}

att_status att_tensors_read_safetensors(att_tensors *file)
{
    reading r = {.file = file};
    ATT_TRY(find_header(&r));
    ATT_TRY(load_header(&r));
    return read_header(&r);
}
