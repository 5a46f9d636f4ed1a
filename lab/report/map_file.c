#include "lab/report/map_file.h"

#include <string.h>

#include <attscope/data.h>
#include <attscope/maps.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/tasks/caption.h"
#include "networks/tasks/draw.h"

enum { MAX_SIDE = 4096, MAX_TOKENS = 1 << 16, MAX_HEADS = 1 << 10, MAX_NODES = 1 << 10 };

/* The version of the format whose nodes all had the same grid, without windows. */
#define ONE_GRID_FORMAT "3"

static const char patches_suffix[] = ".patches";

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);
    return length >= end && strcmp(name + length - end, suffix) == 0;
}

static att_status fail_tensor(const att_map_file *maps, const char *name, const char *expected)
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

static att_status check_version(const att_map_file *maps)
{
    const char *version = att_tensors_metadata(maps->file, "maps");
    if (is_version(maps, ATT_MAPS_FORMAT) || is_version(maps, ONE_GRID_FORMAT))
        return ATT_OK;
    if (version == NULL)
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s holds no attention maps", att_tensors_path(maps->file));
    return att_fail(maps->context, ATT_ERR_UNSUPPORTED,
                    "%s has attention maps in version %.20s of the format; only versions " ONE_GRID_FORMAT
                    " and " ATT_MAPS_FORMAT " are supported (attscope measure --maps writes the last)",
                    att_tensors_path(maps->file), version);
}

static att_status fail_grid(const att_map_file *maps)
{
    return att_fail(maps->context, ATT_ERR_FORMAT,
                    "%s: expected grids of at most %d tokens, and windows that divide them",
                    att_tensors_path(maps->file), (int)MAX_TOKENS);
}

static att_status check_layout(const att_map_file *maps, const att_map_layout *l)
{
    bool valid = l->window_h <= l->grid_h && l->window_w <= l->grid_w && l->grid_h % l->window_h == 0 &&
                 l->grid_w % l->window_w == 0 && l->shift_h < l->grid_h && l->shift_w < l->grid_w &&
                 att_map_tokens(l) <= MAX_TOKENS;
    return valid ? ATT_OK : fail_grid(maps);
}

/* The layout of all nodes in files of versions before 4. */
static att_status read_one_layout(const att_map_file *maps, att_map_layout *layout)
{
    ATT_TRY(read_number(maps, "grid_h", 1, MAX_SIDE, &layout->grid_h));
    ATT_TRY(read_number(maps, "grid_w", 1, MAX_SIDE, &layout->grid_w));
    ATT_TRY(read_number(maps, "prefix", 0, MAX_SIDE, &layout->prefix));
    layout->window_h = layout->grid_h, layout->window_w = layout->grid_w;
    return check_layout(maps, layout);
}

static att_status read_member(const att_map_file *maps, const json_t *node, const char *key, int64_t low,
                              int64_t *value)
{
    const json_t *member = json_object_get(node, key);
    *value = json_integer_value(member);
    if (json_is_integer(member) && *value >= low && *value <= MAX_SIDE)
        return ATT_OK;
    return att_fail(maps->context, ATT_ERR_FORMAT,
                    "%s: expected %s of each node in metadata nodes, a number from %lld to %d",
                    att_tensors_path(maps->file), key, (long long)low, (int)MAX_SIDE);
}

/* The node's object in the metadata; NULL: none. */
static const json_t *find_object(const att_map_file *maps, const att_map_node *node)
{
    size_t length = (size_t)node->scope_length;
    for (size_t i = 0; i < json_array_size(maps->layouts); i++) {
        const json_t *object = json_array_get(maps->layouts, i), *name = json_object_get(object, "node");
        if (json_string_length(name) == length && memcmp(json_string_value(name), node->name, length) == 0)
            return object;
    }
    return NULL;
}

static att_status read_layout(const att_map_file *maps, const att_map_node *of, att_map_layout *layout)
{
    const json_t *node = find_object(maps, of);
    if (maps->layouts == NULL)
        return read_one_layout(maps, layout);
    if (node == NULL)
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s: metadata nodes has no object for tensor %s",
                        att_tensors_path(maps->file), of->name);
    ATT_TRY(read_member(maps, node, "prefix", 0, &layout->prefix));
    ATT_TRY(read_member(maps, node, "grid_h", 1, &layout->grid_h));
    ATT_TRY(read_member(maps, node, "grid_w", 1, &layout->grid_w));
    ATT_TRY(read_member(maps, node, "window_h", 1, &layout->window_h));
    ATT_TRY(read_member(maps, node, "window_w", 1, &layout->window_w));
    ATT_TRY(read_member(maps, node, "shift_h", 0, &layout->shift_h));
    ATT_TRY(read_member(maps, node, "shift_w", 0, &layout->shift_w));
    return check_layout(maps, layout);
}

static att_status read_image(att_map_file *maps)
{
    maps->image = att_tensors_find(maps->file, ATT_MAPS_IMAGE);
    att_tensors_info info =
        maps->image >= 0 ? att_tensors_at(maps->file, maps->image) : (att_tensors_info){.name = ATT_MAPS_IMAGE};
    const int64_t *dims = info.shape.dims;
    if (info.dtype != ATT_SAFETENSORS_U8 || info.shape.rank != 4 || dims[0] < 1 || dims[1] < 1 || dims[1] > MAX_SIDE ||
        dims[2] < 1 || dims[2] > MAX_SIDE || (dims[3] != 1 && dims[3] != 3))
        return fail_tensor(maps, ATT_MAPS_IMAGE, "U8 [K, h, w, 1 or 3]");
    maps->images = dims[0];
    maps->image_shape = info.shape;
    maps->bytes_per_image = (size_t)(dims[1] * dims[2] * dims[3]);
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

static bool is_colour(const char *text)
{
    uint8_t colour[3];
    return text && att_colour_read(text, colour) && text[ATT_COLOUR_TEXT - 1] == '\0';
}

static att_status read_class_list(att_map_file *maps)
{
    const char *text = att_tensors_metadata(maps->file, ATT_MAPS_CLASSES);
    if (text != NULL)
        ATT_TRY(parse_metadata(maps, ATT_MAPS_CLASSES, text, &maps->class_list));
    bool valid = json_is_array(maps->class_list) && json_array_size(maps->class_list) < ATT_MASK_NONE;
    for (size_t c = 0; valid && c < json_array_size(maps->class_list); c++) {
        const json_t *class = json_array_get(maps->class_list, c), *label = json_object_get(class, "label");
        valid = (json_is_string(label) || json_is_null(label)) &&
                is_colour(json_string_value(json_object_get(class, "colour")));
    }
    return valid ? ATT_OK
                 : att_fail(maps->context, ATT_ERR_FORMAT,
                            "%s: expected metadata " ATT_MAPS_CLASSES
                            ", a JSON array with a label and a colour such as \"#0060ff\" for each class",
                            att_tensors_path(maps->file));
}

/* The classes of pixels, which files of tasks that classify images do not have. */
static att_status read_classes(att_map_file *maps)
{
    const int64_t *dims = maps->image_shape.dims;
    maps->classes = att_tensors_find(maps->file, ATT_MAPS_CLASSES);
    if (maps->classes < 0)
        return ATT_OK;
    const att_tensors_info info = att_tensors_at(maps->file, maps->classes);
    if (info.dtype != ATT_SAFETENSORS_U16 || !att_shape_equal(info.shape, att_shape_of(dims[0], dims[1], dims[2])))
        return fail_tensor(maps, ATT_MAPS_CLASSES, "U16 [K, h, w]");
    maps->bytes_per_image += 2 * (size_t)(dims[1] * dims[2]);
    return read_class_list(maps);
}

/* Finds the tensor <scope><suffix> and checks its type and shape. */
static att_status find_sibling(const att_map_file *maps, const att_map_node *node, const char *suffix,
                               att_safetensors_dtype dtype, att_shape shape, int *index)
{
    att_text name = {.context = maps->context};
    att_text_append(&name, "%.*s%s", node->scope_length, node->name, suffix);
    att_status status = name.failed ? att_fail_memory(maps->context, strlen(node->name), "a tensor's name") : ATT_OK;
    *index = status == ATT_OK ? att_tensors_find(maps->file, name.data) : -1;
    if (status == ATT_OK && (*index < 0 || att_tensors_at(maps->file, *index).dtype != dtype ||
                             !att_shape_equal(att_tensors_at(maps->file, *index).shape, shape)))
        status = fail_tensor(maps, name.data,
                             dtype == ATT_SAFETENSORS_F32 ? "F32 [K, heads + 1, N, 4]" : "I32 [K, heads + 1, N]");
    att_text_free(&name);
    return status;
}

static att_status read_node(att_map_file *maps, int index)
{
    att_tensors_info patches = att_tensors_at(maps->file, index);
    if (strcmp(patches.name, patches_suffix) == 0)
        return att_fail(maps->context, ATT_ERR_FORMAT, "%s: tensor %s has no scope; expected <scope>.patches",
                        att_tensors_path(maps->file), patches.name);
    att_map_node node = {
        .name = patches.name, .scope_length = (int)(strlen(patches.name) - strlen(patches_suffix)), .patches = index};
    ATT_TRY(read_layout(maps, &node, &node.layout));
    int64_t n = att_map_tokens(&node.layout), seen = node.layout.window_h * node.layout.window_w;
    int64_t heads = patches.shape.rank == 4 ? patches.shape.dims[1] : 0;
    if (patches.dtype != ATT_SAFETENSORS_U16 || heads < 1 || heads > MAX_HEADS ||
        !att_shape_equal(patches.shape, att_shape_of(maps->images, heads, n, seen)))
        return fail_tensor(maps, patches.name,
                           "U16 [K, heads, N, patches] with the K of image and the N of the metadata");
    node.heads = heads;
    att_shape place = att_shape_of(maps->images, heads + 1, n);
    att_shape figures = att_shape_of(maps->images, heads + 1, n, ATT_MAPS_FIGURES);
    ATT_TRY(find_sibling(maps, &node, ".figures", ATT_SAFETENSORS_F32, figures, &node.figures));
    ATT_TRY(find_sibling(maps, &node, ".place", ATT_SAFETENSORS_I32, place, &node.place));
    maps->nodes[maps->node_count++] = node;
    maps->bytes_per_image +=
        (size_t)(heads * n * seen) + (size_t)((heads + 1) * n) * (ATT_MAPS_FIGURES * sizeof(float) + sizeof(int32_t));
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
    ATT_TRY(att_new(maps->context, &maps->nodes, (size_t)count, "attention maps"));
    for (int i = 0; i < att_tensors_count(maps->file); i++)
        if (is_node(att_tensors_at(maps->file, i).name))
            ATT_TRY(read_node(maps, i));
    sort_nodes(maps);
    return ATT_OK;
}

/* Parses metadata `key`, a JSON array of `count` strings. The caller owns *list, also after a failure. */
static att_status read_texts(const att_map_file *maps, const char *key, int64_t count, json_t **list)
{
    const char *text = att_tensors_metadata(maps->file, key);
    if (text != NULL)
        ATT_TRY(parse_metadata(maps, key, text, list));
    bool valid = json_is_array(*list) && json_array_size(*list) == (size_t)count;
    for (size_t i = 0; valid && i < json_array_size(*list); i++)
        valid = json_is_string(json_array_get(*list, i));
    return valid ? ATT_OK
                 : att_fail(maps->context, ATT_ERR_FORMAT,
                            "%s: expected metadata %s, a JSON array of one string per image",
                            att_tensors_path(maps->file), key);
}

static att_status read_captions(att_map_file *maps)
{
    ATT_TRY(read_texts(maps, "captions", maps->images, &maps->captions));
    for (int64_t i = 0; i < maps->images; i++)
        if (json_string_length(json_array_get(maps->captions, (size_t)i)) > ATT_CAPTION_BYTES)
            return att_fail(maps->context, ATT_ERR_FORMAT, "%s: the caption of image %lld has more than %d bytes",
                            att_tensors_path(maps->file), (long long)i, (int)ATT_CAPTION_BYTES);
    return ATT_OK;
}

static att_status read_layouts(att_map_file *maps)
{
    const char *text = att_tensors_metadata(maps->file, "nodes");
    if (!is_version(maps, ATT_MAPS_FORMAT))
        return ATT_OK;
    if (text != NULL)
        ATT_TRY(parse_metadata(maps, "nodes", text, &maps->layouts));
    if (json_is_array(maps->layouts))
        return ATT_OK;
    return att_fail(maps->context, ATT_ERR_FORMAT, "%s: expected metadata nodes, a JSON array of objects",
                    att_tensors_path(maps->file));
}

static att_status read_all(att_map_file *maps)
{
    ATT_TRY(check_version(maps));
    ATT_TRY(read_layouts(maps));
    ATT_TRY(read_image(maps));
    ATT_TRY(read_classes(maps));
    ATT_TRY(read_nodes(maps));
    ATT_TRY(read_texts(maps, "names", maps->images, &maps->names));
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
    json_decref(maps->layouts);
    json_decref(maps->names);
    json_decref(maps->captions);
    json_decref(maps->class_list);
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
