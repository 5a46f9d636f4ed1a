#include "base/io/torch_options.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/json.h"

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
