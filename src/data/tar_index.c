#include "data/tar_index.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "data/shards.h"

static const char magic[] = "attscope tars 3\n";
enum { MAGIC = sizeof magic - 1, HEAD = MAGIC + 8 };
static const int64_t max_entries = (int64_t)1 << 26;

static uint64_t hash_bytes(const uint8_t *bytes, size_t size)
{
    return att_random_hash_more(att_random_hash(""), bytes, size);
}

/* --- in memory --------------------------------------------------------------------------------------------------- */

static att_status reserve(att_tar_index *index, int64_t capacity)
{
    size_t bytes = (size_t)capacity * sizeof *index->entries;
    att_tar_entry *entries = att_reallocate(index->arena.context, index->entries, bytes);
    if (!entries)
        return att_fail_memory(index->arena.context, bytes, "the list of images");
    index->entries = entries;
    index->capacity = capacity;
    return ATT_OK;
}

att_status att_tar_index_add(att_tar_index *index, const att_tar_entry *entry)
{
    att_context *context = index->arena.context;
    if (index->count >= max_entries)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "more than %lld files", (long long)max_entries);
    if (index->count == index->capacity)
        ATT_TRY(reserve(index, index->capacity ? 2 * index->capacity : 256));
    att_tar_entry kept = *entry;
    const char *name = index->count > 0 ? index->entries[index->count - 1].class_name : "";
    bool same_name = strcmp(name, entry->class_name) == 0;
    kept.path = att_arena_string(&index->arena, entry->path);
    kept.class_name = same_name ? name : att_arena_string(&index->arena, entry->class_name);
    if (!kept.path || !kept.class_name)
        return att_fail_memory(context, strlen(entry->path) + strlen(entry->class_name) + 2, "the list of images");
    index->entries[index->count++] = kept;
    return ATT_OK;
}

att_status att_tar_index_count(att_tar_index *index, att_tar_unused *unused, int64_t count, const char *path)
{
    if (unused->count == 0 && count > 0)
        unused->first = att_arena_string(&index->arena, path);
    if (count > 0 && !unused->first)
        return att_fail_memory(index->arena.context, strlen(path) + 1, "the list of images");
    unused->count += count;
    return ATT_OK;
}

static void drop_entries(att_tar_index *index)
{
    att_free(index->arena.context, index->entries);
    index->entries = NULL;
    index->count = index->capacity = index->skipped = 0;
    index->imageless = index->further = (att_tar_unused){.first = ""};
    index->shards = false;
}

void att_tar_index_free(att_tar_index *index)
{
    if (!index->arena.context)
        return;
    drop_entries(index);
    att_free(index->arena.context, index->tars);
    att_arena_free(&index->arena);
    *index = (att_tar_index){.entries = NULL};
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

static void put_number(att_text *text, uint64_t number)
{
    uint8_t bytes[10];
    size_t size = 0;
    for (; number >= 0x80; number >>= 7)
        bytes[size++] = (uint8_t)(number | 0x80);
    bytes[size++] = (uint8_t)number;
    att_text_append_bytes(text, bytes, size);
}

static void put_text(att_text *text, const char *from)
{
    put_number(text, strlen(from));
    att_text_append_bytes(text, from, strlen(from));
}

static size_t shared_bytes(const char *a, const char *b)
{
    size_t shared = 0;
    while (a[shared] && a[shared] == b[shared])
        shared++;
    return shared;
}

static void put_tars(att_text *text, const att_tar_index *index)
{
    put_number(text, (uint64_t)index->tar_count);
    for (int i = 0; i < index->tar_count; i++) {
        const att_tar_file *tar = &index->tars[i];
        put_text(text, tar->name);
        put_number(text, tar->size);
        put_number(text, (uint64_t)tar->seconds);
        put_number(text, (uint64_t)tar->nanoseconds);
    }
}

static void put_unused(att_text *text, const att_tar_unused *unused)
{
    put_number(text, (uint64_t)unused->count);
    put_text(text, unused->count > 0 ? unused->first : "");
}

static void put_entries(att_text *text, const att_tar_index *index)
{
    put_number(text, index->shards);
    put_number(text, (uint64_t)index->skipped);
    put_unused(text, &index->imageless);
    put_unused(text, &index->further);
    put_number(text, (uint64_t)index->count);
    const char *before = "";
    for (int64_t i = 0; i < index->count; i++) {
        const att_tar_entry *entry = &index->entries[i];
        size_t shared = shared_bytes(entry->path, before);
        put_number(text, (uint64_t)entry->tar);
        put_number(text, entry->offset);
        put_number(text, entry->size);
        put_number(text, (uint64_t)entry->state);
        put_number(text, (uint64_t)(entry->label + 1));
        put_text(text, entry->class_name);
        put_number(text, shared);
        put_text(text, entry->path + shared);
        before = entry->path;
    }
}

att_status att_tar_index_write(const att_tar_index *index, const char *path)
{
    att_text text = {.context = index->arena.context};
    uint8_t head[HEAD] = {0};
    att_text_append_bytes(&text, head, HEAD);
    put_tars(&text, index);
    put_entries(&text, index);
    att_status status = ATT_ERR_MEMORY;
    if (text.failed) {
        att_fail_memory(index->arena.context, text.length, path);
    } else {
        uint64_t hash = hash_bytes((const uint8_t *)text.data + HEAD, text.length - HEAD);
        memcpy(text.data, magic, MAGIC);
        for (int i = 0; i < 8; i++)
            text.data[MAGIC + i] = (char)(uint8_t)(hash >> 8 * i);
        status = att_file_replace(index->arena.context, path, text.data, text.length);
    }
    att_text_free(&text);
    return status;
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* Bytes that are still to be read. After a failure nothing is left and `failed` is set. */
typedef struct cursor {
    const uint8_t *at;
    size_t left;
    bool failed;
} cursor;

static void fail_cursor(cursor *from)
{
    from->left = 0;
    from->failed = true;
}

/* Returns the next number; 0 and a failure if it is larger than `most`. */
static uint64_t take_number(cursor *from, uint64_t most)
{
    uint64_t number = 0;
    for (int shift = 0; shift < 64 && from->left > 0; shift += 7) {
        uint8_t byte = *from->at++;
        from->left--;
        uint64_t bits = byte & 0x7f;
        if (bits << shift >> shift != bits)
            break;
        number |= bits << shift;
        if (byte >= 0x80)
            continue;
        if (number <= most)
            return number;
        break;
    }
    fail_cursor(from);
    return 0;
}

/* Copies a text of at most `most` bytes, and a NUL, to `to`. */
static void take_text(cursor *from, char *to, size_t most)
{
    size_t size = (size_t)take_number(from, most);
    if (size > from->left || memchr(from->at, '\0', size))
        fail_cursor(from);
    else
        memcpy(to, from->at, size);
    size = from->failed ? 0 : size;
    to[size] = '\0';
    from->at += size;
    from->left -= size;
}

/* Whether the label of an entry can be one that a sample has. */
static bool is_label(const att_tar_index *index, const att_tar_entry *entry)
{
    if (entry->state != ATT_LABEL_READ || (!*entry->class_name && (entry->label >= 0 || !index->shards)))
        return true;
    return att_shard_is_class_name(entry->class_name);
}

/* Whether the next bytes describe this tar. */
static bool take_tar(cursor *from, const att_tar_file *tar)
{
    char name[ATT_TAR_MOST_PATH + 1];
    take_text(from, name, ATT_TAR_MOST_PATH);
    bool same = strcmp(name, tar->name) == 0;
    same &= take_number(from, INT64_MAX) == tar->size;
    same &= take_number(from, INT64_MAX) == (uint64_t)tar->seconds;
    return take_number(from, INT64_MAX) == (uint64_t)tar->nanoseconds && same;
}

static bool take_tars(cursor *from, const att_tar_index *index)
{
    if (take_number(from, ATT_TAR_MOST) != (uint64_t)index->tar_count)
        return false;
    for (int i = 0; i < index->tar_count; i++)
        if (!take_tar(from, &index->tars[i]))
            return false;
    return true;
}

/* path: that of the entry before, and then that of this one. */
static att_status take_entry(cursor *from, att_tar_index *index, char path[ATT_TAR_MOST_PATH + 1])
{
    char class_name[ATT_SHARD_MOST_NAME + 1];
    att_tar_entry entry = {.path = path, .class_name = class_name};
    entry.tar = (int32_t)take_number(from, (uint64_t)index->tar_count - 1);
    uint64_t size = index->tars[entry.tar].size;
    entry.offset = take_number(from, size);
    entry.size = take_number(from, size - entry.offset);
    entry.state = (att_label_state)take_number(from, ATT_LABEL_STATES - 1);
    entry.label = (int32_t)take_number(from, ATT_TAR_MOST_LABEL + 1) - 1;
    take_text(from, class_name, ATT_SHARD_MOST_NAME);
    size_t shared = (size_t)take_number(from, strlen(path));
    take_text(from, path + shared, ATT_TAR_MOST_PATH - shared);
    if (!*path || !is_label(index, &entry))
        fail_cursor(from);
    return from->failed ? ATT_OK : att_tar_index_add(index, &entry);
}

static att_status take_unused(cursor *from, att_tar_index *index, att_tar_unused *unused)
{
    char path[ATT_TAR_MOST_PATH + 1];
    int64_t count = (int64_t)take_number(from, (uint64_t)max_entries);
    take_text(from, path, ATT_TAR_MOST_PATH);
    return att_tar_index_count(index, unused, count, path);
}

static att_status take_entries(cursor *from, att_tar_index *index)
{
    enum { LEAST = 8 }; /* bytes of an entry */
    char path[ATT_TAR_MOST_PATH + 1] = "";
    index->shards = take_number(from, 1);
    index->skipped = (int64_t)take_number(from, INT64_MAX);
    ATT_TRY(take_unused(from, index, &index->imageless));
    ATT_TRY(take_unused(from, index, &index->further));
    int64_t count = (int64_t)take_number(from, (uint64_t)max_entries);
    if ((uint64_t)count > from->left / LEAST)
        fail_cursor(from);
    else if (count > 0)
        ATT_TRY(reserve(index, count));
    for (int64_t i = 0; i < count && !from->failed; i++)
        ATT_TRY(take_entry(from, index, path));
    return ATT_OK;
}

static att_status parse(att_tar_index *index, const char *path, const uint8_t *bytes, size_t size)
{
    att_context *context = index->arena.context;
    uint64_t hash = 0;
    if (size < HEAD || memcmp(bytes, magic, MAGIC) != 0)
        return att_fail(context, ATT_ERR_FORMAT, "%s is no index of this version", path);
    for (int i = 0; i < 8; i++)
        hash |= (uint64_t)bytes[MAGIC + i] << 8 * i;
    if (hash != hash_bytes(bytes + HEAD, size - HEAD))
        return att_fail(context, ATT_ERR_FORMAT, "the index %s is damaged", path);
    cursor from = {bytes + HEAD, size - HEAD, false};
    if (!take_tars(&from, index))
        return att_fail(context, ATT_ERR_MISMATCH, "the index %s is out of date", path);
    ATT_TRY(take_entries(&from, index));
    if (from.failed || from.left > 0)
        return att_fail(context, ATT_ERR_FORMAT, "the index %s is damaged", path);
    return ATT_OK;
}

/* The largest size of an index: what it says of a file takes less than the file's header in the tar, and the names of
 * the tars are short. */
static size_t most_bytes(const att_tar_index *index)
{
    uint64_t most = HEAD + (uint64_t)index->tar_count * (ATT_TAR_MOST_PATH + 64);
    for (int i = 0; i < index->tar_count; i++)
        most += index->tars[i].size;
    return most < (uint64_t)1 << 32 ? (size_t)most : (size_t)1 << 32;
}

att_status att_tar_index_read(att_tar_index *index, const char *path)
{
    char *bytes;
    size_t size;
    ATT_TRY(att_file_read(index->arena.context, path, most_bytes(index), &bytes, &size));
    att_status status = parse(index, path, (const uint8_t *)bytes, size);
    att_free(index->arena.context, bytes);
    if (status != ATT_OK)
        drop_entries(index);
    return status;
}
