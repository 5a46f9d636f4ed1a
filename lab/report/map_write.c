/* Attention maps for the page. */
#include <math.h>
#include <string.h>

#include <attscope/data.h>
#include <attscope/maps.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/base64.h"
#include "lab/report/map_file.h"
#include <attscope/lab/json.h>

enum { LEVELS = 65535 / 255 }; /* file levels per page level */

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

/* Checks classes and converts them to little endian in place. */
static att_status convert_classes(const att_map_file *maps, uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 2) {
        uint16_t class_number;
        memcpy(&class_number, data + i, sizeof(class_number));
        if (class_number != ATT_MASK_NONE && class_number >= json_array_size(maps->class_list))
            return att_map_file_fail_value(maps, ATT_MAPS_CLASSES, "class");
        data[i] = (uint8_t)class_number;
        data[i + 1] = (uint8_t)(class_number >> 8);
    }
    return ATT_OK;
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

/* Whether a figure is in range. index: of the value in its tensor, whose last dimension is the kind of figure. */
static bool is_figure(const att_map_layout *layout, size_t index, const uint8_t *bytes)
{
    float value;
    memcpy(&value, bytes, sizeof(value));
    if (index % ATT_MAPS_FIGURES != ATT_MAPS_ENTROPY)
        return att_map_is_fraction(value);
    return value >= 0 && (double)value <= log((double)att_map_keys(layout)) * (1 + ATT_MAP_ROUNDING) + ATT_MAP_ROUNDING;
}

static bool is_place(const att_map_layout *layout, const uint8_t *bytes)
{
    int32_t value;
    memcpy(&value, bytes, sizeof(value));
    return value >= 0 && value < layout->grid_h * layout->grid_w;
}

/* Checks a tensor's values and converts them to the format of the page. layout: of the tensor's node. */
static att_status convert(const att_map_file *maps, att_tensors_info info, const att_map_layout *layout, uint8_t *data,
                          size_t *bytes)
{
    if (info.dtype == ATT_SAFETENSORS_U8)
        return ATT_OK;
    if (info.dtype == ATT_SAFETENSORS_U16) {
        *bytes = round_levels(data, *bytes);
        return ATT_OK;
    }
    bool figures = info.dtype == ATT_SAFETENSORS_F32;
    for (size_t i = 0; i < *bytes / 4; i++)
        if (!(figures ? is_figure(layout, i, data + 4 * i) : is_place(layout, data + 4 * i)))
            return att_map_file_fail_value(
                maps, info.name, figures ? "entropy from 0 to ln N or weight from 0 to 1" : "place in the grid");
    to_little_endian(data, *bytes);
    return ATT_OK;
}

/* Writes the slices of a tensor under a key, in the format of the page. layout: of its node; NULL for the images. */
static att_status write_slices(att_json_writer *json, const selection *selected, const char *key, int index,
                               const att_map_layout *layout)
{
    const att_map_file *maps = selected->maps;
    uint8_t *data = NULL;
    size_t bytes = 0;
    ATT_TRY(read_slices(selected, index, &data, &bytes));
    att_status status = convert(maps, att_tensors_at(maps->file, index), layout, data, &bytes);
    att_json_key(json, key);
    if (status == ATT_OK)
        status = write_bytes(json, maps, data, bytes);
    att_free(maps->context, data);
    return status;
}

static void write_class(att_json_writer *json, const json_t *class)
{
    att_json_begin_object(json);
    att_json_put_string(json, "label", json_string_value(json_object_get(class, "label")));
    att_json_put_string(json, "colour", json_string_value(json_object_get(class, "colour")));
    att_json_end_object(json);
}

/* Writes the classes of pixels, if the file has them. */
static att_status write_classes(att_json_writer *json, const selection *selected)
{
    const att_map_file *maps = selected->maps;
    uint8_t *data = NULL;
    size_t bytes = 0;
    if (maps->classes < 0)
        return ATT_OK;
    ATT_TRY(read_slices(selected, maps->classes, &data, &bytes));
    att_json_put_object(json, ATT_MAPS_CLASSES);
    att_json_put_array(json, "list");
    for (size_t c = 0; c < json_array_size(maps->class_list); c++)
        write_class(json, json_array_get(maps->class_list, c));
    att_json_end_array(json);
    att_json_key(json, "data");
    att_status status = convert_classes(maps, data, bytes);
    if (status == ATT_OK)
        status = write_bytes(json, maps, data, bytes);
    att_json_end_object(json);
    att_free(maps->context, data);
    return status;
}

static void write_pictures(att_json_writer *json, const selection *selected)
{
    att_json_put_array(json, "pictures");
    for (int64_t i = 0; i < selected->count; i++) {
        att_json_begin_object(json);
        att_json_put_string(json, "name", att_map_file_name(selected->maps, selected->images[i]));
        att_json_put_string(json, "caption", att_map_file_caption(selected->maps, selected->images[i]));
        att_json_end_object(json);
    }
    att_json_end_array(json);
}

static void write_layout(att_json_writer *json, const att_map_layout *layout)
{
    att_json_put_integer(json, "prefix", layout->prefix);
    att_json_put_integer(json, "grid_h", layout->grid_h);
    att_json_put_integer(json, "grid_w", layout->grid_w);
    att_json_put_integer(json, "window_h", layout->window_h);
    att_json_put_integer(json, "window_w", layout->window_w);
    att_json_put_integer(json, "shift_h", layout->shift_h);
    att_json_put_integer(json, "shift_w", layout->shift_w);
}

/* The token in the middle of the grid, or of the first window. */
static int64_t central_query(const att_map_layout *layout)
{
    int64_t y = (layout->window_h / 2 + layout->shift_h) % layout->grid_h;
    int64_t x = (layout->window_w / 2 + layout->shift_w) % layout->grid_w;
    return layout->prefix + y * layout->grid_w + x;
}

/* Adds share times an image's weights of the central query on the patches to mean [H, G]. levels and figures: of the
 * image. Returns false if a figure is no weight. */
static bool add_central_rows(const att_map_node *node, const uint8_t *levels, const uint8_t *figures, double share,
                             float *mean)
{
    int64_t tokens = att_map_tokens(&node->layout), query = central_query(&node->layout);
    int64_t seen = node->layout.window_h * node->layout.window_w;
    for (int64_t row = 0; row < node->heads; row++) {
        size_t at = (size_t)(row * tokens + query);
        float largest;
        memcpy(&largest, figures + (at * ATT_MAPS_FIGURES + ATT_MAPS_LARGEST) * sizeof(largest), sizeof(largest));
        if (!att_map_is_fraction(largest))
            return false;
        for (int64_t j = 0; j < seen; j++) {
            uint16_t level;
            memcpy(&level, levels + (at * (size_t)seen + (size_t)j) * sizeof(level), sizeof(level));
            mean[row * seen + j] += (float)(share * level / UINT16_MAX * (double)largest);
        }
    }
    return true;
}

/* Writes the mean over all selected images of the central query's weights on the patches, from unrounded levels. */
static att_status write_means(att_json_writer *json, const selection *all, const att_map_node *node, float *mean,
                              size_t count)
{
    const att_map_file *maps = all->maps;
    uint8_t *levels = NULL, *figures = NULL;
    size_t bytes = 0, figure_bytes = 0, images = (size_t)all->count;
    att_status status = read_slices(all, node->patches, &levels, &bytes);
    if (status == ATT_OK)
        status = read_slices(all, node->figures, &figures, &figure_bytes);
    for (size_t i = 0; status == ATT_OK && i < images; i++)
        if (!add_central_rows(node, levels + i * (bytes / images), figures + i * (figure_bytes / images),
                              1 / (double)images, mean))
            status =
                att_map_file_fail_value(maps, att_tensors_at(maps->file, node->figures).name, "weight from 0 to 1");
    att_free(maps->context, levels);
    att_free(maps->context, figures);
    to_little_endian((uint8_t *)mean, count * sizeof(*mean));
    return status == ATT_OK ? write_bytes(json, maps, (const uint8_t *)mean, count * sizeof(*mean)) : status;
}

static att_status write_centre(att_json_writer *json, const att_map_file *maps, const att_map_node *node)
{
    size_t count = (size_t)(node->heads * node->layout.window_h * node->layout.window_w);
    int64_t *images = att_allocate_array(maps->context, (size_t)maps->images, sizeof(*images));
    float *mean = att_allocate_array(maps->context, count, sizeof(*mean));
    att_status status = images && mean ? ATT_OK : att_fail_memory(maps->context, count, "attention maps");
    for (int64_t i = 0; status == ATT_OK && i < maps->images; i++)
        images[i] = i;
    const selection all = {maps, images, maps->images};
    att_json_key(json, "centre");
    if (status == ATT_OK)
        status = write_means(json, &all, node, mean, count);
    att_free(maps->context, images);
    att_free(maps->context, mean);
    return status;
}

static att_status write_node(att_json_writer *json, const selection *selected, const att_map_node *node)
{
    att_context *context = selected->maps->context;
    att_text scope = {.context = context};
    att_text_append(&scope, "%.*s", node->scope_length, node->name);
    bool failed = scope.failed;
    att_json_begin_object(json);
    att_json_put_string(json, "node", failed ? "" : scope.data);
    att_text_free(&scope);
    if (failed)
        return att_fail_memory(context, strlen(node->name), "the name of a node");
    write_layout(json, &node->layout);
    att_json_put_integer(json, "heads", node->heads);
    ATT_TRY(write_centre(json, selected->maps, node));
    ATT_TRY(write_slices(json, selected, "levels", node->patches, &node->layout));
    ATT_TRY(write_slices(json, selected, "figures", node->figures, &node->layout));
    ATT_TRY(write_slices(json, selected, "place", node->place, &node->layout));
    att_json_end_object(json);
    return ATT_OK;
}

static att_status write_images(att_json_writer *json, const selection *selected)
{
    const int64_t *dims = selected->maps->image_shape.dims;
    att_json_put_object(json, ATT_MAPS_IMAGE);
    att_json_put_integer(json, "h", dims[1]);
    att_json_put_integer(json, "w", dims[2]);
    att_json_put_integer(json, "c", dims[3]);
    ATT_TRY(write_slices(json, selected, "data", selected->maps->image, NULL));
    att_json_end_object(json);
    write_pictures(json, selected);
    return write_classes(json, selected);
}

static void write_figure_names(att_json_writer *json)
{
    static const char *const names[ATT_MAPS_FIGURES] = {[ATT_MAPS_ENTROPY] = "entropy",
                                                        [ATT_MAPS_SELF] = "self",
                                                        [ATT_MAPS_PREFIX] = "prefix",
                                                        [ATT_MAPS_LARGEST] = "largest"};
    att_json_put_array(json, "figure_names");
    for (int i = 0; i < ATT_MAPS_FIGURES; i++)
        att_json_string(json, names[i]);
    att_json_end_array(json);
}

static int64_t most_keys(const att_map_file *maps)
{
    int64_t most = 0;
    for (int i = 0; i < maps->node_count; i++) {
        int64_t keys = att_map_keys(&maps->nodes[i].layout);
        most = keys > most ? keys : most;
    }
    return most;
}

att_status att_map_file_write(att_json_writer *json, const att_map_file *maps, const int64_t *shown, int64_t count)
{
    const selection selected = {maps, shown, count};
    att_json_begin_object(json);
    att_json_put_integer(json, "keys", most_keys(maps));
    att_json_put_integer(json, "images", maps->images);
    att_json_put_integer(json, "count", count);
    write_figure_names(json);
    if (count > 0) {
        ATT_TRY(write_images(json, &selected));
        att_json_put_array(json, "nodes");
        for (int i = 0; i < maps->node_count; i++)
            ATT_TRY(write_node(json, &selected, &maps->nodes[i]));
        att_json_end_array(json);
    }
    att_json_end_object(json);
    return ATT_OK;
}
