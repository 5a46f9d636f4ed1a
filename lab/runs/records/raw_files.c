/* The files of raw output: one safetensors file, one .npy file, or a folder of .npy files with an index. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <attscope/lab/json.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/npz.h"
#include "base/io/safetensors.h"
#include "lab/runs/records/raw.h"

typedef enum form { SAFETENSORS, NPY, FOLDER, UNKNOWN } form;

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), of_end = strlen(end);
    return length > of_end && strcmp(text + length - of_end, end) == 0;
}

static form form_of(const char *path)
{
    if (ends_in(path, ".safetensors"))
        return SAFETENSORS;
    if (ends_in(path, ".npy"))
        return NPY;
    return ends_in(path, "/") || att_file_is_folder(path) ? FOLDER : UNKNOWN;
}

att_status att_raw_check_path(att_context *context, const char *path, int count)
{
    const form kind = form_of(path);
    if (kind == UNKNOWN)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "raw output to %s: expected a name that ends in .safetensors or .npy, or a folder (a name that "
                        "ends in '/', if it does not exist yet)",
                        path);
    if (kind == NPY && count > 1)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "raw output to %s: a .npy file has one array, and there are %d: name a .safetensors file or a "
                        "folder, or choose one array",
                        path, count);
    return ATT_OK;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static att_status check_space(const att_raw_files *files, const char *folder)
{
    const uint64_t room = att_file_free_bytes(folder);
    double bytes = 0;
    for (int i = 0; i < files->count; i++)
        bytes += (double)files->arrays[i].bytes * (double)files->arrays[i].shape.dims[0];
    att_log(files->context, ATT_LOG_INFO, "raw output: %.3g MB to %s", bytes / 1e6, files->path);
    if (bytes <= (double)room)
        return ATT_OK;
    return att_fail(
        files->context, ATT_ERR_IO,
        "raw output to %s needs %.4g MB, and its file system has %.4g MB left: choose fewer arrays, nodes or "
        "images",
        files->path, bytes / 1e6, (double)room / 1e6);
}

static att_status open_safetensors(att_raw_files *files, const att_raw_fact *facts, int fact_count)
{
    att_arena arena = {.context = files->context};
    const size_t count = (size_t)files->count;
    att_safetensors_tensor *tensors = att_arena_allocate(&arena, count * sizeof *tensors);
    uint64_t *offsets = att_arena_allocate(&arena, count * sizeof *offsets);
    att_safetensors_pair *pairs = att_arena_allocate(&arena, ((size_t)fact_count + 1) * sizeof *pairs);
    if (!tensors || !offsets || !pairs) {
        att_arena_free(&arena);
        return att_fail_memory(files->context, count * sizeof *tensors, files->path);
    }
    for (int i = 0; i < files->count; i++)
        tensors[i] = (att_safetensors_tensor){
            .name = files->arrays[i].name, .dtype = files->arrays[i].dtype, .shape = files->arrays[i].shape};
    for (int i = 0; i < fact_count; i++)
        pairs[i] = (att_safetensors_pair){facts[i].key, facts[i].value};
    const att_safetensors_content content = {
        .tensors = tensors, .tensor_count = files->count, .metadata = pairs, .metadata_count = fact_count};
    att_status status = att_safetensors_begin(files->context, files->path, &content, offsets, &files->common);
    for (int i = 0; status == ATT_OK && i < files->count; i++)
        files->arrays[i].offset = offsets[i];
    att_arena_free(&arena);
    return status;
}

static att_status open_npy(att_raw_files *files, att_raw_array *array, const char *path)
{
    char header[ATT_NPY_HEADER];
    const char *type = att_safetensors_dtype_size(array->dtype) == 8 ? "<f8" : "<f4";
    array->offset = att_npy_header(type, array->shape, header);
    ATT_TRY(att_file_writer_open(files->context, path, &array->file));
    return att_file_writer_place(array->file, 0, header, array->offset);
}

/* {"KEY": VALUE, ..., "arrays": {"NAME": [shape], ...}} */
static att_status write_index(att_raw_files *files, const att_raw_fact *facts, int fact_count)
{
    att_text text = {.context = files->context};
    att_text_append(&text, "{");
    for (int i = 0; i < fact_count; i++)
        att_text_append(&text, facts[i].plain ? "\"%s\": \"%s\",\n" : "\"%s\": %s,\n", facts[i].key, facts[i].value);
    att_text_append(&text, "\"arrays\": {");
    for (int i = 0; i < files->count; i++) {
        att_text_append(&text, "%s\"%s\": [", i > 0 ? ",\n" : "", files->arrays[i].name);
        for (int d = 0; d < files->arrays[i].shape.rank; d++)
            att_text_append(&text, "%s%lld", d > 0 ? ", " : "", (long long)files->arrays[i].shape.dims[d]);
        att_text_append(&text, "]");
    }
    att_text_append(&text, "}}\n");
    att_status status = text.failed ? att_fail_memory(files->context, text.length, files->path)
                                    : att_file_writer_write(files->index, text.data, text.length);
    att_text_free(&text);
    return status;
}

static att_status open_folder(att_raw_files *files, const att_raw_fact *facts, int fact_count)
{
    char path[ATT_RUN_PATH], name[sizeof files->arrays->name + 8];
    for (int i = 0; i < files->count; i++) {
        snprintf(name, sizeof name, "%s.npy", files->arrays[i].name);
        ATT_TRY(att_path_join(files->context, files->path, name, path, sizeof path));
        ATT_TRY(open_npy(files, &files->arrays[i], path));
    }
    ATT_TRY(att_path_join(files->context, files->path, "index.json", path, sizeof path));
    ATT_TRY(att_file_writer_open(files->context, path, &files->index));
    return write_index(files, facts, fact_count);
}

static att_status open_files(att_raw_files *files, const att_raw_fact *facts, int fact_count)
{
    const form kind = form_of(files->path);
    char folder[ATT_RUN_PATH];
    ATT_TRY(att_raw_check_path(files->context, files->path, files->count));
    if (kind == FOLDER) {
        files->folder_is_new = !att_file_exists(files->path);
        ATT_TRY(att_file_make_folders(files->context, files->path));
        ATT_TRY(check_space(files, files->path));
        return open_folder(files, facts, fact_count);
    }
    ATT_TRY(att_path_folder(files->context, files->path, folder, sizeof folder));
    ATT_TRY(check_space(files, folder));
    return kind == NPY ? open_npy(files, &files->arrays[0], files->path) : open_safetensors(files, facts, fact_count);
}

att_status att_raw_files_open(att_raw_files *files, const att_raw_fact *facts, int fact_count)
{
    att_status status = open_files(files, facts, fact_count);
    if (status != ATT_OK)
        att_raw_files_abort(files);
    return status;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

att_status att_raw_files_put(att_raw_files *files, const att_raw_array *array, int64_t image, const void *row)
{
    return att_file_writer_place(array->file ? array->file : files->common,
                                 array->offset + (uint64_t)image * array->bytes, row, array->bytes);
}

att_status att_raw_files_commit(att_raw_files *files)
{
    att_status status = files->common ? att_file_writer_commit(&files->common) : ATT_OK;
    for (int i = 0; status == ATT_OK && i < files->count; i++)
        if (files->arrays[i].file)
            status = att_file_writer_commit(&files->arrays[i].file);
    if (status == ATT_OK && files->index)
        status = att_file_writer_commit(&files->index);
    if (status == ATT_OK)
        files->folder_is_new = false;
    return status;
}

void att_raw_files_abort(att_raw_files *files)
{
    att_file_writer_abort(&files->common);
    for (int i = 0; i < files->count; i++)
        att_file_writer_abort(&files->arrays[i].file);
    att_file_writer_abort(&files->index);
    if (files->folder_is_new)
        rmdir(files->path);
    files->folder_is_new = false;
}
