#include "report/map_file.h"

#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "report/base64.h"

enum { MOST_SIDE = 4096, MOST_TOKENS = 1 << 16, MOST_HEADS = 1 << 10, MOST_NODES = 1 << 10 };

static const char map_suffix[] = ".map", max_suffix[] = ".max";

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);
    return length > end && strcmp(name + length - end, suffix) == 0;
}

static att_status fail_tensor(const att_map_file *maps, const char *name, const char *expected)
{
    return att_fail(maps->context, ATT_ERR_FORMAT, "%s: tensor %s is missing or is not %s",
                    att_tensors_path(maps->file), name, expected);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static att_status read_number(const att_map_file *maps, const char *key, int64_t low, int64_t high, int64_t *value)
{
    const char *text = att_tensors_metadata(maps->file, key);
    if (text == NULL || !att_text_to_i64(text, value) || *value < low || *value > high)
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s: its metadata need %s, a number from %lld to %lld",
                        att_tensors_path(maps->file), key, (long long)low, (long long)high);
    return ATT_OK;
}

static att_status read_grid(att_map_file *maps)
{
    ATT_TRY(read_number(maps, "grid_h", 1, MOST_SIDE, &maps->grid_h));
    ATT_TRY(read_number(maps, "grid_w", 1, MOST_SIDE, &maps->grid_w));
    ATT_TRY(read_number(maps, "prefix", 0, MOST_SIDE, &maps->prefix));
    maps->tokens = maps->prefix + maps->grid_h * maps->grid_w;
    if (maps->tokens > MOST_TOKENS)
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s: %lld tokens, at most %d are read",
                        att_tensors_path(maps->file), (long long)maps->tokens, (int)MOST_TOKENS);
    return ATT_OK;
}

static att_status read_image(att_map_file *maps)
{
    maps->image = att_tensors_find(maps->file, "image");
    att_tensors_info info =
        maps->image >= 0 ? att_tensors_at(maps->file, maps->image) : (att_tensors_info){.name = "image"};
    const int64_t *dims = info.shape.dims;
    if (info.dtype != ATT_SAFETENSORS_U8 || info.shape.rank != 4 || dims[0] < 1 || dims[1] < 1 || dims[1] > MOST_SIDE ||
        dims[2] < 1 || dims[2] > MOST_SIDE || (dims[3] != 1 && dims[3] != 3))
        return fail_tensor(maps, "image", "U8 [K, h, w, 1 or 3]");
    maps->images = dims[0];
    maps->image_shape = info.shape;
    maps->bytes_per_image = (size_t)(dims[1] * dims[2] * dims[3]);
    return ATT_OK;
}

static att_status read_node(att_map_file *maps, int index)
{
    att_tensors_info map = att_tensors_at(maps->file, index);
    int64_t n = maps->tokens, heads = map.shape.rank == 4 ? map.shape.dims[1] : 0;
    if (map.dtype != ATT_SAFETENSORS_U8 || heads < 1 || heads > MOST_HEADS ||
        !att_shape_equal(map.shape, att_shape_of(maps->images, heads, n, n)))
        return fail_tensor(maps, map.name, "U8 [K, heads, N, N] with the K of image and the N of the metadata");
    char *name = att_copy_string(maps->context, map.name);
    if (name == NULL)
        return att_fail_memory(maps->context, strlen(map.name), "a tensor's name");
    memcpy(name + strlen(name) - strlen(map_suffix), max_suffix, strlen(max_suffix));
    int other = att_tensors_find(maps->file, name);
    att_tensors_info max = other >= 0 ? att_tensors_at(maps->file, other) : map;
    att_status status = ATT_OK;
    if (max.dtype != ATT_SAFETENSORS_F32 || !att_shape_equal(max.shape, att_shape_of(maps->images, heads, n)))
        status = fail_tensor(maps, name, "F32 [K, heads, N]");
    att_free(maps->context, name);
    maps->nodes[maps->node_count++] = (att_map_node){map.name, index, other, heads};
    maps->bytes_per_image += (size_t)(heads * n * n) + (size_t)(heads * n) * sizeof(float);
    return status;
}

/* Numbers in names count as numbers: blocks.2 comes before blocks.10. */
static int compare_names(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        size_t digits_a = strspn(a, "0123456789"), digits_b = strspn(b, "0123456789");
        if (digits_a != digits_b && digits_a > 0 && digits_b > 0)
            return digits_a < digits_b ? -1 : 1;
        if (*a != *b)
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        a++, b++;
    }
    return (*a != '\0') - (*b != '\0');
}

static void sort_nodes(att_map_file *maps)
{
    for (int i = 1; i < maps->node_count; i++) {
        att_map_node node = maps->nodes[i];
        int place = i;
        for (; place > 0 && compare_names(node.name, maps->nodes[place - 1].name) < 0; place--)
            maps->nodes[place] = maps->nodes[place - 1];
        maps->nodes[place] = node;
    }
}

static att_status read_nodes(att_map_file *maps)
{
    int count = 0;
    for (int i = 0; i < att_tensors_count(maps->file); i++)
        count += has_suffix(att_tensors_at(maps->file, i).name, map_suffix);
    if (count < 1 || count > MOST_NODES)
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s: %d tensors named <scope>.map; from 1 to %d are expected",
                        att_tensors_path(maps->file), count, (int)MOST_NODES);
    maps->nodes = att_allocate_array(maps->context, (size_t)count, sizeof(*maps->nodes));
    if (maps->nodes == NULL)
        return att_fail_memory(maps->context, (size_t)count * sizeof(*maps->nodes), "attention maps");
    for (int i = 0; i < att_tensors_count(maps->file); i++)
        if (has_suffix(att_tensors_at(maps->file, i).name, map_suffix))
            ATT_TRY(read_node(maps, i));
    sort_nodes(maps);
    return ATT_OK;
}

static att_status read_class_names(att_map_file *maps)
{
    const char *text = att_tensors_metadata(maps->file, "classes");
    if (text == NULL)
        return ATT_OK;
    ATT_TRY(att_json_parse(maps->context, "classes of maps.safetensors", text, strlen(text), &maps->class_names));
    if (!json_is_array(maps->class_names))
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s: its classes are no JSON array",
                        att_tensors_path(maps->file));
    return ATT_OK;
}

static att_status read_all(att_map_file *maps)
{
    ATT_TRY(read_grid(maps));
    ATT_TRY(read_image(maps));
    ATT_TRY(read_nodes(maps));
    return read_class_names(maps);
}

att_status att_map_file_open(att_context *context, const char *path, att_map_file *maps)
{
    *maps = (att_map_file){.context = context};
    ATT_TRY(att_tensors_open(context, path, &maps->file));
    att_status status = read_all(maps);
    if (status != ATT_OK)
        att_map_file_close(maps);
    return status;
}

void att_map_file_close(att_map_file *maps)
{
    json_decref(maps->class_names);
    att_free(maps->context, maps->nodes);
    att_tensors_close(&maps->file);
    *maps = (att_map_file){.context = maps->context};
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void to_little_endian(uint8_t *bytes, size_t floats)
{
    for (size_t i = 0; i < floats; i++) {
        uint32_t bits;
        memcpy(&bits, bytes + 4 * i, sizeof(bits));
        for (int byte = 0; byte < 4; byte++)
            bytes[4 * i + (size_t)byte] = (uint8_t)(bits >> 8 * byte);
    }
}

/* The first `count` of a tensor's K slices as a string. */
static att_status write_slices(att_json_writer *json, const att_map_file *maps, int index, int64_t count)
{
    att_tensors_info info = att_tensors_at(maps->file, index);
    size_t element = att_safetensors_dtype_size(info.dtype), bytes = (size_t)info.count * element;
    size_t shown = bytes / (size_t)maps->images * (size_t)count;
    uint8_t *data = att_allocate(maps->context, bytes);
    if (data == NULL)
        return att_fail_memory(maps->context, bytes, info.name);
    att_text text = {.context = maps->context};
    att_status status = att_tensors_read(maps->file, index, info.dtype, data, info.count);
    if (status == ATT_OK) {
        if (info.dtype == ATT_SAFETENSORS_F32)
            to_little_endian(data, shown / element);
        att_base64_append(&text, data, shown);
        if (text.failed)
            status = att_fail_memory(maps->context, shown, info.name);
        else
            att_json_string(json, text.data);
    }
    att_text_free(&text);
    att_free(maps->context, data);
    return status;
}

/* Class numbers, and beside them the classes' names. */
static att_status write_classes(att_json_writer *json, const att_map_file *maps, const char *name, int64_t count)
{
    int index = att_tensors_find(maps->file, name);
    if (index < 0)
        return ATT_OK;
    att_tensors_info info = att_tensors_at(maps->file, index);
    if (info.dtype != ATT_SAFETENSORS_I64 || !att_shape_equal(info.shape, att_shape_of(maps->images)))
        return fail_tensor(maps, name, "I64 [K]");
    int64_t *numbers = att_allocate_array(maps->context, (size_t)info.count, sizeof(*numbers));
    if (numbers == NULL)
        return att_fail_memory(maps->context, (size_t)info.count * sizeof(*numbers), name);
    att_status status = att_tensors_read(maps->file, index, info.dtype, numbers, info.count);
    char names_key[32];
    snprintf(names_key, sizeof(names_key), "%s_name", name);
    att_json_key(json, name);
    att_json_begin_array(json);
    for (int64_t i = 0; status == ATT_OK && i < count; i++)
        att_json_integer(json, numbers[i]);
    att_json_end_array(json);
    att_json_key(json, names_key);
    att_json_begin_array(json);
    for (int64_t i = 0; status == ATT_OK && i < count; i++)
        att_json_string(
            json, numbers[i] < 0 ? NULL : json_string_value(json_array_get(maps->class_names, (size_t)numbers[i])));
    att_json_end_array(json);
    att_free(maps->context, numbers);
    return status;
}

static void write_integer(att_json_writer *json, const char *key, int64_t value)
{
    att_json_key(json, key);
    att_json_integer(json, value);
}

static att_status write_node(att_json_writer *json, const att_map_file *maps, const att_map_node *node, int64_t count)
{
    char *name = att_copy_string(maps->context, node->name);
    if (name == NULL)
        return att_fail_memory(maps->context, strlen(node->name), node->name);
    name[strlen(name) - strlen(map_suffix)] = '\0';
    att_json_begin_object(json);
    att_json_key(json, "node");
    att_json_string(json, name);
    att_free(maps->context, name);
    write_integer(json, "heads", node->heads);
    att_json_key(json, "map");
    ATT_TRY(write_slices(json, maps, node->map, count));
    att_json_key(json, "max");
    ATT_TRY(write_slices(json, maps, node->max, count));
    att_json_end_object(json);
    return ATT_OK;
}

att_status att_map_file_write(att_json_writer *json, const att_map_file *maps, int64_t count)
{
    const int64_t *dims = maps->image_shape.dims;
    att_json_begin_object(json);
    write_integer(json, "grid_h", maps->grid_h);
    write_integer(json, "grid_w", maps->grid_w);
    write_integer(json, "prefix", maps->prefix);
    write_integer(json, "tokens", maps->tokens);
    write_integer(json, "images", maps->images);
    write_integer(json, "count", count);
    if (count > 0) {
        att_json_key(json, "image");
        att_json_begin_object(json);
        write_integer(json, "h", dims[1]);
        write_integer(json, "w", dims[2]);
        write_integer(json, "c", dims[3]);
        att_json_key(json, "data");
        ATT_TRY(write_slices(json, maps, maps->image, count));
        att_json_end_object(json);
        ATT_TRY(write_classes(json, maps, "label", count));
        ATT_TRY(write_classes(json, maps, "prediction", count));
        att_json_key(json, "nodes");
        att_json_begin_array(json);
        for (int i = 0; i < maps->node_count; i++)
            ATT_TRY(write_node(json, maps, &maps->nodes[i], count));
        att_json_end_array(json);
    }
    att_json_end_object(json);
    return ATT_OK;
}
