/* Reads checkpoints of PyTorch 1.6 and later: an uncompressed zip archive with NAME/data.pkl, NAME/data/KEY for each
 * storage, and optionally NAME/byteorder. TorchScript programs have the same files beside their code, which is not
 * read. Archives of NumPy's arrays are passed on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/npz_read.h"
#include "base/io/torch_state.h"
#include "base/io/zip_records.h"

enum { MOST_RECORD_NAME = 300 };
/* Pickles of TorchScript programs beside the weights. */
static const char *const scripts[] = {"constants.pkl", "traced_inputs.pkl"};
static const char AS_SAVED[] = "as torch.save() writes it (in Python: torch.save(torch.load(...)))";

typedef att_zip_record record;

typedef struct archive {
    att_zip_records files;
    att_tensors *file;
    uint8_t *pickle;        /* data.pkl */
    att_pickle_text prefix; /* "NAME/" */
} archive;

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
    return att_zip_records_find(&a->files, (att_pickle_text){path, a->prefix.length + middle + name.length});
}

static record *find_file(const archive *a, const char *name)
{
    return find_record(a, "", (att_pickle_text){name, strlen(name)});
}

/* needed: the size of the storage in bytes; -1: more than INT64_MAX. */
static att_status refuse_size(const archive *a, const record *found, int64_t needed)
{
    char what[96];
    snprintf(what, sizeof what, "has %" PRIu64 " bytes, its tensors need %s%" PRId64, found->size,
             needed < 0 ? "more than " : "", needed < 0 ? INT64_MAX : needed);
    return att_zip_record_refuse(&a->files, found->name, ATT_ERR_FORMAT, what);
}

static att_status place_storages(const archive *a, att_pickle *pickle)
{
    for (int i = 0; i < pickle->storage_count; i++) {
        att_pickle_storage *storage = &pickle->storages[i];
        record *found = find_record(a, "data/", storage->key);
        if (!found)
            return att_zip_record_refuse(&a->files, storage->key, ATT_ERR_FORMAT, "is a storage that is missing");
        ATT_TRY(att_zip_record_check_plain(&a->files, found, AS_SAVED));
        int64_t bytes = att_torch_storage_bytes(storage);
        if (bytes < 0 || (uint64_t)bytes != found->size)
            return refuse_size(a, found, bytes);
        ATT_TRY(att_zip_record_check(&a->files, found));
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
    const record *data = find_file(a, "data.pkl");
    const record *const others[] = {find_file(a, scripts[0]), find_file(a, scripts[1])};
    for (size_t i = 0; i < a->files.count; i++) {
        const record *r = &a->files.records[i];
        if (r->name.length < a->prefix.length || memcmp(r->name.bytes, a->prefix.bytes, a->prefix.length) != 0)
            return refuse_two(a, "folders", a->prefix, r->name);
        if (data && r != data && r != others[0] && r != others[1] && att_zip_record_ends(r, ".pkl"))
            return refuse_two(a, "pickles", data->name, r->name);
    }
    return ATT_OK;
}

#define PACKED "an archive of other files; unpack it"

/* Refuses archives of other programs, known by the endings of their files' names. */
static att_status check_other(const archive *a)
{
    static const struct {
        const char *ending, *is;
    } others[] = {{"archive_format",
                   "a program of torch.export; in Python, save its weights: "
                   "torch.save(dict(torch.export.load(FILE).state_dict), \"weights.pth\")"},
                  {".h5", "Keras' archive; in the program that made it, save the weights as safetensors"},
                  {".safetensors", PACKED},
                  {".pth", PACKED},
                  {".pt", PACKED},
                  {".ckpt", PACKED},
                  {".tar", PACKED}};
    for (size_t i = 0; i < a->files.count; i++)
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (att_zip_record_ends(&a->files.records[i], others[k].ending))
                return att_tensors_refuse_other(a->file, others[k].is);
    return ATT_OK;
}

static att_status check_kind(const archive *a)
{
    static const char little[] = "little";
    const record *order = find_file(a, "byteorder");
    if (!find_file(a, "data.pkl"))
        ATT_TRY(check_other(a));
    ATT_TRY(check_single(a));
    const record *data = find_file(a, "data.pkl");
    if (!data)
        return att_zip_records_refuse(&a->files, "a zip archive, but not a PyTorch checkpoint: it has no data.pkl");
    ATT_TRY(att_zip_record_check_plain(&a->files, data, AS_SAVED));
    if (!order)
        return ATT_OK;
    ATT_TRY(att_zip_record_check_plain(&a->files, order, AS_SAVED));
    char found_order[sizeof little - 1] = "";
    if (order->size == sizeof found_order)
        ATT_TRY(att_file_reader_read(a->file->reader, order->data, found_order, sizeof found_order));
    if (memcmp(found_order, little, sizeof found_order) == 0)
        return ATT_OK;
    return att_fail(a->file->context, ATT_ERR_UNSUPPORTED, "%s: its byte order is not little-endian", a->file->path);
}

/* The folder of the first file must contain all others; check_single() checks this. */
static void find_folder(archive *a)
{
    const att_pickle_text first = a->files.first;
    const char *slash = memchr(first.bytes, '/', first.length);
    a->prefix = (att_pickle_text){first.bytes, slash ? (size_t)(slash - first.bytes) + 1 : 0};
}

static att_status read_checkpoint(archive *a, att_pickle *pickle)
{
    ATT_TRY(att_zip_records_read(&a->files));
    find_folder(a);
    if (!find_file(a, "data.pkl") && att_npz_holds_arrays(&a->files))
        return att_npz_collect(&a->files);
    ATT_TRY(check_kind(a));
    record *data = find_file(a, "data.pkl");
    ATT_TRY(att_zip_record_check(&a->files, data));
    att_pickle_ref root;
    if (data->size > ATT_TORCH_MOST_PICKLE)
        return att_zip_records_refuse(&a->files, "its pickle has more than 1073741824 bytes");
    ATT_TRY(att_zip_records_bytes(&a->files, data->data, data->size, &a->pickle));
    ATT_TRY(att_pickle_read(pickle, a->pickle, (size_t)data->size, &root));
    ATT_TRY(place_storages(a, pickle));
    return att_torch_state_collect(a->file, pickle, root);
}

att_status att_tensors_read_torch_zip(att_tensors *file)
{
    archive a = {.files.file = file, .file = file};
    att_pickle pickle = {.context = file->context, .path = file->path, .advice = ATT_TORCH_ADVICE};
    att_status status = read_checkpoint(&a, &pickle);
    att_zip_records_free(&a.files);
    att_free(file->context, a.pickle);
    att_pickle_free(&pickle);
    return status;
}
