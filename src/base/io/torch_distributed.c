#include "base/io/torch_distributed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/torch_state.h"

enum { MOST_NAME = 1024, MOST_TENSORS = 1 << 14, LISTED = 8 };

/* A chunk of a tensor. */
typedef struct chunk {
    att_pickle_text tensor, path;
    int64_t row;           /* of the tensor, where the chunk begins */
    int64_t begin, length; /* of the chunk's file in the file `path` */
} chunk;

typedef struct table {
    att_tensors *file;
    const att_pickle *pickle;
    att_pickle_ref sizes; /* a DICT: name, TensorStorageMetadata */
    chunk *chunks;        /* sorted by tensor, then by row */
    int count;
    uint64_t read; /* bytes of tensors that were read into memory */
} table;

static att_status refuse(const table *t, att_status status, att_pickle_text name, const char *what)
{
    char shown[ATT_PICKLE_SHOWN];
    return att_fail(t->file->context, status, "%s: tensor %s %s", t->file->path, att_pickle_show(name, shown), what);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* Sets *members to the DICT of an object of this class. */
static bool members_of(const att_pickle *pickle, att_pickle_ref object, const char *class, att_pickle_ref *members)
{
    const att_pickle_value *value = att_pickle_at(pickle, object);
    if (value->kind != ATT_PICKLE_OPAQUE)
        return false;
    const att_pickle_text name = att_pickle_class_name(pickle, value);
    *members = pickle->cells[value->cells.last].value;
    return name.length == strlen(class) && memcmp(name.bytes, class, name.length) == 0 &&
           att_pickle_at(pickle, *members)->kind == ATT_PICKLE_DICT;
}

static bool find_text(const att_pickle *pickle, att_pickle_ref dict, const char *key, att_pickle_text *text)
{
    att_pickle_ref found;
    if (!att_pickle_find(pickle, dict, key, &found) || att_pickle_at(pickle, found)->kind != ATT_PICKLE_TEXT)
        return false;
    *text = att_pickle_at(pickle, found)->text;
    return text->length > 0 && text->length <= MOST_NAME;
}

static bool find_number(const att_pickle *pickle, att_pickle_ref dict, const char *key, int64_t *number)
{
    att_pickle_ref found;
    if (!att_pickle_find(pickle, dict, key, &found) || att_pickle_at(pickle, found)->kind != ATT_PICKLE_INT)
        return false;
    *number = att_pickle_at(pickle, found)->number;
    return *number >= 0;
}

static bool find_sides(const att_pickle *pickle, att_pickle_ref dict, const char *key, att_shape *sides)
{
    att_pickle_ref found, items[ATT_MAX_RANK];
    if (!att_pickle_find(pickle, dict, key, &found) || att_pickle_at(pickle, found)->kind != ATT_PICKLE_TUPLE)
        return false;
    const uint32_t count = att_pickle_items(pickle, att_pickle_at(pickle, found), items, ATT_MAX_RANK);
    *sides = (att_shape){.rank = (int)count};
    for (uint32_t i = 0; i < count && count <= ATT_MAX_RANK; i++) {
        const att_pickle_value *side = att_pickle_at(pickle, items[i]);
        if (side->kind != ATT_PICKLE_INT || side->number < 0)
            return false;
        sides->dims[i] = side->number;
    }
    return count <= ATT_MAX_RANK;
}

bool att_torch_is_distributed(const att_pickle *pickle, att_pickle_ref root)
{
    att_pickle_ref members, found;
    return members_of(pickle, root, "Metadata", &members) &&
           att_pickle_find(pickle, members, "state_dict_metadata", &found);
}

/* Reads where a chunk is. key: a MetadataIndex; of values that are no tensor, it lacks the offset. */
static att_status add_chunk(table *t, att_pickle_ref key, att_pickle_ref value)
{
    const att_pickle *p = t->pickle;
    att_pickle_ref index, info, found;
    chunk made = {.row = 0};
    att_shape offset;
    if (!members_of(p, key, "MetadataIndex", &index) || !find_text(p, index, "fqn", &made.tensor))
        return att_fail(t->file->context, ATT_ERR_FORMAT, "%s: a damaged table of tensors", t->file->path);
    if (!att_pickle_find(p, index, "offset", &found) || att_pickle_at(p, found)->kind == ATT_PICKLE_NONE)
        return ATT_OK;
    if (!find_sides(p, index, "offset", &offset) || !members_of(p, value, "_StorageInfo", &info) ||
        !find_text(p, info, "relative_path", &made.path) || !find_number(p, info, "offset", &made.begin) ||
        !find_number(p, info, "length", &made.length))
        return refuse(t, ATT_ERR_FORMAT, made.tensor, "is at a place that cannot be read");
    if (att_pickle_find(p, info, "transform_descriptors", &found) && att_pickle_at(p, found)->kind != ATT_PICKLE_NONE)
        return refuse(t, ATT_ERR_UNSUPPORTED, made.tensor, "is compressed");
    made.row = offset.rank > 0 ? offset.dims[0] : 0;
    for (int d = 1; d < offset.rank; d++)
        if (offset.dims[d] > 0)
            return refuse(t, ATT_ERR_UNSUPPORTED, made.tensor, "is split along another dimension than its first");
    t->chunks[t->count++] = made;
    return ATT_OK;
}

static int compare_chunks(const void *a, const void *b)
{
    const chunk *one = a, *other = b;
    const int order = att_pickle_text_compare(one->tensor, other->tensor);
    return order ? order : (one->row > other->row) - (one->row < other->row);
}

static att_status list_chunks(table *t, att_pickle_ref root)
{
    const att_pickle_cell *cells = t->pickle->cells;
    att_pickle_ref members, places;
    if (!members_of(t->pickle, root, "Metadata", &members) ||
        !att_pickle_find(t->pickle, members, "state_dict_metadata", &t->sizes) ||
        !att_pickle_find(t->pickle, members, "storage_data", &places) ||
        att_pickle_at(t->pickle, places)->kind != ATT_PICKLE_DICT)
        return att_fail(t->file->context, ATT_ERR_FORMAT, "%s: a damaged table of tensors", t->file->path);
    const att_pickle_value *all = att_pickle_at(t->pickle, places);
    ATT_TRY(att_new(t->file->context, &t->chunks, all->cells.count / 2 + 1, t->file->path));
    uint32_t cell = all->cells.first;
    for (uint32_t i = 0; i + 1 < all->cells.count; i += 2, cell = cells[cells[cell].next].next)
        ATT_TRY(add_chunk(t, cells[cell].value, cells[cells[cell].next].value));
    qsort(t->chunks, (size_t)t->count, sizeof *t->chunks, compare_chunks);
    return ATT_OK;
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

/* Opens the file of torch.save() that a chunk is, and sets *item to its tensor. */
static att_status read_chunk(table *t, const chunk *c, att_tensors_item *item)
{
    char name[MOST_NAME + 1] = "";
    att_tensors *file = t->file, *shard;
    memcpy(name, c->path.bytes, c->path.length);
    ATT_TRY(att_tensors_shard(file, name, &shard));
    const uint64_t size = att_file_reader_size(shard->reader), begin = (uint64_t)c->begin;
    if (begin > size || (uint64_t)c->length > size - begin)
        return att_fail(file->context, ATT_ERR_FORMAT, "%s: the file is truncated: it lacks chunks that %s lists",
                        shard->path, file->path);
    att_tensors part = {
        .context = file->context, .path = shard->path, .origin = "", .skipped = "", .arena = file->arena};
    part.is_shard = true;
    ATT_TRY(att_file_reader_open_part(shard->reader, begin, (uint64_t)c->length, &part.reader));
    att_status status = att_tensors_read_torch_zip(&part);
    file->arena = part.arena;
    if (status == ATT_OK && part.count != 1)
        status = refuse(t, ATT_ERR_FORMAT, c->tensor, "has a chunk that is no tensor");
    if (status == ATT_OK) {
        *item = part.items[0];
        item->place += begin;
        item->reader = shard->reader;
    }
    att_free(file->context, part.items);
    att_free(file->context, part.metadata);
    att_file_reader_close(&part.reader);
    return status;
}

/* Sets *joined to the rows of all chunks, of which the first is that of *joined, one after the other. */
static att_status join(table *t, const chunk *chunks, int count, att_tensors_item *joined)
{
    att_tensors_item *parts = att_arena_allocate(&t->file->arena, (size_t)count * sizeof *parts);
    att_tensors_info *info = &joined->info;
    if (!parts)
        return att_fail_memory(t->file->context, (size_t)count * sizeof *parts, t->file->path);
    for (int i = 0; i < count; i++) {
        ATT_TRY(read_chunk(t, &chunks[i], &parts[i]));
        att_shape alike = parts[i].info.shape;
        if (i == 0)
            *info = parts[i].info;
        const int64_t rows = alike.dims[0];
        alike.dims[0] = info->shape.dims[0];
        if (alike.rank == 0 || parts[i].info.dtype != info->dtype || !att_shape_equal(alike, info->shape) ||
            chunks[i].row != (i == 0 ? 0 : info->shape.dims[0]) || rows > INT64_MAX - chunks[i].row)
            return refuse(t, ATT_ERR_FORMAT, chunks[i].tensor, "has chunks that do not fit together");
        info->shape.dims[0] = i == 0 ? rows : info->shape.dims[0] + rows;
        info->count = att_shape_count(info->shape);
    }
    joined->parts = parts;
    joined->part_count = count;
    return ATT_OK;
}

/* Reads the last item, which consists of parts, into memory: layouts cut and turn tensors in one piece only. No file
 * holds a byte twice, so the tensors are at most as large as the files. */
static att_status read_parts(table *t, att_pickle_text name)
{
    att_tensors_item *item = &t->file->items[t->file->count - 1];
    const size_t bytes = (size_t)item->info.count * att_safetensors_dtype_size(item->info.dtype);
    uint64_t most = 0;
    for (int i = 0; i < t->file->shard_count; i++)
        most += att_file_reader_size(t->file->shards[i]->reader);
    if (item->info.count < 0 || bytes > most - t->read)
        return refuse(t, ATT_ERR_FORMAT, name, "is larger than the files that hold it");
    t->read += bytes;
    void *data = att_arena_allocate(&t->file->arena, bytes ? bytes : 1);
    if (!data)
        return att_fail_memory(t->file->context, bytes, t->file->path);
    ATT_TRY(att_tensors_read(t->file, t->file->count - 1, item->info.dtype, data, item->info.count));
    *item = (att_tensors_item){.info = item->info, .data = data};
    return ATT_OK;
}

/* Fails unless the chunks are all of the tensor. */
static att_status check_size(const table *t, att_pickle_text name, att_shape shape)
{
    char key[MOST_NAME + 1] = "";
    att_pickle_ref found, members;
    att_shape whole;
    memcpy(key, name.bytes, name.length);
    if (att_pickle_find(t->pickle, t->sizes, key, &found) &&
        members_of(t->pickle, found, "TensorStorageMetadata", &members) &&
        find_sides(t->pickle, members, "size", &whole) && att_shape_equal(whole, shape))
        return ATT_OK;
    return refuse(t, ATT_ERR_FORMAT, name, "has another size than its chunks");
}

/* Adds a tensor without the first `skipped` bytes of its name. */
static att_status add_tensor(table *t, const chunk *chunks, int count, size_t skipped)
{
    att_tensors *file = t->file;
    const att_pickle_text name = chunks[0].tensor;
    att_tensors_item item = {.part_count = 0};
    ATT_TRY(count > 1 ? join(t, chunks, count, &item) : read_chunk(t, chunks, &item));
    ATT_TRY(check_size(t, name, item.info.shape));
    char *own = att_arena_allocate(&file->arena, name.length + 1);
    if (!own)
        return att_fail_memory(file->context, name.length + 1, file->path);
    memcpy(own, name.bytes + skipped, name.length - skipped);
    if (strlen(own) != name.length - skipped || !att_utf8_valid(own))
        return refuse(t, ATT_ERR_FORMAT, name, "has a name that is not valid UTF-8");
    item.info.name = own;
    file->items[file->count++] = item;
    return count > 1 ? read_parts(t, name) : ATT_OK;
}

/* --- the network -------------------------------------------------------------------------------------------------- */

static bool begins(att_pickle_text name, const char *prefix)
{
    const size_t length = strlen(prefix);
    return name.length > length && memcmp(name.bytes, prefix, length) == 0;
}

static bool any_begins(const table *t, const char *prefix)
{
    bool any = false;
    for (int i = 0; i < t->count && !any; i++)
        any = begins(t->chunks[i].tensor, prefix);
    return any;
}

/* Writes the first part of all names, with its dot, to `prefix`; "" if they do not share one. */
static void share_prefix(const table *t, char prefix[MOST_NAME + 2])
{
    const att_pickle_text first = t->chunks[0].tensor;
    const char *dot = memchr(first.bytes, '.', first.length);
    snprintf(prefix, MOST_NAME + 2, "%.*s", dot ? (int)(dot - first.bytes) + 1 : 0, first.bytes);
    for (int i = 0; i < t->count; i++)
        if (!begins(t->chunks[i].tensor, prefix))
            *prefix = '\0';
}

/* Writes the prefix of the network's tensors; "": they are all tensors. */
static void choose(const table *t, char prefix[MOST_NAME + 64])
{
    char shared[MOST_NAME + 2];
    const char *key;
    share_prefix(t, shared);
    for (int level = 0; level < 2; level++)
        for (int i = 0; (key = att_torch_weight_key(i)); i++) {
            snprintf(prefix, MOST_NAME + 64, "%s%s.", level ? shared : "", key);
            if (any_begins(t, prefix))
                return;
        }
    *prefix = '\0';
}

/* Appends the tensors that are left out: "optim (300 tensors)". */
static void append_others(const table *t, const char *prefix, att_text *text)
{
    const size_t shared = strcspn(prefix, ".") + 1 < strlen(prefix) ? strcspn(prefix, ".") + 1 : 0;
    int listed = 0;
    for (int i = 0, end; i < t->count; i = end) {
        const att_pickle_text name = t->chunks[i].tensor;
        size_t length = shared < name.length ? shared : 0;
        while (length < name.length && name.bytes[length] != '.')
            length++;
        char shown[ATT_PICKLE_SHOWN];
        int tensors = 0;
        for (end = i; end < t->count; end++) {
            const att_pickle_text other = t->chunks[end].tensor;
            if (other.length < length || memcmp(other.bytes, name.bytes, length) != 0 ||
                (other.length > length && other.bytes[length] != '.'))
                break;
            tensors += end == i || att_pickle_text_compare(other, t->chunks[end - 1].tensor) != 0;
        }
        if (begins(name, prefix) || listed++ >= LISTED)
            continue;
        att_text_append(text, "%s%s (%d tensor%s)", listed > 1 ? ", " : "; left out: ",
                        att_pickle_show((att_pickle_text){name.bytes, length}, shown), tensors, tensors > 1 ? "s" : "");
    }
}

static att_status collect(table *t, att_text *origin)
{
    att_tensors *file = t->file;
    char prefix[MOST_NAME + 64] = "";
    if (t->count == 0 || file->is_shard)
        return att_fail(file->context, ATT_ERR_FORMAT, "%s: a table of torch.distributed.checkpoint %s", file->path,
                        file->is_shard ? "in place of tensors" : "without tensors");
    if (!file->part)
        choose(t, prefix);
    ATT_TRY(att_new(file->context, &file->items, (size_t)t->count, file->path));
    for (int i = 0, end; i < t->count; i = end) {
        for (end = i + 1; end < t->count; end++)
            if (att_pickle_text_compare(t->chunks[end].tensor, t->chunks[i].tensor) != 0)
                break;
        if (!begins(t->chunks[i].tensor, prefix))
            continue;
        if (file->count == MOST_TENSORS)
            return att_fail(file->context, ATT_ERR_FORMAT, "%s: more than %d tensors", file->path, MOST_TENSORS);
        ATT_TRY(add_tensor(t, t->chunks + i, end - i, strlen(prefix)));
    }
    const char *named = file->part ? file->part : prefix;
    att_text_append(origin, "torch.distributed.checkpoint's %.*s", *named ? (int)strlen(named) - !file->part : 7,
                    *named ? named : "tensors");
    ATT_TRY(att_tensors_normalize_names(file, 0, origin));
    if (!file->part)
        append_others(t, prefix, origin);
    const char *copy = origin->failed ? NULL : att_arena_string(&file->arena, origin->data);
    if (!copy)
        return att_fail_memory(file->context, MOST_NAME, file->path);
    file->origin = copy;
    return ATT_OK;
}

att_status att_torch_distributed_collect(att_tensors *file, const att_pickle *pickle, att_pickle_ref root)
{
    table t = {.file = file, .pickle = pickle};
    att_text origin = {.context = file->context};
    att_status status = list_chunks(&t, root);
    if (status == ATT_OK)
        status = collect(&t, &origin);
    att_free(file->context, t.chunks);
    att_text_free(&origin);
    return status;
}
