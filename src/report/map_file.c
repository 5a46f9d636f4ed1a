#include "report/map_file.h"

#include <math.h>
#include <string.h>

#include <attscope/maps.h>

#include "core/error.h"
#include "core/text.h"
#include "report/base64.h"
#include "report/old_maps.h"
#include "tasks/caption.h"

enum {
    MAX_SIDE = 4096,
    MAX_TOKENS = 1 << 16,
    MAX_HEADS = 1 << 10,
    MAX_NODES = 1 << 10,
    LEVELS = 65535 / 255 /* file levels per page level */
};

static const char patches_suffix[] = ".patches";

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);
    return length >= end && strcmp(name + length - end, suffix) == 0;
}

att_status att_map_file_fail_tensor(const att_map_file *maps, const char *name, const char *expected)
{
    return att_fail(maps->context, ATT_ERR_FORMAT, "%s: tensor %s is missing or is not %s",
                    att_tensors_path(maps->file), name, expected);
}

att_status att_map_file_fail_value(const att_map_file *maps, const char *name, const char *expected)
{
    return att_fail(maps->context, ATT_ERR_FORMAT, "%s: tensor %s has a value that is not a valid %s",
                    att_tensors_path(maps->file), name, expected);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static att_status read_number(const att_map_file *maps, const char *key, int64_t low, int64_t high, int64_t *value)
{
    const char *text = att_tensors_metadata(maps->file, key);
    if (text == NULL || !att_text_to_i64(text, value) || *value < low || *value > high)
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s: expected metadata %s, a number from %lld to %lld",
                        att_tensors_path(maps->file), key, (long long)low, (long long)high);
    return ATT_OK;
}

static bool is_version(const att_map_file *maps, const char *expected)
{
    const char *version = att_tensors_metadata(maps->file, "maps");
    return version != NULL && strcmp(version, expected) == 0;
}

/* Version 1 has no metadata "maps", but has tensors <scope>.map and <scope>.max. */
static att_status check_version(const att_map_file *maps)
{
    const char *version = att_tensors_metadata(maps->file, "maps");
    if (is_version(maps, ATT_MAPS_FORMAT) || is_version(maps, ATT_OLD_MAPS_FORMAT))
        return ATT_OK;
    for (int i = 0; version == NULL && i < att_tensors_count(maps->file); i++)
        if (has_suffix(att_tensors_at(maps->file, i).name, ".map"))
            version = "1";
    if (version == NULL)
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s holds no attention maps", att_tensors_path(maps->file));
    return att_fail(maps->context, ATT_ERR_UNSUPPORTED,
                    "%s has attention maps in version %.20s of the format; only versions " ATT_OLD_MAPS_FORMAT
                    " and " ATT_MAPS_FORMAT " are supported (attscope measure --maps writes the latter)",
                    att_tensors_path(maps->file), version);
}

static att_status read_grid(att_map_file *maps)
{
    ATT_TRY(read_number(maps, "grid_h", 1, MAX_SIDE, &maps->grid_h));
    ATT_TRY(read_number(maps, "grid_w", 1, MAX_SIDE, &maps->grid_w));
    ATT_TRY(read_number(maps, "prefix", 0, MAX_SIDE, &maps->prefix));
    maps->tokens = maps->prefix + maps->grid_h * maps->grid_w;
    if (maps->tokens > MAX_TOKENS)
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s: %lld tokens, expected at most %d",
                        att_tensors_path(maps->file), (long long)maps->tokens, (int)MAX_TOKENS);
    return ATT_OK;
}

static att_status read_image(att_map_file *maps)
{
    maps->image = att_tensors_find(maps->file, ATT_MAPS_IMAGE);
    att_tensors_info info =
        maps->image >= 0 ? att_tensors_at(maps->file, maps->image) : (att_tensors_info){.name = ATT_MAPS_IMAGE};
    const int64_t *dims = info.shape.dims;
    if (info.dtype != ATT_SAFETENSORS_U8 || info.shape.rank != 4 || dims[0] < 1 || dims[1] < 1 || dims[1] > MAX_SIDE ||
        dims[2] < 1 || dims[2] > MAX_SIDE || (dims[3] != 1 && dims[3] != 3))
        return att_map_file_fail_tensor(maps, ATT_MAPS_IMAGE, "U8 [K, h, w, 1 or 3]");
    maps->images = dims[0];
    maps->image_shape = info.shape;
    maps->bytes_per_image = (size_t)(dims[1] * dims[2] * dims[3]);
    return ATT_OK;
}

/* Returns "blocks.0.attn<suffix>" for "blocks.0.attn.patches". The caller frees it. NULL with a message if out of
 * memory. */
static char *sibling_name(const att_map_file *maps, const char *patches, const char *suffix)
{
    att_text text = {.context = maps->context};
    att_text_append(&text, "%.*s%s", (int)(strlen(patches) - strlen(patches_suffix)), patches, suffix);
    if (!text.failed)
        return text.data;
    att_text_free(&text);
    (void)att_fail_memory(maps->context, strlen(patches), "a tensor's name");
    return NULL;
}

/* Finds the tensor <scope><suffix> and checks its type and shape. */
static att_status find_sibling(const att_map_file *maps, const char *patches, const char *suffix,
                               att_safetensors_dtype dtype, att_shape shape, int *index)
{
    char *name = sibling_name(maps, patches, suffix);
    if (name == NULL)
        return ATT_ERR_MEMORY;
    *index = att_tensors_find(maps->file, name);
    att_status status = ATT_OK;
    if (*index < 0 || att_tensors_at(maps->file, *index).dtype != dtype ||
        !att_shape_equal(att_tensors_at(maps->file, *index).shape, shape))
        status = att_map_file_fail_tensor(
            maps, name, dtype == ATT_SAFETENSORS_F32 ? "F32 [K, heads + 1, N, 4]" : "I32 [K, heads + 1, N]");
    att_free(maps->context, name);
    return status;
}

static att_status read_node(att_map_file *maps, int index)
{
    att_tensors_info patches = att_tensors_at(maps->file, index);
    if (strcmp(patches.name, patches_suffix) == 0)
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s: tensor %s has no scope; expected <scope>.patches",
                        att_tensors_path(maps->file), patches.name);
    int64_t n = maps->tokens, grid = n - maps->prefix, heads = patches.shape.rank == 4 ? patches.shape.dims[1] : 0;
    if (patches.dtype != ATT_SAFETENSORS_U16 || heads < 1 || heads > MAX_HEADS ||
        !att_shape_equal(patches.shape, att_shape_of(maps->images, heads, n, grid)))
        return att_map_file_fail_tensor(maps, patches.name,
                                        "U16 [K, heads, N, patches] with the K of image and the N of the metadata");
    att_map_node node = {.name = patches.name, .patches = index, .heads = heads};
    att_shape place = att_shape_of(maps->images, heads + 1, n);
    att_shape figures = att_shape_of(maps->images, heads + 1, n, ATT_MAPS_FIGURES);
    ATT_TRY(find_sibling(maps, node.name, ".figures", ATT_SAFETENSORS_F32, figures, &node.figures));
    ATT_TRY(find_sibling(maps, node.name, ".place", ATT_SAFETENSORS_I32, place, &node.place));
    maps->nodes[maps->node_count++] = node;
    maps->bytes_per_image +=
        (size_t)(heads * n * grid) + (size_t)((heads + 1) * n) * (ATT_MAPS_FIGURES * sizeof(float) + sizeof(int32_t));
    return ATT_OK;
}

/* Compares numbers in names by value: blocks.2 comes before blocks.10. */
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

/* Whether a tensor holds the attention weights of a node. */
static bool is_node(const char *name)
{
    return has_suffix(name, patches_suffix) && strncmp(name, ATT_MAPS_OUTPUT, strlen(ATT_MAPS_OUTPUT)) != 0;
}

static att_status read_nodes(att_map_file *maps)
{
    int count = 0;
    for (int i = 0; i < att_tensors_count(maps->file); i++)
        count += is_node(att_tensors_at(maps->file, i).name);
    if (count < 1 || count > MAX_NODES)
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s: %d tensors named <scope>.patches, expected 1 to %d",
                        att_tensors_path(maps->file), count, (int)MAX_NODES);
    maps->nodes = att_allocate_array(maps->context, (size_t)count, sizeof(*maps->nodes));
    if (maps->nodes == NULL)
        return att_fail_memory(maps->context, (size_t)count * sizeof(*maps->nodes), "attention maps");
    for (int i = 0; i < att_tensors_count(maps->file); i++)
        if (is_node(att_tensors_at(maps->file, i).name))
            ATT_TRY(read_node(maps, i));
    sort_nodes(maps);
    return ATT_OK;
}

static att_status parse_metadata(const att_map_file *maps, const char *key, const char *text, json_t **root)
{
    const char *path = att_tensors_path(maps->file);
    att_text what = {.context = maps->context};
    att_text_append(&what, "%s, %s of its metadata", path, key);
    att_status status = what.failed ? att_fail_memory(maps->context, strlen(path), "a message")
                                    : att_json_parse(maps->context, what.data, text, strlen(text), root);
    att_text_free(&what);
    return status;
}

att_status att_map_file_texts(const att_map_file *maps, const char *key, int64_t count, json_t **list)
{
    const char *text = att_tensors_metadata(maps->file, key);
    if (text != NULL)
        ATT_TRY(parse_metadata(maps, key, text, list));
    bool valid = json_is_array(*list) && (count < 0 || json_array_size(*list) == (size_t)count);
    for (size_t i = 0; valid && i < json_array_size(*list); i++)
        valid = json_is_string(json_array_get(*list, i));
    return valid ? ATT_OK
                 : att_fail(maps->context, ATT_ERR_FORMAT, "%s: expected metadata %s, a JSON array of %s",
                            att_tensors_path(maps->file), key, count < 0 ? "strings" : "one string per image");
}

static att_status read_captions(att_map_file *maps)
{
    if (is_version(maps, ATT_OLD_MAPS_FORMAT))
        return att_old_maps_captions(maps, &maps->captions);
    ATT_TRY(att_map_file_texts(maps, "captions", maps->images, &maps->captions));
    for (int64_t i = 0; i < maps->images; i++)
        if (json_string_length(json_array_get(maps->captions, (size_t)i)) > ATT_CAPTION_BYTES)
            return att_fail(maps->context, ATT_ERR_FORMAT, "%s: the caption of image %lld has more than %d bytes",
                            att_tensors_path(maps->file), (long long)i, (int)ATT_CAPTION_BYTES);
    return ATT_OK;
}

static att_status read_all(att_map_file *maps)
{
    ATT_TRY(check_version(maps));
    ATT_TRY(read_grid(maps));
    ATT_TRY(read_image(maps));
    ATT_TRY(read_nodes(maps));
    ATT_TRY(att_map_file_texts(maps, "names", maps->images, &maps->names));
    return read_captions(maps);
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
    json_decref(maps->names);
    json_decref(maps->captions);
    att_free(maps->context, maps->nodes);
    att_tensors_close(&maps->file);
    *maps = (att_map_file){.context = maps->context};
}

const char *att_map_file_name(const att_map_file *maps, int64_t image)
{
    return json_string_value(json_array_get(maps->names, (size_t)image));
}

const char *att_map_file_caption(const att_map_file *maps, int64_t image)
{
    return json_string_value(json_array_get(maps->captions, (size_t)image));
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* The images of a file that are written. */
typedef struct selection {
    const att_map_file *maps;
    const int64_t *images;
    int64_t count;
} selection;

/* Reads the slices of the selected images from a tensor, `*bytes` in total. The caller frees *slices; it is NULL after
 * a failure. */
static att_status read_slices(const selection *selected, int index, uint8_t **slices, size_t *bytes)
{
    const att_map_file *maps = selected->maps;
    att_context *context = maps->context;
    att_tensors_info info = att_tensors_at(maps->file, index);
    size_t all = (size_t)info.count * att_safetensors_dtype_size(info.dtype), slice = all / (size_t)maps->images;
    *bytes = slice * (size_t)selected->count;
    uint8_t *data = att_allocate(context, all);
    *slices = att_allocate(context, *bytes);
    att_status status = data != NULL && *slices != NULL
                            ? att_tensors_read(maps->file, index, info.dtype, data, info.count)
                            : att_fail_memory(context, all, info.name);
    for (int64_t i = 0; status == ATT_OK && i < selected->count; i++)
        memcpy(*slices + (size_t)i * slice, data + (size_t)selected->images[i] * slice, slice);
    att_free(context, data);
    if (status != ATT_OK) {
        att_free(context, *slices);
        *slices = NULL;
    }
    return status;
}

static att_status write_bytes(att_json_writer *json, const att_map_file *maps, const uint8_t *bytes, size_t count)
{
    att_text text = {.context = maps->context};
    att_base64_append(&text, bytes, count);
    bool failed = text.failed;
    if (!failed)
        att_json_string(json, text.data);
    att_text_free(&text);
    return failed ? att_fail_memory(maps->context, count, "attention maps") : ATT_OK;
}

/* Converts levels from U16 to U8 in place. Returns the new number of bytes. */
static size_t round_levels(uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes / 2; i++) {
        uint16_t level;
        memcpy(&level, data + 2 * i, sizeof(level));
        data[i] = (uint8_t)((level + LEVELS / 2) / LEVELS);
    }
    return bytes / 2;
}

/* Converts numbers of four bytes to little endian. */
static void to_little_endian(uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4) {
        uint32_t bits;
        memcpy(&bits, data + i, sizeof(bits));
        for (size_t byte = 0; byte < 4; byte++)
            data[i + byte] = (uint8_t)(bits >> 8 * byte);
    }
}

/* Tolerance of the checks. Rounding to bf16 changes each weight, and therefore the sum of the weights, by a relative
 * error of up to 2^-9. */
static const double rounding = 0.01;

bool att_map_file_is_fraction(float value)
{
    return value >= 0 && (double)value <= 1 + rounding;
}

/* Whether a figure is in range. index: of the value in its tensor, whose last dimension is the kind of figure. */
static bool is_figure(const att_map_file *maps, size_t index, const uint8_t *bytes)
{
    float value;
    memcpy(&value, bytes, sizeof(value));
    if (index % ATT_MAPS_FIGURES != ATT_MAPS_ENTROPY)
        return att_map_file_is_fraction(value);
    return value >= 0 && (double)value <= log((double)maps->tokens) * (1 + rounding) + rounding;
}

static bool is_place(const att_map_file *maps, const uint8_t *bytes)
{
    int32_t value;
    memcpy(&value, bytes, sizeof(value));
    return value >= 0 && value < maps->tokens - maps->prefix;
}

/* Checks a tensor's values and converts them to the format of the page. */
static att_status convert(const att_map_file *maps, att_tensors_info info, uint8_t *data, size_t *bytes)
{
    if (info.dtype == ATT_SAFETENSORS_U8)
        return ATT_OK;
    if (info.dtype == ATT_SAFETENSORS_U16) {
        *bytes = round_levels(data, *bytes);
        return ATT_OK;
    }
    bool figures = info.dtype == ATT_SAFETENSORS_F32;
    for (size_t i = 0; i < *bytes / 4; i++)
        if (!(figures ? is_figure(maps, i, data + 4 * i) : is_place(maps, data + 4 * i)))
            return att_map_file_fail_value(
                maps, info.name, figures ? "entropy from 0 to ln N or weight from 0 to 1" : "place in the grid");
    to_little_endian(data, *bytes);
    return ATT_OK;
}

/* Writes the slices of a tensor under a key, in the format of the page. */
static att_status write_slices(att_json_writer *json, const selection *selected, const char *key, int index)
{
    const att_map_file *maps = selected->maps;
    uint8_t *data = NULL;
    size_t bytes = 0;
    ATT_TRY(read_slices(selected, index, &data, &bytes));
    att_status status = convert(maps, att_tensors_at(maps->file, index), data, &bytes);
    att_json_key(json, key);
    if (status == ATT_OK)
        status = write_bytes(json, maps, data, bytes);
    att_free(maps->context, data);
    return status;
}

static void write_text(att_json_writer *json, const char *key, const char *text)
{
    att_json_key(json, key);
    att_json_string(json, text);
}

static void write_integer(att_json_writer *json, const char *key, int64_t value)
{
    att_json_key(json, key);
    att_json_integer(json, value);
}

static void write_pictures(att_json_writer *json, const selection *selected)
{
    att_json_key(json, "pictures");
    att_json_begin_array(json);
    for (int64_t i = 0; i < selected->count; i++) {
        att_json_begin_object(json);
        write_text(json, "name", att_map_file_name(selected->maps, selected->images[i]));
        write_text(json, "caption", att_map_file_caption(selected->maps, selected->images[i]));
        att_json_end_object(json);
    }
    att_json_end_array(json);
}

static att_status write_node(att_json_writer *json, const selection *selected, const att_map_node *node)
{
    const att_map_file *maps = selected->maps;
    char *name = sibling_name(maps, node->name, "");
    if (name == NULL)
        return ATT_ERR_MEMORY;
    att_json_begin_object(json);
    write_text(json, "node", name);
    att_free(maps->context, name);
    write_integer(json, "heads", node->heads);
    ATT_TRY(write_slices(json, selected, "levels", node->patches));
    ATT_TRY(write_slices(json, selected, "figures", node->figures));
    ATT_TRY(write_slices(json, selected, "place", node->place));
    att_json_end_object(json);
    return ATT_OK;
}

static att_status write_images(att_json_writer *json, const selection *selected)
{
    const int64_t *dims = selected->maps->image_shape.dims;
    att_json_key(json, ATT_MAPS_IMAGE);
    att_json_begin_object(json);
    write_integer(json, "h", dims[1]);
    write_integer(json, "w", dims[2]);
    write_integer(json, "c", dims[3]);
    ATT_TRY(write_slices(json, selected, "data", selected->maps->image));
    att_json_end_object(json);
    write_pictures(json, selected);
    return ATT_OK;
}

static void write_figure_names(att_json_writer *json)
{
    static const char *const names[ATT_MAPS_FIGURES] = {[ATT_MAPS_ENTROPY] = "entropy",
                                                        [ATT_MAPS_SELF] = "self",
                                                        [ATT_MAPS_PREFIX] = "prefix",
                                                        [ATT_MAPS_LARGEST] = "largest"};
    att_json_key(json, "figure_names");
    att_json_begin_array(json);
    for (int i = 0; i < ATT_MAPS_FIGURES; i++)
        att_json_string(json, names[i]);
    att_json_end_array(json);
}

att_status att_map_file_write(att_json_writer *json, const att_map_file *maps, const int64_t *shown, int64_t count)
{
    const selection selected = {maps, shown, count};
    att_json_begin_object(json);
    write_integer(json, "grid_h", maps->grid_h);
    write_integer(json, "grid_w", maps->grid_w);
    write_integer(json, "prefix", maps->prefix);
    write_integer(json, "tokens", maps->tokens);
    write_integer(json, "images", maps->images);
    write_integer(json, "count", count);
    write_figure_names(json);
    if (count > 0) {
        ATT_TRY(write_images(json, &selected));
        att_json_key(json, "nodes");
        att_json_begin_array(json);
        for (int i = 0; i < maps->node_count; i++)
            ATT_TRY(write_node(json, &selected, &maps->nodes[i]));
        att_json_end_array(json);
    }
    att_json_end_object(json);
    return ATT_OK;
}
