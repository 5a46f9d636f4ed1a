/* Weights in several files, safetensors or PyTorch's, and the index that names them: {"metadata": {...}, "weight_map":
 * {"<tensor>": "<file>", ...}}. */
#include <limits.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/json.h"
#include "base/io/tensors.h"

enum { MOST_INDEX_BYTES = 16 << 20, MOST_SHARDS = 1000 };

/* The files must lie beside the index. */
static att_status check_name(const att_tensors *file, const char *name)
{
    if (name && *name && *name != '.' && strlen(name) < 256 &&
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(name))
        return ATT_OK;
    return att_fail(file->context, ATT_ERR_FORMAT,
                    "%s: names \"%.80s\"; expected the name of a file of weights in the same folder", file->path,
                    name ? name : "");
}

static const char *shard_name(const att_tensors *file, int shard)
{
    return att_path_last(file->shards[shard]->path);
}

static att_status open_shard(att_tensors *file, att_tensors *shard, const char *name)
{
    char folder[PATH_MAX], path[PATH_MAX];
    shard->context = shard->arena.context = file->context;
    shard->origin = shard->skipped = "";
    shard->is_shard = true;
    ATT_TRY(att_path_folder(file->context, file->path, folder, sizeof folder));
    ATT_TRY(att_path_join(file->context, folder, name, path, sizeof path));
    if (!att_file_exists(path))
        return att_fail(
            file->context, ATT_ERR_NOT_FOUND,
            "%s: lists weights that are in %s, but there is no such file; all files of the index must be in "
            "its folder",
            file->path, path);
    shard->path = att_arena_string(&shard->arena, path);
    if (!shard->path)
        return att_fail_memory(file->context, strlen(path), path);
    return att_file_reader_open(file->context, path, &shard->reader);
}

att_status att_tensors_shard(att_tensors *file, const char *name, att_tensors **shard)
{
    ATT_TRY(att_check_stop(file->context, file->path));
    ATT_TRY(check_name(file, name));
    for (int i = file->shard_count; i-- > 0;)
        if (strcmp(shard_name(file, i), name) == 0) {
            *shard = file->shards[i];
            return ATT_OK;
        }
    if (!file->shards)
        ATT_TRY(att_new(file->context, &file->shards, MOST_SHARDS, file->path));
    if (file->shard_count == MOST_SHARDS)
        return att_fail(file->context, ATT_ERR_FORMAT, "%s: names more than %d files", file->path, MOST_SHARDS);
    ATT_TRY(att_new(file->context, shard, 1, name));
    file->shards[file->shard_count++] = *shard;
    return open_shard(file, *shard, name);
}

/* Opens and reads a file, unless it was read before. */
static att_status add_shard(att_tensors *file, const char *name)
{
    const int count = file->shard_count;
    att_tensors *shard;
    ATT_TRY(att_tensors_shard(file, name, &shard));
    return file->shard_count > count ? att_tensors_read_shard(shard) : ATT_OK;
}

/* The index and the files must list the same tensors. */
static att_status check_shard(const att_tensors *file, int shard, const json_t *map)
{
    for (int i = 0; i < file->shards[shard]->count; i++) {
        const char *tensor = file->shards[shard]->items[i].info.name;
        const char *named = json_string_value(json_object_get(map, tensor));
        if (!named || strcmp(named, shard_name(file, shard)) != 0)
            return att_fail(file->context, ATT_ERR_FORMAT, "%s: tensor %.200s is in %s, but the index has it in %s",
                            file->path, tensor, shard_name(file, shard), named ? named : "no file");
    }
    return ATT_OK;
}

static att_status gather(att_tensors *file, const json_t *map)
{
    size_t total = 0;
    for (int i = 0; i < file->shard_count; i++)
        total += (size_t)file->shards[i]->count;
    file->items = att_allocate_array(file->context, total ? total : 1, sizeof *file->items);
    if (!file->items)
        return att_fail_memory(file->context, total * sizeof *file->items, file->path);
    for (int i = 0; i < file->shard_count; i++)
        for (int k = 0; k < file->shards[i]->count; k++) {
            file->items[file->count] = file->shards[i]->items[k];
            file->items[file->count++].reader = file->shards[i]->reader;
        }
    if (total != json_object_size(map))
        return att_fail(file->context, ATT_ERR_FORMAT, "%s: lists %zu tensors, but its files hold %zu", file->path,
                        json_object_size(map), total);
    return ATT_OK;
}

static att_status read_map(att_tensors *file, const json_t *map)
{
    const char *tensor;
    json_t *name;
    if (!json_is_object(map) || json_object_size(map) == 0)
        return att_fail(file->context, ATT_ERR_FORMAT,
                        "%s: not an index of files of weights; expected an object \"weight_map\"", file->path);
    json_object_foreach((json_t *)map, tensor, name) ATT_TRY(add_shard(file, json_string_value(name)));
    for (int i = 0; i < file->shard_count; i++)
        ATT_TRY(check_shard(file, i, map));
    return gather(file, map);
}

att_status att_tensors_read_index(att_tensors *file)
{
    char *text;
    size_t size;
    json_t *root = NULL;
    ATT_TRY(att_file_read(file->context, file->path, MOST_INDEX_BYTES, &text, &size));
    att_status status = att_json_parse(file->context, file->path, text, size, &root);
    att_free(file->context, text);
    if (status == ATT_OK)
        status = read_map(file, json_object_get(root, "weight_map"));
    json_decref(root);
    return status;
}
