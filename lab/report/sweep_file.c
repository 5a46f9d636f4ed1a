#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "lab/report/sweep.h"

enum { MAX_BYTES = 64 << 20 };

static const char *text_of(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return json_is_string(value) ? json_string_value(value) : NULL;
}

/* Whether a name is that of a folder directly within the sweep's folder. */
static bool is_folder_name(const char *name)
{
    return name && *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool is_run(const json_t *object)
{
    const json_t *seed = json_object_get(object, "seed");
    return is_folder_name(text_of(object, "name")) && text_of(object, "setting") && text_of(object, "status") &&
           json_is_integer(seed) && json_integer_value(seed) >= 0;
}

static att_status add_run(att_sweep_file *file, const char *folder, const json_t *object)
{
    att_context *context = file->arena.context;
    att_text path = {.context = context};
    att_text_append(&path, "%s/%s", folder, text_of(object, "name"));
    att_sweep_run *run = &file->runs[file->count++];
    *run = (att_sweep_run){.folder = path.failed ? NULL : att_arena_string(&file->arena, path.data),
                           .setting = att_arena_string(&file->arena, text_of(object, "setting")),
                           .seed = (uint64_t)json_integer_value(json_object_get(object, "seed"))};
    att_text_free(&path);
    return run->folder && run->setting ? ATT_OK : att_fail_memory(context, strlen(folder), folder);
}

static att_status add_failure(att_sweep_file *file, const json_t *object)
{
    const char *reason = text_of(object, "failure");
    att_sweep_failure *failure = &file->failures[file->failure_count++];
    *failure = (att_sweep_failure){att_arena_string(&file->arena, text_of(object, "setting")),
                                   att_arena_string(&file->arena, reason ? reason : "")};
    return failure->setting && failure->reason ? ATT_OK
                                               : att_fail_memory(file->arena.context, sizeof *failure, "a sweep");
}

static att_status read_run_list(att_sweep_file *file, const char *path, const char *folder, const json_t *root)
{
    const json_t *list = json_object_get(root, "runs");
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > ATT_SWEEP_MOST_RUNS)
        return att_fail(
            file->arena.context, ATT_ERR_FORMAT,
            "%s: expected an object with \"runs\", an array of at most %d runs, as attscope sweep writes it", path,
            (int)ATT_SWEEP_MOST_RUNS);
    file->runs = att_arena_allocate(&file->arena, (count + 1) * sizeof *file->runs);
    file->failures = att_arena_allocate(&file->arena, (count + 1) * sizeof *file->failures);
    if (!file->runs || !file->failures)
        return att_fail_memory(file->arena.context, count * sizeof *file->runs, path);
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        if (!is_run(object))
            return att_fail(file->arena.context, ATT_ERR_FORMAT,
                            "%s: expected run %zu to have the name of a folder in %s, a setting, a seed and a status",
                            path, i, folder);
        if (strcmp(text_of(object, "status"), "measured") == 0)
            ATT_TRY(add_run(file, folder, object));
        if (strcmp(text_of(object, "status"), "failed") == 0)
            ATT_TRY(add_failure(file, object));
    }
    return ATT_OK;
}

/* Reads the correlations that were requested instead of the default ones. */
static att_status read_pairs(att_sweep_file *file, const char *path, const json_t *root)
{
    const json_t *list = json_object_get(root, "correlate");
    size_t count = json_array_size(list);
    file->pairs = att_arena_allocate(&file->arena, (count + 1) * sizeof *file->pairs);
    if (!file->pairs)
        return att_fail_memory(file->arena.context, count * sizeof *file->pairs, path);
    for (size_t i = 0; i < count; i++) {
        const char *x = text_of(json_array_get(list, i), "x"), *y = text_of(json_array_get(list, i), "y");
        if (!x || !y || count > ATT_SWEEP_MOST_PAIRS)
            return att_fail(
                file->arena.context, ATT_ERR_FORMAT,
                "%s: expected \"correlate\" to be an array of at most %d objects, each naming two figures, x "
                "and y",
                path, (int)ATT_SWEEP_MOST_PAIRS);
        att_sweep_pair *pair = &file->pairs[file->pair_count++];
        *pair = (att_sweep_pair){att_arena_string(&file->arena, x), att_arena_string(&file->arena, y)};
        if (!pair->x || !pair->y)
            return att_fail_memory(file->arena.context, strlen(x), path);
    }
    return ATT_OK;
}

static att_status read_path(att_context *context, const char *path, const char *folder, att_sweep_file *file)
{
    char *bytes = NULL;
    size_t size;
    json_t *root = NULL;
    ATT_TRY(att_file_read(context, path, MAX_BYTES, &bytes, &size));
    att_status status = att_json_parse(context, path, bytes, size, &root);
    att_free(context, bytes);
    if (status == ATT_OK)
        status = read_run_list(file, path, folder, root);
    if (status == ATT_OK)
        status = read_pairs(file, path, root);
    json_decref(root);
    return status;
}

att_status att_sweep_file_read(att_context *context, const char *folder, bool *found, att_sweep_file *file)
{
    att_sweep_file read = {.arena = {.context = context}};
    att_text path = {.context = context};
    att_text_append(&path, "%s/sweep.json", folder);
    att_status status = path.failed ? att_fail_memory(context, strlen(folder), folder) : ATT_OK;
    bool exists = status == ATT_OK && att_file_exists(path.data);
    if (exists)
        status = read_path(context, path.data, folder, &read);
    att_text_free(&path);
    if (status != ATT_OK) {
        att_arena_free(&read.arena);
        return status;
    }
    *found = exists;
    *file = read;
    return ATT_OK;
}

void att_sweep_file_free(att_sweep_file *file)
{
    att_arena_free(&file->arena);
    *file = (att_sweep_file){.arena = {.context = file->arena.context}};
}
