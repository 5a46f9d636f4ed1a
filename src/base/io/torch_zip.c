/* Reads checkpoints of PyTorch 1.6 and later: an uncompressed zip archive with NAME/data.pkl, NAME/data/KEY for each
 * storage, and optionally NAME/byteorder. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/torch_state.h"
#include "base/io/zip.h"

enum {
    MOST_RECORD_NAME = 300,
    MOST_DIRECTORY = 1 << 26,
    CHECK_BYTES = 1 << 18,
};

/* A file in the archive. */
typedef struct record {
    att_pickle_text name;
    uint64_t begin; /* offset of its local header */
    uint64_t data;  /* offset of its `size` bytes of data */
    uint64_t size;
    uint32_t checksum; /* CRC-32; 0 if missing, as after torch.serialization.set_crc32_options(False) */
    bool packed, checked;
} record;

typedef struct archive {
    att_tensors *file;
    att_zip zip;
    uint8_t *directory_text;
    uint8_t *pickle; /* data.pkl */
    record *records;
    size_t count;
    att_pickle_text prefix; /* "NAME/" */
} archive;

static att_status refuse(const archive *a, const char *what)
{
    return att_fail(a->file->context, ATT_ERR_FORMAT, "%s: %s", a->file->path, what);
}

static att_status refuse_record(const archive *a, att_pickle_text name, att_status status, const char *what)
{
    char shown[ATT_PICKLE_SHOWN];
    return att_fail(a->file->context, status, "%s: %s in it %s", a->file->path, att_pickle_show(name, shown), what);
}

/* --- the directory ------------------------------------------------------------------------------------------------ */

static att_status read_at(const archive *a, uint64_t offset, void *out, size_t size)
{
    return att_file_reader_read(a->file->reader, offset, out, size);
}

/* Reads a part of the file. Caller frees *bytes, also on failure. */
static att_status read_part(const archive *a, uint64_t offset, uint64_t size, uint8_t **bytes)
{
    *bytes = att_reallocate(a->file->context, NULL, (size_t)size + 1);
    if (!*bytes)
        return att_fail_memory(a->file->context, (size_t)size + 1, a->file->path);
    return read_at(a, offset, *bytes, (size_t)size);
}

/* Sets the offset of a record's data, which follow its local header. */
static att_status place_record(const archive *a, record *r)
{
    uint64_t end = a->zip.directory;
    uint8_t local[ATT_ZIP_LOCAL_BYTES] = {0};
    if (r->begin <= end && end - r->begin >= sizeof local)
        ATT_TRY(read_at(a, r->begin, local, sizeof local));
    uint64_t length = att_zip_local_length(local);
    if (length == 0)
        return refuse_record(a, r->name, ATT_ERR_FORMAT, "has no local header at the offset given in the directory");
    r->data = r->begin + length;
    if (r->data > end || r->size > end - r->data)
        return refuse_record(a, r->name, ATT_ERR_FORMAT, "extends beyond the archive");
    return ATT_OK;
}

static att_status read_entry(const archive *a, const att_zip_entry *entry, record *r)
{
    *r = (record){.name = {entry->name, entry->name_length},
                  .begin = entry->begin + a->zip.offset,
                  .size = entry->packed_size,
                  .checksum = entry->checksum,
                  .packed = entry->method != 0 || entry->packed_size != entry->size || entry->encrypted};
    return place_record(a, r);
}

static int compare_names(const void *a, const void *b)
{
    return att_pickle_text_compare(((const record *)a)->name, ((const record *)b)->name);
}

static int compare_places(const void *a, const void *b)
{
    const record *left = a, *right = b;
    return (left->begin > right->begin) - (left->begin < right->begin);
}

/* Checks that records neither overlap nor share a name. Sorts the records by name. */
static att_status check_records(archive *a)
{
    qsort(a->records, a->count, sizeof *a->records, compare_places);
    for (size_t i = 1; i < a->count; i++)
        if (a->records[i - 1].data + a->records[i - 1].size > a->records[i].begin)
            return refuse_record(a, a->records[i].name, ATT_ERR_FORMAT, "overlaps another file");
    qsort(a->records, a->count, sizeof *a->records, compare_names);
    for (size_t i = 1; i < a->count; i++)
        if (compare_names(&a->records[i - 1], &a->records[i]) == 0)
            return refuse_record(a, a->records[i].name, ATT_ERR_FORMAT, "occurs twice");
    return ATT_OK;
}

static att_status read_directory(archive *a)
{
    att_zip *zip = &a->zip;
    *zip = (att_zip){.context = a->file->context, .path = a->file->path, .reader = a->file->reader};
    ATT_TRY(att_zip_find_directory(zip));
    if (zip->entries == 0)
        return refuse(a, "an empty zip archive");
    if (zip->directory_bytes > MOST_DIRECTORY)
        return refuse(a, "a zip archive whose directory has more than 67108864 bytes");
    ATT_TRY(read_part(a, zip->directory, zip->directory_bytes, &a->directory_text));
    ATT_TRY(att_new(a->file->context, &a->records, (size_t)zip->entries, a->file->path));
    const uint8_t *entry = a->directory_text;
    uint64_t left = zip->directory_bytes, length;
    for (; a->count < zip->entries; a->count++, entry += length, left -= length) {
        att_zip_entry found;
        ATT_TRY(att_zip_read_entry(zip, entry, left, &found, &length));
        ATT_TRY(read_entry(a, &found, &a->records[a->count]));
    }
    /* The folder of the first file must contain all others; check_single() checks this. */
    att_pickle_text first = a->records[0].name;
    const char *slash = memchr(first.bytes, '/', first.length);
    a->prefix = (att_pickle_text){first.bytes, slash ? (size_t)(slash - first.bytes) + 1 : 0};
    return check_records(a);
}

/* --- the checkpoint ----------------------------------------------------------------------------------------------- */

/* Returns the file "<prefix><folder><name>", or NULL. */
static record *find_record(const archive *a, const char *folder, att_pickle_text name)
{
    char path[MOST_RECORD_NAME];
    size_t middle = strlen(folder);
    if (a->prefix.length > sizeof path - middle || name.length > sizeof path - middle - a->prefix.length)
        return NULL;
    memcpy(path, a->prefix.bytes, a->prefix.length);
    memcpy(path + a->prefix.length, folder, middle);
    memcpy(path + a->prefix.length + middle, name.bytes, name.length);
    record key = {.name = {path, a->prefix.length + middle + name.length}};
    return bsearch(&key, a->records, a->count, sizeof *a->records, compare_names);
}

static record *find_file(const archive *a, const char *name)
{
    return find_record(a, "", (att_pickle_text){name, strlen(name)});
}

static att_status check_plain(const archive *a, const record *found)
{
    if (!found->packed)
        return ATT_OK;
    return refuse_record(a, found->name, ATT_ERR_UNSUPPORTED,
                         "is compressed or encrypted; expected an uncompressed file, as torch.save() writes it (in "
                         "Python: torch.save(torch.load(...)))");
}

static att_status compute_checksum(const archive *a, const record *found, uint32_t *sum)
{
    att_file_window window = {.reader = a->file->reader};
    att_status status = ATT_OK;
    *sum = (uint32_t)crc32_z(0, NULL, 0);
    for (uint64_t done = 0; done < found->size && status == ATT_OK;) {
        uint64_t left = found->size - done;
        size_t wanted = left < CHECK_BYTES ? (size_t)left : CHECK_BYTES, shown;
        const uint8_t *bytes;
        status = att_file_window_peek(&window, found->data + done, wanted, &bytes, &shown);
        if (status == ATT_OK)
            *sum = (uint32_t)crc32_z(*sum, bytes, wanted);
        done += wanted;
    }
    att_file_window_free(&window);
    return status;
}

static att_status check_checksum(const archive *a, record *found)
{
    uint32_t sum = found->checksum;
    if (!found->checked && found->checksum != 0)
        ATT_TRY(compute_checksum(a, found, &sum));
    found->checked = true;
    if (sum == found->checksum)
        return ATT_OK;
    return refuse_record(a, found->name, ATT_ERR_FORMAT,
                         "has a wrong checksum (CRC-32); the file is damaged: copy or download it again");
}

/* needed: the size of the storage in bytes; -1: more than INT64_MAX. */
static att_status refuse_size(const archive *a, const record *found, int64_t needed)
{
    char what[96];
    snprintf(what, sizeof what, "has %" PRIu64 " bytes, its tensors need %s%" PRId64, found->size,
             needed < 0 ? "more than " : "", needed < 0 ? INT64_MAX : needed);
    return refuse_record(a, found->name, ATT_ERR_FORMAT, what);
}

static att_status place_storages(const archive *a, att_pickle *pickle)
{
    for (int i = 0; i < pickle->storage_count; i++) {
        att_pickle_storage *storage = &pickle->storages[i];
        record *found = find_record(a, "data/", storage->key);
        if (!found)
            return refuse_record(a, storage->key, ATT_ERR_FORMAT, "is a storage that is missing");
        ATT_TRY(check_plain(a, found));
        int64_t bytes = att_torch_storage_bytes(storage);
        if (bytes < 0 || (uint64_t)bytes != found->size)
            return refuse_size(a, found, bytes);
        ATT_TRY(check_checksum(a, found));
        storage->placed = true;
        storage->place = found->data;
    }
    return ATT_OK;
}

static att_status refuse_two(const archive *a, const char *what, att_pickle_text one, att_pickle_text other)
{
    char first[ATT_PICKLE_SHOWN], second[ATT_PICKLE_SHOWN];
    return att_fail(a->file->context, ATT_ERR_FORMAT,
                    "%s: two %s in it, %s and %s; expected one, as torch.save() writes", a->file->path, what,
                    att_pickle_show(one, first), att_pickle_show(other, second));
}

/* Checks that the archive has a single folder with a single pickle, so that the choice of the pickle is unambiguous. */
static att_status check_single(const archive *a)
{
    static const char pickle[] = ".pkl";
    const size_t end = sizeof pickle - 1;
    const record *data = find_file(a, "data.pkl");
    for (size_t i = 0; i < a->count; i++) {
        const record *r = &a->records[i];
        if (r->name.length < a->prefix.length || memcmp(r->name.bytes, a->prefix.bytes, a->prefix.length) != 0)
            return refuse_two(a, "folders", a->prefix, r->name);
        if (data && r != data && r->name.length >= end &&
            memcmp(r->name.bytes + r->name.length - end, pickle, end) == 0)
            return refuse_two(a, "pickles", data->name, r->name);
    }
    return ATT_OK;
}

/* Refuses archives of other programs, known by the endings of their files' names. */
static att_status check_other(const archive *a)
{
    static const struct {
        const char *ending, *is;
    } others[] = {{".h5", "Keras' archive; in the program that made it, save the weights as safetensors"},
                  {".npy", "an archive of NumPy (.npz)"},
                  {".safetensors", "an archive of other files; unpack it"}};
    for (size_t i = 0; i < a->count; i++) {
        const att_pickle_text name = a->records[i].name;
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
            const size_t end = strlen(others[k].ending);
            if (name.length >= end && memcmp(name.bytes + name.length - end, others[k].ending, end) == 0)
                return att_tensors_refuse_other(a->file, others[k].is);
        }
    }
    return ATT_OK;
}

static att_status check_kind(const archive *a)
{
    static const char little[] = "little";
    const record *order = find_file(a, "byteorder");
    if (find_file(a, "constants.pkl"))
        return att_fail(a->file->context, ATT_ERR_UNSUPPORTED,
                        "%s: a TorchScript program; attscope runs no code (in Python: save the state_dict)",
                        a->file->path);
    if (!find_file(a, "data.pkl"))
        ATT_TRY(check_other(a));
    ATT_TRY(check_single(a));
    const record *data = find_file(a, "data.pkl");
    if (!data)
        return refuse(a, "a zip archive, but not a PyTorch checkpoint: it has no data.pkl");
    ATT_TRY(check_plain(a, data));
    if (!order)
        return ATT_OK;
    ATT_TRY(check_plain(a, order));
    char found_order[sizeof little - 1] = "";
    if (order->size == sizeof found_order)
        ATT_TRY(read_at(a, order->data, found_order, sizeof found_order));
    if (memcmp(found_order, little, sizeof found_order) == 0)
        return ATT_OK;
    return att_fail(a->file->context, ATT_ERR_UNSUPPORTED, "%s: its byte order is not little-endian", a->file->path);
}

static att_status read_checkpoint(archive *a, att_pickle *pickle)
{
    ATT_TRY(read_directory(a));
    ATT_TRY(check_kind(a));
    record *data = find_file(a, "data.pkl");
    ATT_TRY(check_checksum(a, data));
    att_pickle_ref root;
    if (data->size > ATT_TORCH_MOST_PICKLE)
        return refuse(a, "its pickle has more than 1073741824 bytes");
    ATT_TRY(read_part(a, data->data, data->size, &a->pickle));
    ATT_TRY(att_pickle_read(pickle, a->pickle, (size_t)data->size, &root));
    ATT_TRY(place_storages(a, pickle));
    return att_torch_state_collect(a->file, pickle, root);
}

att_status att_tensors_read_torch_zip(att_tensors *file)
{
    archive a = {.file = file};
    att_pickle pickle = {.context = file->context, .path = file->path, .advice = ATT_TORCH_ADVICE};
    att_status status = read_checkpoint(&a, &pickle);
    att_free(file->context, a.records);
    att_free(file->context, a.directory_text);
    att_free(file->context, a.pickle);
    att_pickle_free(&pickle);
    return status;
}
