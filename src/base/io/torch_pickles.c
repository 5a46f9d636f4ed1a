/* Reads checkpoints of PyTorch before 1.6. Layout: five pickles (a magic number, a version, a description of the
 * machine, the saved object, the keys of the storages), then for each storage its number of elements (i64) and their
 * bytes. Source: torch/serialization.py, _legacy_save(). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/torch_distributed.h"
#include "base/io/torch_state.h"

enum { PROTOCOL = 1001, COUNT_BYTES = 8, FIRST_BYTES = 1 << 20 };

typedef struct reading {
    att_tensors *file;
    att_pickle pickle;
    uint8_t *bytes; /* the file's first `size` bytes, which contain the pickles */
    size_t size;
    uint64_t at;      /* offset in the file of the next byte to read */
    uint32_t *by_key; /* indices of the pickle's storages, sorted by key */
    bool distributed; /* the first pickle is the table of torch.distributed.checkpoint, which no others follow */
} reading;

static att_status refuse(const reading *r, const char *what)
{
    return att_fail(r->file->context, ATT_ERR_FORMAT, "%s: %s", r->file->path, what);
}

static att_status read_next(reading *r, att_pickle_ref *root)
{
    ATT_TRY(att_pickle_read(&r->pickle, r->bytes + r->at, r->size - (size_t)r->at, root));
    r->at += r->pickle.at;
    return ATT_OK;
}

/* --- the pickles before the saved object -------------------------------------------------------------------------- */

static bool is_magic(const att_pickle_value *value)
{
    static const uint8_t magic[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
    return value->kind == ATT_PICKLE_LONG && value->text.length == sizeof magic &&
           memcmp(value->text.bytes, magic, sizeof magic) == 0;
}

/* Returns whether the description of the machine says that it is big-endian. */
static bool is_big_endian(const att_pickle *pickle, const att_pickle_value *machine)
{
    uint32_t cell = machine->cells.first;
    for (uint32_t i = 0; i + 1 < machine->cells.count; i += 2) {
        const att_pickle_cell *value = &pickle->cells[pickle->cells[cell].next];
        if (att_pickle_text_is(att_pickle_at(pickle, pickle->cells[cell].value), "little_endian")) {
            const att_pickle_value *value_of_key = att_pickle_at(pickle, value->value);
            return value_of_key->kind == ATT_PICKLE_BOOL && value_of_key->number == 0;
        }
        cell = value->next;
    }
    return false;
}

/* *table: the value of the first pickle. */
static att_status read_preface(reading *r, att_pickle_ref *table)
{
    att_pickle_ref root;
    ATT_TRY(read_next(r, &root));
    *table = root;
    r->distributed = att_torch_is_distributed(&r->pickle, root);
    if (r->distributed)
        return ATT_OK;
    if (!is_magic(att_pickle_at(&r->pickle, root)))
        return refuse(
            r,
            "a pickle, but not one written by torch.save(); in Python, load it and save its arrays as tensors "
            "by torch.save()");
    ATT_TRY(read_next(r, &root));
    const att_pickle_value *version = att_pickle_at(&r->pickle, root);
    if (version->kind != ATT_PICKLE_INT || version->number != PROTOCOL)
        return refuse(r, "a PyTorch checkpoint of an unsupported version; expected 1001");
    ATT_TRY(read_next(r, &root));
    const att_pickle_value *machine = att_pickle_at(&r->pickle, root);
    if (machine->kind != ATT_PICKLE_DICT)
        return refuse(r, "a PyTorch checkpoint without a description of the machine");
    if (is_big_endian(&r->pickle, machine))
        return att_fail(r->file->context, ATT_ERR_UNSUPPORTED, "%s: written by a big-endian machine", r->file->path);
    return ATT_OK;
}

/* --- storages ----------------------------------------------------------------------------------------------------- */

typedef struct keyed {
    att_pickle_text key;
    uint32_t index;
} keyed;

static int compare_keys(const void *a, const void *b)
{
    const keyed *left = a, *right = b;
    int order = att_pickle_text_compare(left->key, right->key);
    return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

static att_status sort_storages(reading *r)
{
    size_t count = (size_t)r->pickle.storage_count;
    if (count == 0)
        return ATT_OK;
    keyed *sorted = att_allocate_array(r->file->context, count, sizeof *sorted);
    r->by_key = att_allocate_array(r->file->context, count, sizeof *r->by_key);
    bool allocated = sorted && r->by_key;
    for (size_t i = 0; i < count && allocated; i++)
        sorted[i] = (keyed){r->pickle.storages[i].key, (uint32_t)i};
    if (allocated)
        qsort(sorted, count, sizeof *sorted, compare_keys);
    for (size_t i = 0; i < count && allocated; i++)
        r->by_key[i] = sorted[i].index;
    att_free(r->file->context, sorted);
    return allocated ? ATT_OK : att_fail_memory(r->file->context, count * sizeof *sorted, r->file->path);
}

static att_pickle_storage *storage_at(reading *r, int place)
{
    return &r->pickle.storages[r->by_key[place]];
}

/* Returns the first position in by_key of a storage whose key is not less than `key`. */
static int find_place(reading *r, att_pickle_text key)
{
    int low = 0, high = r->pickle.storage_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (att_pickle_text_compare(storage_at(r, middle)->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_key(reading *r, int place, att_pickle_text key)
{
    return place < r->pickle.storage_count && att_pickle_text_compare(storage_at(r, place)->key, key) == 0;
}

static att_status fail_storage(const reading *r, att_pickle_text key, const char *what)
{
    char shown[ATT_PICKLE_SHOWN];
    return att_fail(r->file->context, ATT_ERR_FORMAT, "%s: storage \"%s\" %s", r->file->path,
                    att_pickle_show(key, shown), what);
}

/* Reads the header of the storage at offset r->at, skips its data, and sets `place` of all storages with this key. */
static att_status read_storage(reading *r, att_pickle_text key)
{
    int place = find_place(r, key);
    if (!has_key(r, place, key))
        return fail_storage(r, key, "belongs to no tensor that can be read");
    if (storage_at(r, place)->placed)
        return fail_storage(r, key, "occurs twice");
    uint64_t size = att_file_reader_size(r->file->reader);
    if (size - r->at < COUNT_BYTES)
        return fail_storage(r, key, "is truncated");
    uint8_t header[COUNT_BYTES];
    ATT_TRY(att_file_reader_read(r->file->reader, r->at, header, sizeof header));
    uint64_t count = 0;
    for (int i = COUNT_BYTES; i-- > 0;)
        count = count << 8 | header[i];
    r->at += COUNT_BYTES;
    int64_t bytes = att_torch_storage_bytes(storage_at(r, place));
    if (bytes < 0 || (uint64_t)bytes > size - r->at)
        return fail_storage(r, key, "is truncated, or has another size than its tensors require");
    for (; has_key(r, place, key); place++) {
        att_pickle_storage *storage = storage_at(r, place);
        if ((uint64_t)storage->count != count || att_torch_storage_bytes(storage) != bytes)
            return fail_storage(r, key, "has another number of elements than its tensors require");
        storage->placed = true;
        storage->place = r->at;
    }
    r->at += (uint64_t)bytes;
    return ATT_OK;
}

static att_status read_storages(reading *r, att_pickle_ref keys)
{
    const att_pickle_value *list = att_pickle_at(&r->pickle, keys);
    if (list->kind != ATT_PICKLE_LIST)
        return refuse(r, "the keys of its storages are not a list");
    uint32_t cell = list->cells.first;
    for (uint32_t i = 0; i < list->cells.count; i++, cell = r->pickle.cells[cell].next) {
        const att_pickle_value *key = att_pickle_at(&r->pickle, r->pickle.cells[cell].value);
        if (key->kind != ATT_PICKLE_TEXT)
            return refuse(r, "a storage's key is not a text");
        ATT_TRY(read_storage(r, key->text));
    }
    for (int i = 0; i < r->pickle.storage_count; i++)
        if (!r->pickle.storages[i].placed)
            return fail_storage(r, r->pickle.storages[i].key, "is missing");
    return ATT_OK;
}

static att_status read_pickles(reading *r, att_pickle_ref *root, att_pickle_ref *keys)
{
    ATT_TRY(read_preface(r, root));
    if (r->distributed)
        return ATT_OK;
    ATT_TRY(read_next(r, root));
    ATT_TRY(sort_storages(r));
    return read_next(r, keys);
}

static void free_pickles(reading *r)
{
    att_free(r->file->context, r->by_key);
    att_free(r->file->context, r->bytes);
    att_pickle_free(&r->pickle);
    *r = (reading){.file = r->file,
                   .pickle = {.context = r->file->context, .path = r->file->path, .advice = ATT_TORCH_ADVICE}};
}

/* The file does not say where the pickles end. So they are read from a prefix of the file, which grows until the
 * pickles are complete. */
static att_status find_pickles(reading *r, att_pickle_ref *root, att_pickle_ref *keys)
{
    uint64_t left = att_file_reader_size(r->file->reader);
    uint64_t most = left < ATT_TORCH_MOST_PICKLE ? left : ATT_TORCH_MOST_PICKLE;
    for (uint64_t size = FIRST_BYTES;; size *= 4) {
        free_pickles(r);
        r->size = (size_t)(size < most ? size : most);
        r->bytes = att_reallocate(r->file->context, NULL, r->size);
        if (!r->bytes)
            return att_fail_memory(r->file->context, r->size, r->file->path);
        ATT_TRY(att_file_reader_read(r->file->reader, 0, r->bytes, r->size));
        att_status status = read_pickles(r, root, keys);
        if (!r->pickle.truncated || r->size == left)
            return status;
        if (r->size == most)
            return refuse(r, "its pickles have more than 1073741824 bytes");
    }
}

static att_status read_file(reading *r)
{
    att_pickle_ref root, keys;
    ATT_TRY(find_pickles(r, &root, &keys));
    if (r->distributed)
        return att_torch_distributed_collect(r->file, &r->pickle, root);
    ATT_TRY(read_storages(r, keys));
    return att_torch_state_collect(r->file, &r->pickle, root);
}

att_status att_tensors_read_torch_pickles(att_tensors *file)
{
    reading r = {.file = file};
    att_status status = read_file(&r);
    free_pickles(&r);
    return status;
}
