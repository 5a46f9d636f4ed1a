#include "io/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/file.h"
#include "io/json.h"

/* begin and end: bytes from the end of the header. */
struct tensor {
    att_safetensors_info info;
    uint64_t begin, end;
};

struct named {
    const char *name;
    int index;
};

struct att_safetensors {
    att_context *context;
    att_arena arena;
    char *path;
    att_file_map map;
    const uint8_t *data; /* the tensors: data_size bytes in `map` */
    uint64_t data_size;
    struct tensor *tensors; /* by begin */
    struct named *names;    /* by name */
    att_safetensors_pair *metadata;
    int tensor_count, metadata_count;
};

static uint64_t read_u64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* A zip archive or a bare pickle: what torch.save() writes. */
static bool is_pickle(const att_file_map *map)
{
    static const uint8_t zip[] = {'P', 'K', 3, 4}, protocol = 0x80;
    bool is_bare = map->bytes[0] == protocol && map->bytes[1] >= 2 && map->bytes[1] <= 5;
    return is_bare || memcmp(map->bytes, zip, sizeof zip) == 0;
}

/* Finds the header in the mapped file and with it where the tensors lie. */
static att_status find_header(att_safetensors *file, const char **header, size_t *length)
{
    att_context *context = file->context;
    const char *path = file->path;
    if (file->map.size < ATT_SAFETENSORS_LENGTH_BYTES)
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: %zu bytes; a safetensors file begins with the 8 bytes of its header's length", path,
                        file->map.size);
    uint64_t announced = read_u64(file->map.bytes);
    uint64_t rest = file->map.size - ATT_SAFETENSORS_LENGTH_BYTES;
    if (announced > ATT_SAFETENSORS_MAX_HEADER && is_pickle(&file->map))
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: looks like a checkpoint of PyTorch's own (.pth, .pt, .bin), which is not read; save its "
                        "tensors as safetensors",
                        path);
    if (announced > ATT_SAFETENSORS_MAX_HEADER)
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: not a safetensors file, or damaged: a header of %" PRIu64
                        " bytes is announced, at most "
                        "%d are allowed",
                        path, announced, (int)ATT_SAFETENSORS_MAX_HEADER);
    if (announced > rest)
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: truncated: a header of %" PRIu64 " bytes is announced, %" PRIu64 " bytes follow", path,
                        announced, rest);
    *header = (const char *)file->map.bytes + ATT_SAFETENSORS_LENGTH_BYTES;
    *length = (size_t)announced;
    if (announced == 0 || **header != '{')
        return att_fail(context, ATT_ERR_FORMAT, "%s: the header does not begin with '{'", path);
    file->data = file->map.bytes + ATT_SAFETENSORS_LENGTH_BYTES + announced;
    file->data_size = rest - announced;
    return ATT_OK;
}

static att_status refuse(const att_safetensors *file, const char *name, const char *found)
{
    return att_fail(file->context, ATT_ERR_FORMAT, "%s: tensor %s: %s", file->path, name, found);
}

static att_status read_dtype(const att_safetensors *file, const char *name, const json_t *value,
                             att_safetensors_dtype *dtype)
{
    const char *text = json_string_value(value);
    if (text == NULL)
        return refuse(file, name, "\"dtype\" is missing or not a string");
#define IF_NAMED(type, bytes)            \
    if (strcmp(text, #type) == 0) {      \
        *dtype = ATT_SAFETENSORS_##type; \
        return ATT_OK;                   \
    }
    ATT_SAFETENSORS_DTYPE_LIST(IF_NAMED)
#undef IF_NAMED
    return att_fail(file->context, ATT_ERR_FORMAT,
                    "%s: tensor %s: unknown dtype \"%s\"; expected F32, BF16 or the like", file->path, name, text);
}

static att_status read_shape(const att_safetensors *file, const char *name, const json_t *value, att_shape *shape,
                             int64_t *count)
{
    if (!json_is_array(value))
        return refuse(file, name, "\"shape\" is missing or not a list");
    size_t rank = json_array_size(value);
    if (rank > ATT_MAX_RANK)
        return att_fail(file->context, ATT_ERR_UNSUPPORTED,
                        "%s: tensor %s has %zu dimensions; at most %d are supported", file->path, name, rank,
                        (int)ATT_MAX_RANK);
    *shape = (att_shape){.rank = (int)rank};
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(value, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return refuse(file, name, "\"shape\" holds something else than non-negative whole numbers");
        shape->dims[i] = json_integer_value(dim);
    }
    *count = att_shape_count(*shape);
    if (*count < 0)
        return refuse(file, name, "\"shape\" has more elements than can be counted");
    return ATT_OK;
}

static att_status read_offsets(const att_safetensors *file, const json_t *value, struct tensor *tensor)
{
    const char *name = tensor->info.name;
    const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return refuse(file, name, "\"data_offsets\" is missing or not [begin, end] with 0 <= begin <= end");
    tensor->begin = (uint64_t)json_integer_value(begin);
    tensor->end = (uint64_t)json_integer_value(end);
    if (tensor->end > file->data_size)
        return att_fail(file->context, ATT_ERR_FORMAT,
                        "%s: tensor %s: ends at byte %" PRIu64 " after the header, the file ends at %" PRIu64
                        " (truncated?)",
                        file->path, name, tensor->end, file->data_size);
    /* att_shape_count() leaves room for 16 bytes an element. */
    uint64_t expected = (uint64_t)tensor->info.count * att_safetensors_dtype_size(tensor->info.dtype);
    if (tensor->end - tensor->begin != expected) {
        char shape[128];
        return att_fail(file->context, ATT_ERR_FORMAT,
                        "%s: tensor %s: %" PRIu64 " bytes of data; %s of %s needs %" PRIu64, file->path, name,
                        tensor->end - tensor->begin, att_shape_format(tensor->info.shape, shape, sizeof(shape)),
                        att_safetensors_dtype_name(tensor->info.dtype), expected);
    }
    return ATT_OK;
}

static att_status read_tensor(const att_safetensors *file, const char *name, const json_t *value, struct tensor *tensor)
{
    tensor->info.name = name;
    if (!json_is_object(value))
        return refuse(file, name, "its entry is not an object with dtype, shape and data_offsets");
    ATT_TRY(read_dtype(file, name, json_object_get(value, "dtype"), &tensor->info.dtype));
    ATT_TRY(read_shape(file, name, json_object_get(value, "shape"), &tensor->info.shape, &tensor->info.count));
    return read_offsets(file, json_object_get(value, "data_offsets"), tensor);
}

static att_status keep_string(att_safetensors *file, const char *text, const char **copy)
{
    *copy = att_arena_string(&file->arena, text);
    return *copy != NULL ? ATT_OK : att_fail_memory(file->context, strlen(text) + 1, file->path);
}

static att_status read_metadata(att_safetensors *file, json_t *object)
{
    if (!json_is_object(object))
        return att_fail(file->context, ATT_ERR_FORMAT, "%s: __metadata__ is not an object of strings", file->path);
    size_t count = json_object_size(object);
    if (count == 0)
        return ATT_OK;
    file->metadata = att_allocate_array(file->context, count, sizeof(*file->metadata));
    if (file->metadata == NULL)
        return att_fail_memory(file->context, count * sizeof(*file->metadata), file->path);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value))
            return att_fail(file->context, ATT_ERR_FORMAT, "%s: __metadata__: the value of %s is not a string",
                            file->path, key);
        att_safetensors_pair *pair = &file->metadata[file->metadata_count++];
        ATT_TRY(keep_string(file, key, &pair->key));
        ATT_TRY(keep_string(file, json_string_value(value), &pair->value));
    }
    return ATT_OK;
}

/* Empty tensors come before the one that begins at the same byte. */
static int compare_places(const void *a, const void *b)
{
    const struct tensor *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    if (left->end != right->end)
        return left->end < right->end ? -1 : 1;
    return strcmp(left->info.name, right->info.name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static att_status check_places(const att_safetensors *file)
{
    uint64_t place = 0;
    for (int i = 0; i < file->tensor_count; i++) {
        const struct tensor *tensor = &file->tensors[i];
        if (tensor->begin != place)
            return att_fail(file->context, ATT_ERR_FORMAT,
                            "%s: tensor %s: begins at byte %" PRIu64 " after the header; expected %" PRIu64
                            ", where the one before it ends (%s)",
                            file->path, tensor->info.name, tensor->begin, place,
                            tensor->begin < place ? "they overlap" : "a hole");
        place = tensor->end;
    }
    if (place != file->data_size)
        return att_fail(file->context, ATT_ERR_FORMAT, "%s: %" PRIu64 " bytes after the last tensor; expected none",
                        file->path, file->data_size - place);
    return ATT_OK;
}

static att_status read_header(att_safetensors *file, json_t *header)
{
    size_t capacity = json_object_size(header);
    if (capacity > 0) {
        file->tensors = att_allocate_array(file->context, capacity, sizeof(*file->tensors));
        file->names = att_allocate_array(file->context, capacity, sizeof(*file->names));
        if (file->tensors == NULL || file->names == NULL)
            return att_fail_memory(file->context, capacity * sizeof(*file->tensors), file->path);
    }
    const char *key;
    json_t *value;
    json_object_foreach(header, key, value)
    {
        if (strcmp(key, ATT_SAFETENSORS_METADATA) == 0) {
            ATT_TRY(read_metadata(file, value));
            continue;
        }
        const char *name = NULL;
        ATT_TRY(keep_string(file, key, &name));
        ATT_TRY(read_tensor(file, name, value, &file->tensors[file->tensor_count]));
        file->tensor_count++;
    }
    if (file->tensor_count > 0)
        qsort(file->tensors, (size_t)file->tensor_count, sizeof(*file->tensors), compare_places);
    for (int i = 0; i < file->tensor_count; i++)
        file->names[i] = (struct named){file->tensors[i].info.name, i};
    if (file->tensor_count > 0)
        qsort(file->names, (size_t)file->tensor_count, sizeof(*file->names), compare_names);
    return check_places(file);
}

static att_status open_file(att_safetensors *file, const char *path)
{
    file->path = att_arena_string(&file->arena, path);
    if (file->path == NULL)
        return att_fail_memory(file->context, strlen(path) + 1, path);
    ATT_TRY(att_file_map_open(file->context, path, &file->map));
    const char *bytes = NULL;
    size_t length = 0;
    ATT_TRY(find_header(file, &bytes, &length));
    json_t *header = NULL;
    ATT_TRY(att_json_parse(file->context, path, bytes, length, &header));
    att_status status = read_header(file, header);
    json_decref(header);
    return status;
}

att_status att_safetensors_open(att_context *context, const char *path, att_safetensors **file)
{
    att_safetensors *made = att_allocate(context, sizeof(*made));
    if (made == NULL)
        return att_fail_memory(context, sizeof(*made), path);
    made->context = made->arena.context = context;
    att_status status = open_file(made, path);
    if (status != ATT_OK)
        att_safetensors_close(&made);
    else
        *file = made;
    return status;
}

void att_safetensors_close(att_safetensors **file)
{
    if (file == NULL || *file == NULL)
        return;
    att_safetensors *done = *file;
    att_file_map_close(&done->map);
    att_arena_free(&done->arena);
    att_free(done->context, done->tensors);
    att_free(done->context, done->names);
    att_free(done->context, done->metadata);
    att_free(done->context, done);
    *file = NULL;
}

const char *att_safetensors_path(const att_safetensors *file)
{
    return file->path;
}

int att_safetensors_count(const att_safetensors *file)
{
    return file->tensor_count;
}

att_safetensors_info att_safetensors_at(const att_safetensors *file, int index)
{
    return file->tensors[index].info;
}

int att_safetensors_find(const att_safetensors *file, const char *name)
{
    if (file->tensor_count == 0)
        return -1;
    struct named key = {.name = name};
    const struct named *found =
        bsearch(&key, file->names, (size_t)file->tensor_count, sizeof(*file->names), compare_names);
    return found != NULL ? found->index : -1;
}

const char *att_safetensors_metadata(const att_safetensors *file, const char *key)
{
    for (int i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0)
            return file->metadata[i].value;
    return NULL;
}

int att_safetensors_metadata_count(const att_safetensors *file)
{
    return file->metadata_count;
}

const char *att_safetensors_metadata_key(const att_safetensors *file, int index)
{
    return file->metadata[index].key;
}

static att_status check_read(const att_safetensors *file, int index, int64_t count)
{
    if (index < 0 || index >= file->tensor_count)
        return att_fail(file->context, ATT_ERR_ARGUMENT, "%s has %d tensors; number %d was asked for", file->path,
                        file->tensor_count, index);
    const att_safetensors_info *info = &file->tensors[index].info;
    if (info->count != count)
        return att_fail(file->context, ATT_ERR_ARGUMENT,
                        "%s: tensor %s has %" PRId64 " elements; %" PRId64 " were asked for", file->path, info->name,
                        info->count, count);
    return ATT_OK;
}

att_status att_safetensors_read_f32(const att_safetensors *file, int index, float *out, int64_t count)
{
    ATT_TRY(check_read(file, index, count));
    const struct tensor *tensor = &file->tensors[index];
    if (!att_safetensors_to_f32(tensor->info.dtype, file->data + tensor->begin, out, count))
        return att_fail(file->context, ATT_ERR_UNSUPPORTED,
                        "%s: tensor %s is %s; only F32, F16, BF16 and F64 can be read as f32", file->path,
                        tensor->info.name, att_safetensors_dtype_name(tensor->info.dtype));
    return ATT_OK;
}

att_status att_safetensors_read(const att_safetensors *file, int index, att_safetensors_dtype dtype, void *out,
                                int64_t count)
{
    ATT_TRY(check_read(file, index, count));
    const struct tensor *tensor = &file->tensors[index];
    if (tensor->info.dtype != dtype)
        return att_fail(file->context, ATT_ERR_MISMATCH, "%s: tensor %s is %s; expected %s", file->path,
                        tensor->info.name, att_safetensors_dtype_name(tensor->info.dtype),
                        att_safetensors_dtype_name(dtype));
    if (count > 0)
        memcpy(out, file->data + tensor->begin, (size_t)(tensor->end - tensor->begin));
    return ATT_OK;
}
