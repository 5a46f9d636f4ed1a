#include "io/torch_options.h"

#include <stdio.h>
#include <string.h>

#include <attscope/json.h>

#include "core/error.h"

/* Of timm's scripts: those that say which network it is and what images it takes; then those that name the data set of
 * the training, in timm's scripts and in those of DeiT and MAE. */
static const char *const keys[] = {"model",         "gp",      "num_classes", "img_size",  "input_size", "in_chans",
                                   "mean",          "std",     "crop_pct",    "crop_mode", "bn_eps",     "bn_tf",
                                   "interpolation", "dataset", "data_dir",    "data",      "data_set",   "data_path"};
static const char DICTIONARY[] = "model_kwargs";
enum { KEYS = sizeof keys / sizeof *keys, MOST_ITEMS = 8, MOST_TEXT = 128 };

typedef struct writing {
    const att_pickle *pickle;
    att_json_writer *writer;
} writing;

static const att_pickle_value *value_at(const writing *w, att_pickle_ref ref)
{
    return att_pickle_at(w->pickle, ref);
}

/* False where the text is too long to be a name. */
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

/* Stands for a value that is no short text, number or list: an object that no reader takes for one of these. */
static void write_unreadable(const writing *w)
{
    att_json_begin_object(w->writer);
    att_json_key(w->writer, "unreadable");
    att_json_bool(w->writer, true);
    att_json_end_object(w->writer);
}

static bool is_nothing(const att_pickle_value *value)
{
    bool holds = value->kind == ATT_PICKLE_DICT || value->kind == ATT_PICKLE_LIST || value->kind == ATT_PICKLE_TUPLE;
    return value->kind == ATT_PICKLE_NONE || (holds && value->cells.count == 0);
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
    else if (is_nothing(value))
        att_json_string(w->writer, NULL);
    else
        write_unreadable(w);
}

/* What model_kwargs hold that is not written. */
static void write_unreadable_arguments(const writing *w)
{
    att_json_key(w->writer, DICTIONARY);
    write_unreadable(w);
}

/* Each key of a dictionary as "model_kwargs.<key>". */
static void write_dictionary(const writing *w, const att_pickle_value *value)
{
    bool all_keys = true;
    const att_pickle_cell *cells = w->pickle->cells;
    uint32_t cell = value->cells.first;
    for (uint32_t i = 0; i + 1 < value->cells.count; i += 2, cell = cells[cells[cell].next].next) {
        char text[MOST_TEXT], key[sizeof DICTIONARY + 1 + MOST_TEXT];
        if (!copy_text(value_at(w, cells[cell].value), text)) {
            all_keys = false;
            continue;
        }
        snprintf(key, sizeof key, "%s.%s", DICTIONARY, text);
        att_json_key(w->writer, key);
        write_value(w, cells[cells[cell].next].value, false);
    }
    if (!all_keys)
        write_unreadable_arguments(w);
}

static void write_arguments(const writing *w, const att_pickle_value *value)
{
    if (value->kind == ATT_PICKLE_DICT)
        write_dictionary(w, value);
    else if (!is_nothing(value))
        write_unreadable_arguments(w);
}

/* Whether a script's option is written. The name of a network is a short text; other scripts keep other things there.
 */
static bool is_written(const writing *w, const char *key, att_pickle_ref value)
{
    char text[MOST_TEXT];
    return strcmp(key, "model") != 0 || copy_text(value_at(w, value), text);
}

static void write_options(const writing *w, att_pickle_ref options)
{
    att_pickle_ref found;
    att_json_begin_object(w->writer);
    for (int i = 0; i < KEYS; i++) {
        if (!att_pickle_find(w->pickle, options, keys[i], &found) || !is_written(w, keys[i], found))
            continue;
        att_json_key(w->writer, keys[i]);
        write_value(w, found, false);
    }
    if (att_pickle_find(w->pickle, options, DICTIONARY, &found))
        write_arguments(w, value_at(w, found));
    att_json_end_object(w->writer);
}

/* The dictionary that an argparse.Namespace was given, or that the options are. */
static bool find_options(const att_pickle *pickle, att_pickle_ref root, att_pickle_ref *options)
{
    if (!att_pickle_find(pickle, root, ATT_TENSORS_OPTIONS, options))
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

att_status att_torch_options(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char **text)
{
    att_pickle_ref options;
    writing w = {.pickle = pickle};
    *text = NULL;
    if (!find_options(pickle, root, &options))
        return ATT_OK;
    ATT_TRY(att_json_writer_create(file->context, false, &w.writer));
    write_options(&w, options);
    const char *made;
    size_t length;
    att_status status = att_json_writer_finish(w.writer, &made, &length);
    if (status == ATT_OK && strcmp(made, "{}") != 0) {
        *text = att_arena_string(&file->arena, made);
        status = *text ? ATT_OK : att_fail_memory(file->context, length, file->path);
    }
    att_json_writer_destroy(&w.writer);
    return status;
}
