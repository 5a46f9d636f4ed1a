#include "io/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "io/json.h"
#include "io/tensors.h"

typedef struct reading {
    att_tensors *file;
    const uint8_t *data; /* the tensors: data_size bytes in the mapped file */
    uint64_t data_size;
} reading;

static uint64_t read_u64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* Finds the header in the mapped file and with it where the tensors lie. */
static att_status find_header(reading *r, const char **header, size_t *length)
{
    att_context *context = r->file->context;
    const char *path = r->file->path;
    if (r->file->map.size < ATT_SAFETENSORS_LENGTH_BYTES)
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: %zu bytes; a safetensors file begins with the 8 bytes of its header's length", path,
                        r->file->map.size);
    uint64_t announced = read_u64(r->file->map.bytes);
    uint64_t rest = r->file->map.size - ATT_SAFETENSORS_LENGTH_BYTES;
    if (announced > ATT_SAFETENSORS_MAX_HEADER)
        return att_fail(
            context, ATT_ERR_FORMAT,
            "%s: neither safetensors nor a checkpoint of PyTorch, or damaged: its first 8 bytes are not the "
            "length of a header, which is at most %d",
            path, (int)ATT_SAFETENSORS_MAX_HEADER);
    if (announced > rest)
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: truncated: a header of %" PRIu64 " bytes is announced, %" PRIu64 " bytes follow", path,
                        announced, rest);
    *header = (const char *)r->file->map.bytes + ATT_SAFETENSORS_LENGTH_BYTES;
    *length = (size_t)announced;
    if (announced == 0 || **header != '{')
        return att_fail(context, ATT_ERR_FORMAT, "%s: the header does not begin with '{'", path);
    r->data = r->file->map.bytes + ATT_SAFETENSORS_LENGTH_BYTES + announced;
    r->data_size = rest - announced;
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
                    "%s: tensor %s: unknown dtype \"%s\"; expected F32, BF16 or the like", r->file->path, name, text);
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
            return refuse(r, name, "\"shape\" holds something else than non-negative whole numbers");
        shape->dims[i] = json_integer_value(dim);
    }
    *count = att_shape_count(*shape);
    if (*count < 0)
        return refuse(r, name, "\"shape\" has more elements than can be counted");
    return ATT_OK;
}

/* att_shape_count() leaves room for 16 bytes an element. */
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
    tensor->data = r->data + first;
    tensor->packed = true;
    return ATT_OK;
}

static att_status read_tensor(const reading *r, const char *name, const json_t *value, att_tensors_item *tensor)
{
    tensor->info.name = name;
    if (!json_is_object(value))
        return refuse(r, name, "its entry is not an object with dtype, shape and data_offsets");
    ATT_TRY(read_dtype(r, name, json_object_get(value, "dtype"), &tensor->info.dtype));
    ATT_TRY(read_shape(r, name, json_object_get(value, "shape"), &tensor->info.shape, &tensor->info.count));
    return read_offsets(r, json_object_get(value, "data_offsets"), tensor);
}

static att_status keep_string(reading *r, const char *text, const char **copy)
{
    *copy = att_arena_string(&r->file->arena, text);
    return *copy != NULL ? ATT_OK : att_fail_memory(r->file->context, strlen(text) + 1, r->file->path);
}

static att_status read_metadata(reading *r, json_t *object)
{
    if (!json_is_object(object))
        return att_fail(r->file->context, ATT_ERR_FORMAT, "%s: __metadata__ is not an object of strings",
                        r->file->path);
    size_t count = json_object_size(object);
    if (count == 0)
        return ATT_OK;
    r->file->metadata = att_allocate_array(r->file->context, count, sizeof(*r->file->metadata));
    if (r->file->metadata == NULL)
        return att_fail_memory(r->file->context, count * sizeof(*r->file->metadata), r->file->path);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value))
            return att_fail(r->file->context, ATT_ERR_FORMAT, "%s: __metadata__: the value of %s is not a string",
                            r->file->path, key);
        att_safetensors_pair *pair = &r->file->metadata[r->file->metadata_count++];
        ATT_TRY(keep_string(r, key, &pair->key));
        ATT_TRY(keep_string(r, json_string_value(value), &pair->value));
    }
    return ATT_OK;
}

/* Empty tensors come before the one that begins at the same byte. */
static int compare_places(const void *a, const void *b)
{
    const att_tensors_item *left = a, *right = b;
    if (left->data != right->data)
        return left->data < right->data ? -1 : 1;
    if (bytes_of(left) != bytes_of(right))
        return bytes_of(left) < bytes_of(right) ? -1 : 1;
    return strcmp(left->info.name, right->info.name);
}

static att_status check_places(const reading *r)
{
    uint64_t place = 0;
    for (int i = 0; i < r->file->count; i++) {
        const att_tensors_item *tensor = &r->file->items[i];
        uint64_t begin = (uint64_t)(tensor->data - r->data);
        if (begin != place)
            return att_fail(r->file->context, ATT_ERR_FORMAT,
                            "%s: tensor %s: begins at byte %" PRIu64 " after the header; expected %" PRIu64
                            ", where the one before it ends (%s)",
                            r->file->path, tensor->info.name, begin, place, begin < place ? "they overlap" : "a hole");
        place = begin + bytes_of(tensor);
    }
    if (place != r->data_size)
        return att_fail(r->file->context, ATT_ERR_FORMAT, "%s: %" PRIu64 " bytes after the last tensor; expected none",
                        r->file->path, r->data_size - place);
    return ATT_OK;
}

static att_status read_header(reading *r, json_t *header)
{
    size_t capacity = json_object_size(header);
    if (capacity > 0) {
        r->file->items = att_allocate_array(r->file->context, capacity, sizeof(*r->file->items));
        if (r->file->items == NULL)
            return att_fail_memory(r->file->context, capacity * sizeof(*r->file->items), r->file->path);
    }
    const char *key;
    json_t *value;
    json_object_foreach(header, key, value)
    {
        if (strcmp(key, ATT_SAFETENSORS_METADATA) == 0) {
            ATT_TRY(read_metadata(r, value));
            continue;
        }
        const char *name = NULL;
        ATT_TRY(keep_string(r, key, &name));
        ATT_TRY(read_tensor(r, name, value, &r->file->items[r->file->count]));
        r->file->count++;
    }
    if (r->file->count > 0)
        qsort(r->file->items, (size_t)r->file->count, sizeof(*r->file->items), compare_places);
    return check_places(r);
}

att_status att_tensors_read_safetensors(att_tensors *file)
{
    reading r = {.file = file};
    const char *bytes = NULL;
    size_t length = 0;
    ATT_TRY(find_header(&r, &bytes, &length));
    json_t *header = NULL;
    ATT_TRY(att_json_parse(file->context, file->path, bytes, length, &header));
    att_status status = read_header(&r, header);
    json_decref(header);
    return status;
}
