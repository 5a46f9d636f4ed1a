#include "base/io/torch_options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/json.h"
#include "base/io/torch_state.h"

/* Options that are read: first, those of timm's scripts that describe the network and its input images; then those of
 * timm, DeiT and MAE that name the training data set. */
static const char *const keys[] = {"gp",      "num_classes", "img_size",  "input_size", "in_chans", "mean",
                                   "std",     "crop_pct",    "crop_mode", "bn_eps",     "bn_tf",    "interpolation",
                                   "dataset", "data_dir",    "data",      "data_set",   "data_path"};
static const char *const name_keys[] = {"model", "arch", "architecture", "model_name", "timm_model"};
static const char *const argument_keys[] = {"model_kwargs", "model_args"};
#define COUNT(array) (int)(sizeof(array) / sizeof *(array))
enum { MOST_ITEMS = 8, MOST_TEXT = 128, MOST_KEY = 16 + MOST_TEXT };

typedef struct writing {
    const att_pickle *pickle;
    att_json_writer *writer;
} writing;

static const att_pickle_value *value_at(const writing *w, att_pickle_ref ref)
{
    return att_pickle_at(w->pickle, ref);
}

/* Returns false if the value is not a text, or too long to be a name. */
static bool copy_text(const att_pickle_value *value, char text[MOST_TEXT])
{
    if (value->kind != ATT_PICKLE_TEXT || value->text.length >= MOST_TEXT)
        return false;
    memcpy(text, value->text.bytes, value->text.length);
    text[value->text.length] = '\0';
    return true;
}

static void write_value(const writing *w, att_pickle_ref ref, bool in_list);

static void write_list(const writing *w, const att_pickle_value *list)
{
    att_pickle_ref items[MOST_ITEMS];
    uint32_t count = att_pickle_items(w->pickle, list, items, MOST_ITEMS);
    att_json_begin_array(w->writer);
    for (uint32_t i = 0; i < count && i < MOST_ITEMS; i++)
        write_value(w, items[i], true);
    att_json_end_array(w->writer);
}

/* Writes {"unreadable": true} in place of a value that is not a short text, a number or a list. */
static void write_unreadable(const writing *w)
{
    att_json_begin_object(w->writer);
    att_json_put_bool(w->writer, "unreadable", true);
    att_json_end_object(w->writer);
}

static bool is_empty(const att_pickle_value *value)
{
    bool is_container =
        value->kind == ATT_PICKLE_DICT || value->kind == ATT_PICKLE_LIST || value->kind == ATT_PICKLE_TUPLE;
    return value->kind == ATT_PICKLE_NONE || (is_container && value->cells.count == 0);
}

static void write_value(const writing *w, att_pickle_ref ref, bool in_list)
{
    const att_pickle_value *value = value_at(w, ref);
    char text[MOST_TEXT];
    if (value->kind == ATT_PICKLE_BOOL)
        att_json_bool(w->writer, value->number != 0);
    else if (value->kind == ATT_PICKLE_INT)
        att_json_integer(w->writer, value->number);
    else if (value->kind == ATT_PICKLE_REAL)
        att_json_number(w->writer, value->real);
    else if (!in_list && (value->kind == ATT_PICKLE_TUPLE || value->kind == ATT_PICKLE_LIST))
        write_list(w, value);
    else if (copy_text(value, text))
        att_json_string(w->writer, text);
    else if (is_empty(value))
        att_json_string(w->writer, NULL);
    else
        write_unreadable(w);
}

/* Writes the members of a dictionary under the keys "<prefix><key>". Returns false if a key is not a short text. */
static bool write_members(const writing *w, const att_pickle_value *dictionary, const char *prefix)
{
    bool all_keys = true;
    const att_pickle_cell *cells = w->pickle->cells;
    uint32_t cell = dictionary->cells.first;
    for (uint32_t i = 0; i + 1 < dictionary->cells.count; i += 2, cell = cells[cells[cell].next].next) {
        char text[MOST_TEXT], key[MOST_KEY];
        if (!copy_text(value_at(w, cells[cell].value), text)) {
            all_keys = false;
            continue;
        }
        snprintf(key, sizeof key, "%s%s", prefix, text);
        att_json_key(w->writer, key);
        write_value(w, cells[cells[cell].next].value, false);
    }
    return all_keys;
}

/* Writes each argument of the network's constructor under the key "<key>.<argument>". If an argument cannot be written,
 * adds "<key>" with an unreadable value. */
static void write_arguments(const writing *w, const char *key, const att_pickle_value *value)
{
    char prefix[MOST_KEY];
    snprintf(prefix, sizeof prefix, "%s.", key);
    if (value->kind == ATT_PICKLE_DICT ? write_members(w, value, prefix) : is_empty(value))
        return;
    att_json_key(w->writer, key);
    write_unreadable(w);
}

static void write_options(const writing *w, att_pickle_ref options)
{
    att_pickle_ref found;
    char text[MOST_TEXT];
    att_json_begin_object(w->writer);
    for (int i = 0; i < COUNT(name_keys); i++) /* only texts: other scripts use these keys for other values */
        if (att_pickle_find(w->pickle, options, name_keys[i], &found) && copy_text(value_at(w, found), text))
            att_json_put_string(w->writer, name_keys[i], text);
    for (int i = 0; i < COUNT(keys); i++)
        if (att_pickle_find(w->pickle, options, keys[i], &found)) {
            att_json_key(w->writer, keys[i]);
            write_value(w, found, false);
        }
    for (int i = 0; i < COUNT(argument_keys); i++)
        if (att_pickle_find(w->pickle, options, argument_keys[i], &found))
            write_arguments(w, argument_keys[i], value_at(w, found));
    att_json_end_object(w->writer);
}

/* Finds the dictionary of the options: the value under `key`, or the state of an argparse.Namespace under it. */
static bool find_options(const att_pickle *pickle, att_pickle_ref root, const char *key, att_pickle_ref *options)
{
    if (!att_pickle_find(pickle, root, key, options))
        return false;
    const att_pickle_value *value = att_pickle_at(pickle, *options);
    uint32_t cell = value->cells.first;
    for (uint32_t i = 0; value->kind == ATT_PICKLE_OPAQUE && i < value->cells.count; i++) {
        *options = pickle->cells[cell].value;
        cell = pickle->cells[cell].next;
        if (att_pickle_at(pickle, *options)->kind == ATT_PICKLE_DICT)
            return true;
    }
    return value->kind == ATT_PICKLE_DICT;
}

/* Finishes the JSON text. Unless it is an empty object, copies it into the file's arena and sets *text. */
static att_status store_text(att_tensors *file, att_json_writer *writer, const char **text)
{
    const char *json;
    size_t length;
    att_status status = att_json_writer_finish(writer, &json, &length);
    if (status == ATT_OK && strcmp(json, "{}") != 0) {
        *text = att_arena_string(&file->arena, json);
        status = *text ? ATT_OK : att_fail_memory(file->context, length, file->path);
    }
    return status;
}

att_status att_torch_options(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                             const char **text)
{
    att_pickle_ref options;
    writing w = {.pickle = pickle};
    *text = NULL;
    if (!find_options(pickle, root, key, &options))
        return ATT_OK;
    ATT_TRY(att_json_writer_create(file->context, false, &w.writer));
    write_options(&w, options);
    att_status status = store_text(file, w.writer, text);
    att_json_writer_destroy(&w.writer);
    return status;
}

att_status att_torch_arguments(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                               const char **text)
{
    att_pickle_ref arguments;
    writing w = {.pickle = pickle};
    *text = NULL;
    if (!att_pickle_find(pickle, root, key, &arguments) || is_empty(value_at(&w, arguments)))
        return ATT_OK;
    ATT_TRY(att_json_writer_create(file->context, false, &w.writer));
    att_json_begin_object(w.writer);
    bool is_read = value_at(&w, arguments)->kind == ATT_PICKLE_DICT && write_members(&w, value_at(&w, arguments), "");
    att_json_end_object(w.writer);
    att_status status = store_text(file, w.writer, text);
    att_json_writer_destroy(&w.writer);
    if (status == ATT_OK && !is_read)
        *text = "unreadable";
    return status;
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

/* Sets *list to what older versions store in "meta" under the first key, newer ones in its "dataset_meta" under the
 * second, or the first. */
static bool find_list(const att_pickle *pickle, att_pickle_ref root, const char *const names[2],
                      const att_pickle_value **list)
{
    att_pickle_ref meta, data, found;
    if (!att_pickle_find(pickle, root, "meta", &meta) ||
        !(att_pickle_find(pickle, meta, names[0], &found) ||
          (att_pickle_find(pickle, meta, "dataset_meta", &data) &&
           (att_pickle_find(pickle, data, names[1], &found) || att_pickle_find(pickle, data, names[0], &found)))))
        return false;
    *list = att_pickle_at(pickle, found);
    return (*list)->kind == ATT_PICKLE_TUPLE || (*list)->kind == ATT_PICKLE_LIST;
}

static bool append_name(const att_pickle *pickle, const att_pickle_value *value, att_text *lines)
{
    char text[MOST_TEXT];
    (void)pickle;
    if (!copy_text(value, text) || !*text || !att_utf8_valid(text) || strpbrk(text, "\r\n"))
        return false;
    att_text_append(lines, "%s\n", text);
    return true;
}

static bool append_colour(const att_pickle *pickle, const att_pickle_value *value, att_text *lines)
{
    enum { COLOURS = 3 };
    att_pickle_ref items[COLOURS];
    int parts[COLOURS];
    if ((value->kind != ATT_PICKLE_TUPLE && value->kind != ATT_PICKLE_LIST) ||
        att_pickle_items(pickle, value, items, COLOURS) != COLOURS)
        return false;
    for (int i = 0; i < COLOURS; i++) {
        const att_pickle_value *part = att_pickle_at(pickle, items[i]);
        if (part->kind != ATT_PICKLE_INT || part->number < 0 || part->number > 255)
            return false;
        parts[i] = (int)part->number;
    }
    att_text_append(lines, "#%02x%02x%02x\n", (unsigned)parts[0], (unsigned)parts[1], (unsigned)parts[2]);
    return true;
}

/* Sets *text to a line for each item of the list; NULL if one cannot be written. */
static att_status store_lines(att_tensors *file, const att_pickle *pickle, const att_pickle_value *list,
                              bool (*append)(const att_pickle *pickle, const att_pickle_value *value, att_text *lines),
                              const char **text)
{
    att_text lines = {.context = file->context};
    bool all = list->cells.count > 0;
    uint32_t cell = list->cells.first;
    for (uint32_t i = 0; i < list->cells.count && all; i++, cell = pickle->cells[cell].next)
        all = append(pickle, att_pickle_at(pickle, pickle->cells[cell].value), &lines);
    const char *copy = all && !lines.failed ? att_arena_string(&file->arena, lines.data) : NULL;
    const bool failed = lines.failed || (all && !copy);
    att_text_free(&lines);
    *text = copy;
    return failed ? att_fail_memory(file->context, list->cells.count, "the names of classes") : ATT_OK;
}

att_status att_torch_classes(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                             const char **text)
{
    static const char *const names[] = {"CLASSES", "classes"};
    const att_pickle_value *list;
    (void)key;
    *text = NULL;
    return find_list(pickle, root, names, &list) ? store_lines(file, pickle, list, append_name, text) : ATT_OK;
}

att_status att_torch_colours(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                             const char **text)
{
    static const char *const names[] = {"PALETTE", "palette"};
    const att_pickle_value *list;
    (void)key;
    *text = NULL;
    return find_list(pickle, root, names, &list) ? store_lines(file, pickle, list, append_colour, text) : ATT_OK;
}

att_status att_torch_configuration(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                                   const char **text)
{
    att_pickle_ref meta, found;
    (void)key;
    *text = NULL;
    if (!att_pickle_find(pickle, root, "meta", &meta) ||
        !(att_pickle_find(pickle, meta, "config", &found) || att_pickle_find(pickle, meta, "cfg", &found)) ||
        att_pickle_at(pickle, found)->kind != ATT_PICKLE_TEXT)
        return ATT_OK;
    const att_pickle_text stored = att_pickle_at(pickle, found)->text;
    char *copy = att_arena_allocate(&file->arena, stored.length + 1); /* zeros */
    if (!copy)
        return att_fail_memory(file->context, stored.length + 1, file->path);
    memcpy(copy, stored.bytes, stored.length);
    *text = copy;
    return ATT_OK;
}

/* --- a network that was saved whole ------------------------------------------------------------------------------- */

/* A setting that many modules have. It counts if all have the same. */
typedef struct shared_setting {
    char text[MOST_TEXT];
    bool differs;
} shared_setting;

enum { NAME = 256, LAYERS = 5, CONVS = 4, MOST_DEPTH = 16 };

typedef struct module_settings {
    const att_pickle *pickle;
    shared_setting heads, act, norm_eps, bn_eps;
    att_pickle_ref img_size;
    bool has_img_size, has_pool, pools, cuts_patches; /* has_pool: a residual network's place for a pool in the stem */
    int patch_stride;
    int strides[LAYERS][CONVS]; /* of the convolutions of the first block of a layer, both from 1; 0: there is none */
} module_settings;

static void note_shared(shared_setting *setting, const char *text)
{
    if (!*setting->text)
        snprintf(setting->text, sizeof setting->text, "%s", text);
    setting->differs = setting->differs || strcmp(setting->text, text) != 0;
}

/* The first number of a whole number, or of a tuple or list of them; 0: it is something else. */
static int first_number(const att_pickle *pickle, att_pickle_ref state, const char *key)
{
    att_pickle_ref found, item;
    if (!att_pickle_find(pickle, state, key, &found))
        return 0;
    const att_pickle_value *value = att_pickle_at(pickle, found);
    if ((value->kind == ATT_PICKLE_TUPLE || value->kind == ATT_PICKLE_LIST) &&
        att_pickle_items(pickle, value, &item, 1) > 0)
        value = att_pickle_at(pickle, item);
    return value->kind == ATT_PICKLE_INT && value->number > 0 && value->number <= 1 << 20 ? (int)value->number : 0;
}

static void note_eps(const module_settings *m, att_pickle_ref state, shared_setting *setting)
{
    char text[MOST_TEXT];
    att_pickle_ref found;
    if (!att_pickle_find(m->pickle, state, "eps", &found) || att_pickle_at(m->pickle, found)->kind != ATT_PICKLE_REAL)
        return;
    snprintf(text, sizeof text, "%.17g", att_pickle_at(m->pickle, found)->real);
    note_shared(setting, text);
}

/* class: its name, as "QuickGELU" */
static void note_activation(module_settings *m, att_pickle_ref state, const char *class)
{
    static const char *const names[][2] = {{"GELUTanh", "gelu_tanh"}, {"QuickGELU", "quick_gelu"}, {"Swish", "silu"}};
    char text[MOST_TEXT];
    att_pickle_ref way;
    size_t i = 0;
    for (; class[i]; i++)
        text[i] = (char)tolower((unsigned char)class[i]);
    text[i] = '\0';
    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(class, names[i][0]) == 0)
            snprintf(text, sizeof text, "%s", names[i][1]);
    if (strcmp(class, "GELU") == 0 && att_pickle_find(m->pickle, state, "approximate", &way) &&
        att_pickle_text_is(att_pickle_at(m->pickle, way), "tanh"))
        snprintf(text, sizeof text, "gelu_tanh");
    note_shared(&m->act, text);
}

/* name: of the module, "layer2.0.conv1"; key: its last part. */
static void note_module(module_settings *m, const char *name, const char *key, att_pickle_ref state, const char *class)
{
    char text[MOST_TEXT];
    int layer, conv, end = 0;
    if (strcmp(key, "attn") == 0 && (conv = first_number(m->pickle, state, "num_heads")) > 0) {
        snprintf(text, sizeof text, "%d", conv);
        note_shared(&m->heads, text);
    }
    if (strcmp(key, "norm1") == 0 && !strstr(class, "BatchNorm"))
        note_eps(m, state, &m->norm_eps);
    if (strstr(class, "BatchNorm"))
        note_eps(m, state, &m->bn_eps);
    if (strcmp(key, "act") == 0 || (strncmp(key, "act", 3) == 0 && isdigit((unsigned char)key[3]) && !key[4]))
        note_activation(m, state, class);
    if (strcmp(name, "maxpool") == 0)
        m->has_pool = true, m->pools = strcmp(class, "MaxPool2d") == 0;
    if (strcmp(name, "patch_embed") == 0)
        m->has_img_size = att_pickle_find(m->pickle, state, "img_size", &m->img_size);
    if (strcmp(name, "patch_embed.proj") == 0) {
        m->patch_stride = first_number(m->pickle, state, "stride");
        m->cuts_patches = m->patch_stride == first_number(m->pickle, state, "kernel_size");
    }
    if (sscanf(name, "layer%1d.0.conv%1d%n", &layer, &conv, &end) == 2 && !name[end] && layer > 0 && layer < LAYERS &&
        conv > 0 && conv < CONVS)
        m->strides[layer][conv] = first_number(m->pickle, state, "stride");
}

static void visit_modules(module_settings *m, att_pickle_ref state, const char *scope, int depth)
{
    att_pickle_ref group, inner;
    const att_pickle_cell *cells = m->pickle->cells;
    if (depth == MOST_DEPTH || !att_pickle_find(m->pickle, state, "_modules", &group))
        return;
    const att_pickle_value *dict = att_pickle_at(m->pickle, group);
    uint32_t cell = dict->cells.first, count = dict->kind == ATT_PICKLE_DICT ? dict->cells.count : 0;
    for (uint32_t i = 0; i + 1 < count; i += 2, cell = cells[cells[cell].next].next) {
        const att_pickle_ref member = cells[cells[cell].next].value;
        char key[MOST_TEXT], name[NAME], class[ATT_PICKLE_SHOWN];
        if (!copy_text(att_pickle_at(m->pickle, cells[cell].value), key) ||
            !att_torch_module_state(m->pickle, member, &inner) ||
            snprintf(name, sizeof name, "%s%s%s", scope, *scope ? "." : "", key) >= NAME)
            continue;
        att_pickle_show(att_pickle_class_name(m->pickle, att_pickle_at(m->pickle, member)), class);
        note_module(m, name, key, inner, class);
        visit_modules(m, inner, name, depth + 1);
    }
}

static void write_shared(const writing *w, const char *key, const shared_setting *setting, bool is_number)
{
    if (!*setting->text || setting->differs)
        return;
    if (is_number)
        att_json_put_number(w->writer, key, strtod(setting->text, NULL));
    else
        att_json_put_string(w->writer, key, setting->text);
}

/* The dilated layers of a residual network keep the sides of their inputs. */
static void write_strides(const writing *w, const module_settings *m)
{
    int product = 4;
    bool known = true;
    for (int layer = 2; layer < LAYERS; layer++) {
        int most = 0;
        for (int conv = 1; conv < CONVS; conv++)
            most = m->strides[layer][conv] > most ? m->strides[layer][conv] : most;
        known = known && (most == 1 || most == 2) && (layer > 2 || most == 2);
        product *= most;
    }
    if (known)
        att_json_put_integer(w->writer, "output_stride", product);
    if (m->strides[2][3] && m->strides[2][1] + m->strides[2][2] == 3)
        att_json_put_bool(w->writer, "stride_in_1x1", m->strides[2][1] == 2);
    if (m->has_pool)
        att_json_put_bool(w->writer, "stem_pool", m->pools);
}

static void write_module(const writing *w, att_pickle_ref state, const module_settings *m)
{
    static const char *const own[] = {"global_pool", "pool_include_prefix", "no_embed_class"};
    att_pickle_ref found;
    att_json_begin_object(w->writer);
    write_shared(w, "num_heads", &m->heads, true);
    write_shared(w, "act_layer", &m->act, false);
    write_shared(w, "norm_eps", &m->norm_eps, true);
    write_shared(w, "bn_eps", &m->bn_eps, true);
    for (int i = 0; i < COUNT(own); i++)
        if (att_pickle_find(w->pickle, state, own[i], &found) &&
            (value_at(w, found)->kind == ATT_PICKLE_TEXT || value_at(w, found)->kind == ATT_PICKLE_BOOL)) {
            att_json_key(w->writer, own[i]);
            write_value(w, found, false);
        }
    if (m->has_img_size) {
        att_json_key(w->writer, "img_size");
        write_value(w, m->img_size, false);
    }
    if (m->patch_stride > 0 && !m->cuts_patches)
        att_json_put_integer(w->writer, "patch_stride", m->patch_stride);
    write_strides(w, m);
    att_json_end_object(w->writer);
}

/* Writes timm's configuration of the network without its number of classes, which tensors show. */
static void write_timm(const writing *w, att_pickle_ref state)
{
    static const char *const members[] = {
        "architecture", "tag",           "input_size",      "mean",         "std", "crop_pct",
        "crop_mode",    "interpolation", "test_input_size", "test_crop_pct"};
    att_pickle_ref config, found;
    att_json_begin_object(w->writer);
    if (att_pickle_find(w->pickle, state, "pretrained_cfg", &config) &&
        att_pickle_find(w->pickle, config, "architecture", &found) && value_at(w, found)->kind == ATT_PICKLE_TEXT) {
        att_json_put_object(w->writer, "pretrained_cfg");
        for (int i = 0; i < COUNT(members); i++)
            if (att_pickle_find(w->pickle, config, members[i], &found) && !is_empty(value_at(w, found))) {
                att_json_key(w->writer, members[i]);
                write_value(w, found, false);
            }
        att_json_end_object(w->writer);
    }
    att_json_end_object(w->writer);
}

/* Metadata that is not sorted yet. */
static att_status append_metadata(att_tensors *file, const char *key, const char *value)
{
    const size_t count = (size_t)file->metadata_count + 1;
    att_safetensors_pair *metadata =
        value ? att_reallocate(file->context, file->metadata, count * sizeof *metadata) : NULL;
    if (!value)
        return ATT_OK;
    if (!metadata)
        return att_fail_memory(file->context, count * sizeof *metadata, file->path);
    file->metadata = metadata;
    metadata[file->metadata_count++] = (att_safetensors_pair){key, value};
    return ATT_OK;
}

att_status att_torch_module_settings(att_tensors *file, const att_pickle *pickle, att_pickle_ref state)
{
    module_settings m = {.pickle = pickle};
    writing w = {.pickle = pickle};
    visit_modules(&m, state, "", 0);
    for (int part = 0; part < 2; part++) {
        const char *text = NULL;
        ATT_TRY(att_json_writer_create(file->context, false, &w.writer));
        if (part == 0)
            write_module(&w, state, &m);
        else
            write_timm(&w, state);
        att_status status = store_text(file, w.writer, &text);
        att_json_writer_destroy(&w.writer);
        ATT_TRY(status);
        ATT_TRY(append_metadata(file, part == 0 ? ATT_TENSORS_ATTRIBUTES : "config", text));
    }
    return ATT_OK;
}
