#include "base/io/tensors.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/other_file.h"
#include "base/io/safetensors.h"

struct att_tensors_name {
    const char *name;
    int index;
};

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* The first bytes of a file, from which its kind is detected. */
typedef struct beginning {
    uint8_t bytes[ATT_OTHER_FILE_BYTES];
    size_t size;
} beginning;

static att_status read_beginning(const att_tensors *file, beginning *first)
{
    uint64_t size = att_file_reader_size(file->reader);
    first->size = size < sizeof first->bytes ? (size_t)size : sizeof first->bytes;
    return att_file_reader_read(file->reader, 0, first->bytes, first->size);
}

/* Returns whether the file is safetensors: '{' follows the header's length. A zip or a pickle of torch.save() never has
 * '{' at this offset. */
static bool begins_header(const beginning *first)
{
    return first->size > ATT_SAFETENSORS_LENGTH_BYTES && first->bytes[ATT_SAFETENSORS_LENGTH_BYTES] == '{';
}

static bool is_zip(const beginning *first)
{
    static const uint8_t local_file[] = {'P', 'K', 3, 4}, end[] = {'P', 'K', 5, 6}; /* end: without files */
    return first->size >= sizeof local_file && !begins_header(first) &&
           (memcmp(first->bytes, local_file, sizeof local_file) == 0 || memcmp(first->bytes, end, sizeof end) == 0);
}

/* A pickle begins with opcode PROTO and the protocol's version. */
static bool is_pickle(const beginning *first)
{
    return first->size >= 2 && first->bytes[0] == 0x80 && first->bytes[1] >= 2 && first->bytes[1] <= 5 &&
           !begins_header(first);
}

/* Returns whether the file is an index of several files, which is JSON. As a safetensors header's length its first
 * eight bytes would be too large, because the last of them is not 0. */
static bool is_index(const beginning *first)
{
    return first->size >= ATT_SAFETENSORS_LENGTH_BYTES && first->bytes[0] == '{' &&
           first->bytes[ATT_SAFETENSORS_LENGTH_BYTES - 1] != 0;
}

/* Returns whether the file has an extension that is usual for PyTorch checkpoints. */
static bool is_named_torch(const char *path)
{
    static const char *const endings[] = {".pth", ".pt", ".th", ".bin", ".ckpt", ".tar", ".pkl"};
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct att_tensors_name *)a)->name, ((const struct att_tensors_name *)b)->name);
}

/* Allocates names, which att_tensors_close() frees. */
static att_status allocate_names(const att_tensors *file, int count, struct att_tensors_name **names)
{
    if (count == 0)
        return ATT_OK;
    *names = att_allocate_array(file->context, (size_t)count, sizeof **names);
    return *names ? ATT_OK : att_fail_memory(file->context, (size_t)count * sizeof **names, file->path);
}

/* Returns a name that occurs twice; NULL if there is none. */
static const char *sort(struct att_tensors_name *names, int count)
{
    if (count > 0)
        qsort(names, (size_t)count, sizeof *names, compare_names);
    for (int i = 1; i < count; i++)
        if (strcmp(names[i - 1].name, names[i].name) == 0)
            return names[i].name;
    return NULL;
}

/* Returns the index of a name among sorted ones; -1 if there is none. */
static int find(const struct att_tensors_name *names, int count, const char *name)
{
    const struct att_tensors_name key = {.name = name};
    const struct att_tensors_name *found =
        count > 0 ? bsearch(&key, names, (size_t)count, sizeof *names, compare_names) : NULL;
    return found ? found->index : -1;
}

static att_status sort_names(att_tensors *file)
{
    ATT_TRY(allocate_names(file, file->count, &file->names));
    for (int i = 0; i < file->count; i++)
        file->names[i] = (struct att_tensors_name){file->items[i].info.name, i};
    const char *twice = sort(file->names, file->count);
    return twice ? att_fail(file->context, ATT_ERR_FORMAT, "%s: two tensors are called %.200s", file->path, twice)
                 : ATT_OK;
}

static att_status sort_keys(att_tensors *file)
{
    ATT_TRY(allocate_names(file, file->metadata_count, &file->keys));
    for (int i = 0; i < file->metadata_count; i++)
        file->keys[i] = (struct att_tensors_name){file->metadata[i].key, i};
    const char *twice = sort(file->keys, file->metadata_count);
    return twice
               ? att_fail(file->context, ATT_ERR_FORMAT, "%s: __metadata__ has the key %.200s twice", file->path, twice)
               : ATT_OK;
}

static att_status normalize_names(att_tensors *file)
{
    att_text changes = {.context = file->context};
    att_status status = att_tensors_normalize_names(file, 0, &changes);
    if (changes.length > 0)
        file->origin = att_arena_string(&file->arena, changes.data + 1);
    bool failed = changes.failed || !file->origin;
    att_text_free(&changes);
    return status == ATT_OK && failed ? att_fail_memory(file->context, 256, file->path) : status;
}

att_status att_tensors_refuse_other(const att_tensors *file, const char *is)
{
    return att_fail(file->context, ATT_ERR_FORMAT,
                    "%s: expected a safetensors file or a PyTorch checkpoint, but it seems to be %s", file->path, is);
}

static att_status refuse_torch(const att_tensors *file, const beginning *first)
{
    char is[ATT_OTHER_FILE_TEXT];
    if (att_other_file(file->path, first->bytes, first->size, is))
        return att_tensors_refuse_other(file, is);
    return att_fail(file->context, ATT_ERR_FORMAT,
                    "%s: not a PyTorch checkpoint: expected a zip archive or a pickle, as torch.save() writes them",
                    file->path);
}

/* Readers of PyTorch's files normalize names themselves, because averaged weights have a prefix of their own. */
static att_status read_file(att_tensors *file, const beginning *first)
{
    if (first->size == 0)
        return att_fail(file->context, ATT_ERR_FORMAT,
                        "%s: an empty file; expected weights, as safetensors or as torch.save() writes them",
                        file->path);
    if (is_zip(first))
        return att_tensors_read_torch_zip(file);
    if (is_pickle(first))
        return att_tensors_read_torch_pickles(file);
    if (is_named_torch(file->path) && !begins_header(first))
        return refuse_torch(file, first);
    ATT_TRY(att_tensors_read_safetensors(file));
    return file->is_shard ? ATT_OK : normalize_names(file);
}

att_status att_tensors_read_shard(att_tensors *shard)
{
    beginning first;
    ATT_TRY(read_beginning(shard, &first));
    return read_file(shard, &first);
}

static att_status read_index(att_tensors *file)
{
    ATT_TRY(att_tensors_read_index(file));
    return normalize_names(file);
}

size_t att_tensors_path_length(const char *path)
{
    const char *mark = strrchr(path, '#');
    return mark && !strchr(mark, '/') && !att_file_exists(path) ? (size_t)(mark - path) : strlen(path);
}

bool att_tensors_exist(const char *path)
{
    char file[PATH_MAX];
    const size_t length = att_tensors_path_length(path);
    if (length >= sizeof file)
        return false;
    memcpy(file, path, length);
    file[length] = '\0';
    return att_file_exists(file);
}

/* Sets the file's path and part. */
static att_status split_path(att_tensors *file, const char *path)
{
    const size_t length = att_tensors_path_length(path);
    file->path = att_arena_string(&file->arena, path);
    if (!file->path)
        return att_fail_memory(file->context, strlen(path) + 1, path);
    if (path[length]) {
        file->path[length] = '\0';
        file->part = file->path + length + 1;
    }
    return ATT_OK;
}

static att_status open_file(att_tensors *file, const char *path)
{
    ATT_TRY(split_path(file, path));
    ATT_TRY(att_file_reader_open(file->context, file->path, &file->reader));
    beginning first;
    ATT_TRY(read_beginning(file, &first));
    ATT_TRY(is_index(&first) ? read_index(file) : read_file(file, &first));
    ATT_TRY(sort_keys(file));
    return sort_names(file);
}

static att_status open_part(att_tensors *file, const char *part, const char *path)
{
    file->path = att_arena_string(&file->arena, path);
    if (!file->path)
        return att_fail_memory(file->context, strlen(path) + 1, path);
    ATT_TRY(att_file_reader_open(file->context, part, &file->reader));
    ATT_TRY(att_tensors_read_safetensors(file));
    ATT_TRY(normalize_names(file));
    ATT_TRY(sort_keys(file));
    return sort_names(file);
}

static att_status create(att_context *context, const char *path, att_tensors **file)
{
    att_tensors *created;
    ATT_TRY(att_new(context, &created, 1, path));
    created->context = created->arena.context = context;
    created->origin = created->skipped = "";
    *file = created;
    return ATT_OK;
}

/* Returns `status`, and gives the file to the caller or frees it. */
static att_status finish(att_tensors *opened, att_status status, att_tensors **file)
{
    if (status != ATT_OK)
        att_tensors_close(&opened);
    else
        *file = opened;
    return status;
}

att_status att_tensors_open(att_context *context, const char *path, att_tensors **file)
{
    att_tensors *opened = NULL;
    ATT_TRY(create(context, path, &opened));
    return finish(opened, open_file(opened, path), file);
}

att_status att_tensors_open_part(att_context *context, const char *part, const char *path, uint64_t size,
                                 att_tensors **file)
{
    att_tensors *opened = NULL;
    ATT_TRY(create(context, path, &opened));
    opened->whole = size;
    return finish(opened, open_part(opened, part, path), file);
}

void att_tensors_close(att_tensors **file)
{
    if (!file || !*file)
        return;
    att_tensors *done = *file;
    for (int i = 0; i < done->shard_count; i++)
        att_tensors_close(&done->shards[i]);
    att_free(done->context, done->shards);
    att_file_reader_close(&done->reader);
    att_arena_free(&done->arena);
    att_free(done->context, done->items);
    att_free(done->context, done->names);
    att_free(done->context, done->metadata);
    att_free(done->context, done->keys);
    att_free(done->context, done->header);
    att_free(done->context, done);
    *file = NULL;
}

/* --- tensors in memory -------------------------------------------------------------------------------------------- */

static att_status borrow_tensor(att_tensors *file, int index, const att_safetensors_tensor *tensor)
{
    att_tensors_item *item = &file->items[index];
    char shape[96];
    if (!tensor->name || !*tensor->name)
        return att_fail(file->context, ATT_ERR_ARGUMENT, ATT_TENSORS_HERE ": tensor number %d has no name", index);
    const int64_t count = att_shape_count(tensor->shape);
    if (tensor->shape.rank < 0 || count < 0)
        return att_fail(file->context, ATT_ERR_ARGUMENT,
                        ATT_TENSORS_HERE
                        ": the shape of %.200s is %s, which no "
                        "tensor can have",
                        tensor->name, att_shape_format(tensor->shape, shape, sizeof shape));
    if (att_safetensors_dtype_size(tensor->dtype) == 0)
        return att_fail(file->context, ATT_ERR_ARGUMENT, ATT_TENSORS_HERE ": %.200s has the unknown type %d",
                        tensor->name, (int)tensor->dtype);
    if (!tensor->data && count > 0)
        return att_fail(file->context, ATT_ERR_ARGUMENT, ATT_TENSORS_HERE ": %.200s has no data", tensor->name);
    const char *name = att_arena_string(&file->arena, tensor->name);
    *item = (att_tensors_item){.info = {name, tensor->dtype, tensor->shape, count},
                               .data = tensor->data ? tensor->data : ""};
    return name ? ATT_OK : att_fail_memory(file->context, strlen(tensor->name), "the name of a tensor");
}

static att_status borrow(att_tensors *file, const att_safetensors_tensor *tensors, int count)
{
    file->path = att_arena_string(&file->arena, ATT_TENSORS_HERE);
    file->items = att_allocate_array(file->context, (size_t)count, sizeof *file->items);
    if (!file->path || !file->items)
        return att_fail_memory(file->context, (size_t)count * sizeof *file->items, ATT_TENSORS_HERE);
    for (int i = 0; i < count; i++)
        ATT_TRY(borrow_tensor(file, i, &tensors[i]));
    file->count = count;
    ATT_TRY(normalize_names(file));
    return sort_names(file);
}

att_status att_tensors_borrow(att_context *context, const att_safetensors_tensor *tensors, int count,
                              att_tensors **file)
{
    att_tensors *made = NULL;
    ATT_TRY(create(context, ATT_TENSORS_HERE, &made));
    return finish(made, borrow(made, tensors, count), file);
}

void att_tensors_forget(att_tensors *file)
{
    for (int i = 0; i < file->count; i++)
        file->items[i].data = NULL;
}

bool att_tensors_are_borrowed(const att_tensors *file)
{
    return !file->reader;
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

att_status att_tensors_replace(att_tensors *file, att_tensors_item *items, int count)
{
    att_free(file->context, file->items);
    att_free(file->context, file->names);
    file->items = items;
    file->count = count;
    file->names = NULL;
    return sort_names(file);
}

att_status att_tensors_add_metadata(att_tensors *file, const char *key, const char *value)
{
    const size_t count = (size_t)file->metadata_count + 1;
    att_safetensors_pair *metadata = att_reallocate(file->context, file->metadata, count * sizeof *metadata);
    const char *own_key = att_arena_string(&file->arena, key), *own_value = att_arena_string(&file->arena, value);
    if (metadata)
        file->metadata = metadata;
    if (!metadata || !own_key || !own_value)
        return att_fail_memory(file->context, count * sizeof *metadata, "the metadata of a file");
    metadata[file->metadata_count++] = (att_safetensors_pair){own_key, own_value};
    att_free(file->context, file->keys);
    file->keys = NULL;
    return sort_keys(file);
}

void att_tensors_clear_metadata(att_tensors *file)
{
    file->metadata_count = 0;
}

/* --- names and metadata ------------------------------------------------------------------------------------------- */

const char *att_tensors_path(const att_tensors *file)
{
    return file->path;
}

const char *att_tensors_origin(const att_tensors *file)
{
    return file->origin;
}

const char *att_tensors_skipped(const att_tensors *file)
{
    return file->skipped;
}

bool att_tensors_has_average(const att_tensors *file)
{
    return file->has_average;
}

int att_tensors_count(const att_tensors *file)
{
    return file->count;
}

att_tensors_info att_tensors_at(const att_tensors *file, int index)
{
    return file->items[index].info;
}

int att_tensors_find(const att_tensors *file, const char *name)
{
    return find(file->names, file->count, name);
}

const char *att_tensors_metadata(const att_tensors *file, const char *key)
{
    int index = find(file->keys, file->metadata_count, key);
    return index < 0 ? NULL : file->metadata[index].value;
}

int att_tensors_metadata_count(const att_tensors *file)
{
    return file->metadata_count;
}

const char *att_tensors_metadata_key(const att_tensors *file, int index)
{
    return file->metadata[index].key;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static att_status check_read(const att_tensors *file, int index, int64_t count)
{
    if (index < 0 || index >= file->count)
        return att_fail(file->context, ATT_ERR_ARGUMENT, "%s has %d tensors; tensor number %d was requested",
                        file->path, file->count, index);
    const att_tensors_info *info = &file->items[index].info;
    if (info->count != count)
        return att_fail(file->context, ATT_ERR_ARGUMENT,
                        "%s: tensor %s has %" PRId64 " elements; %" PRId64 " requested", file->path, info->name,
                        info->count, count);
    if (!file->reader && !file->items[index].data)
        return att_fail(file->context, ATT_ERR_ARGUMENT,
                        "the contents of tensor %s were in memory that is no longer borrowed", info->name);
    return ATT_OK;
}

enum { CHUNK_BYTES = 1 << 14, DENSE_SPAN = 1 << 26, DENSE_RATIO = 8, SPARSE_BYTES = 1 << 12 };

/* Reads a tensor's elements in row-major order. */
typedef struct walker {
    const att_tensors_item *item;
    size_t size;                 /* size of an element in bytes */
    att_file_window window;      /* used if the tensor has strides */
    size_t read_ahead;           /* bytes of the first read, which sets the size of the window */
    int64_t index[ATT_MAX_RANK]; /* index of the next element */
    int64_t place;               /* its offset from the tensor's first element, in elements */
} walker;

/* Returns how many bytes the window reads at a time. A tensor that spans few bytes of the file, or whose elements are
 * dense there, is read at once; another tensor, SPARSE_BYTES at a time. */
static size_t read_ahead_of(const att_tensors_item *item, size_t size)
{
    int64_t last = 0;
    for (int d = 0; d < item->info.shape.rank; d++)
        last += (item->info.shape.dims[d] - 1) * item->strides[d];
    size_t span = ((size_t)last + 1) * size;
    return span <= DENSE_SPAN || span / DENSE_RATIO <= (size_t)item->info.count * size ? span : SPARSE_BYTES;
}

/* Weights may be read a second time long after the file was opened: they must be the same. */
static att_status walk(const att_tensors *file, const att_tensors_item *item, walker *w)
{
    *w = (walker){.item = item,
                  .size = att_safetensors_dtype_size(item->info.dtype),
                  .window.reader = item->reader ? item->reader : file->reader};
    w->read_ahead = item->strides && item->info.count > 0 ? read_ahead_of(item, w->size) : 0;
    return item->data ? ATT_OK : att_file_reader_check(w->window.reader);
}

static void step(walker *w)
{
    const att_shape *shape = &w->item->info.shape;
    for (int d = shape->rank; d-- > 0;) {
        w->place += w->item->strides[d];
        if (++w->index[d] < shape->dims[d])
            return;
        w->place -= w->index[d] * w->item->strides[d];
        w->index[d] = 0;
    }
}

/* Copies the next `count` elements to `out`, contiguously. */
static att_status take(walker *w, void *out, int64_t count)
{
    uint64_t place = w->item->place;
    if (w->item->data && !w->item->strides) {
        memcpy(out, (const uint8_t *)w->item->data + (size_t)w->place * w->size, (size_t)count * w->size);
        w->place += count;
        return ATT_OK;
    }
    for (int64_t i = 0; w->item->data && i < count; i++, step(w))
        memcpy((uint8_t *)out + (size_t)i * w->size, (const uint8_t *)w->item->data + (size_t)w->place * w->size,
               w->size);
    if (w->item->data)
        return ATT_OK;
    if (!w->item->strides) {
        place += (uint64_t)w->place * w->size;
        w->place += count;
        return att_file_reader_read(w->window.reader, place, out, (size_t)count * w->size);
    }
    for (int64_t i = 0; i < count; i++, step(w)) {
        const uint8_t *element;
        size_t shown;
        ATT_TRY(att_file_window_peek(&w->window, place + (uint64_t)w->place * w->size,
                                     w->window.block ? w->size : w->read_ahead, &element, &shown));
        memcpy((uint8_t *)out + (size_t)i * w->size, element, w->size);
    }
    return ATT_OK;
}

static att_status convert(walker *w, float *out, int64_t count)
{
    uint8_t chunk[CHUNK_BYTES];
    int64_t most = (int64_t)(sizeof chunk / w->size);
    for (int64_t done = 0; done < count; done += most) {
        int64_t some = count - done < most ? count - done : most;
        ATT_TRY(take(w, chunk, some));
        att_safetensors_to_f32(w->item->info.dtype, chunk, out + done, some);
    }
    return ATT_OK;
}

static att_status read_f32(const att_tensors *file, const att_tensors_item *item, float *out)
{
    walker w;
    ATT_TRY(walk(file, item, &w));
    att_status status =
        item->info.dtype == ATT_SAFETENSORS_F32 ? take(&w, out, item->info.count) : convert(&w, out, item->info.count);
    att_file_window_free(&w.window);
    return status;
}

att_status att_tensors_read_item_f32(const att_tensors *file, const att_tensors_item *item, float *out)
{
    if (!att_safetensors_to_f32(item->info.dtype, NULL, out, 0))
        return att_fail(file->context, ATT_ERR_UNSUPPORTED,
                        "%s: tensor %s is %s; only F32, F16, BF16 and F64 can be read as f32", file->path,
                        item->info.name, att_safetensors_dtype_name(item->info.dtype));
    if (!item->parts)
        return read_f32(file, item, out);
    for (int i = 0; i < item->part_count; out += item->parts[i++].info.count)
        ATT_TRY(read_f32(file, &item->parts[i], out));
    return ATT_OK;
}

att_status att_tensors_read_f32(const att_tensors *file, int index, float *out, int64_t count)
{
    ATT_TRY(check_read(file, index, count));
    return att_tensors_read_item_f32(file, &file->items[index], out);
}

static att_status read_as_stored(const att_tensors *file, const att_tensors_item *item, void *out)
{
    walker w;
    ATT_TRY(walk(file, item, &w));
    att_status status = take(&w, out, item->info.count);
    att_file_window_free(&w.window);
    return status;
}

att_status att_tensors_read(const att_tensors *file, int index, att_safetensors_dtype dtype, void *out, int64_t count)
{
    ATT_TRY(check_read(file, index, count));
    const att_tensors_item *item = &file->items[index];
    if (item->info.dtype != dtype)
        return att_fail(file->context, ATT_ERR_MISMATCH, "%s: tensor %s is %s; expected %s", file->path,
                        item->info.name, att_safetensors_dtype_name(item->info.dtype),
                        att_safetensors_dtype_name(dtype));
    if (!item->parts)
        return read_as_stored(file, item, out);
    uint8_t *at = out;
    for (int i = 0; i < item->part_count; i++) {
        ATT_TRY(read_as_stored(file, &item->parts[i], at));
        at += (size_t)item->parts[i].info.count * att_safetensors_dtype_size(dtype);
    }
    return ATT_OK;
}
