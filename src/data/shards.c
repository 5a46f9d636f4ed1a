#include "data/shards.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"
#include "data/class_tree.h"
#include "data/tar_index.h"
#include "io/json.h"

enum { MAX_LABEL_FILE = 2 * ATT_SHARD_MOST_NAME, MAX_JSON = 1 << 20 };

/* Length of a sample's key. */
static size_t key_length(const char *path)
{
    const char *last = att_path_last(path);
    return (size_t)(last - path) + strcspn(last, ".");
}

static bool has_key(const char *path, const char *key, size_t length)
{
    return strncmp(path, key, length) == 0 && key_length(path) == length;
}

/* The part of the name that says what the file is; "" if there is none. */
static const char *kind_of(const char *path)
{
    const char *kind = path + key_length(path);
    return kind + (*kind == '.');
}

/* Whether the file is of this kind. Of a kind such as "5.cls", only the last part counts. */
static bool ends_in(const char *path, const char *kind)
{
    const char *last = strrchr(kind_of(path), '.');
    return strcasecmp(last ? last + 1 : kind_of(path), kind) == 0;
}

static bool has_plain_kind(const char *path)
{
    return !strchr(kind_of(path), '.');
}

/* Whether a label could not be read because the file, not the reading of it, is at fault. */
static bool is_bad_file(att_status status)
{
    return status == ATT_ERR_FORMAT || status == ATT_ERR_UNSUPPORTED;
}

/* Whether a text could be the name of a class's folder. */
static bool is_class_name(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == '/')
            return false;
    return *text && *text != '.' && strlen(text) <= ATT_SHARD_MOST_NAME;
}

static void set_number(att_shard_sample *sample, int64_t number)
{
    sample->label = number >= 0 && number <= ATT_TAR_MOST_LABEL ? (int32_t)number : -1;
}

/* Whether the text consists of a sign and digits, as numbers that are out of range do. */
static bool is_number(const char *text)
{
    text += *text == '-' || *text == '+';
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static void parse_label(const char *text, att_shard_sample *sample)
{
    char label[MAX_LABEL_FILE + 1];
    int64_t number;
    text += att_text_bom_size(text);
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        length--;
    if (length > MAX_LABEL_FILE)
        return;
    memcpy(label, text, length);
    label[length] = '\0';
    if (att_text_to_i64(label, &number))
        set_number(sample, number);
    else if (!is_number(label) && is_class_name(label))
        memcpy(sample->class_name, label, length + 1);
}

static att_status parse_json(att_context *context, const char *path, const char *text, size_t size,
                             att_shard_sample *sample)
{
    json_t *root;
    ATT_TRY(att_json_parse(context, path, text, size, &root));
    const json_t *member = json_object_get(root, "label");
    sample->labelled |= json_is_integer(member) || json_is_string(member);
    if (json_is_integer(member))
        set_number(sample, json_integer_value(member));
    else if (json_is_string(member))
        parse_label(json_string_value(member), sample);
    json_decref(root);
    return ATT_OK;
}

/* Reads the label in a cls or json file. Leaves the sample unchanged if there is none. */
static att_status read_label(const att_archive *archive, att_context *context, int64_t file, bool is_json,
                             att_shard_sample *sample)
{
    size_t size = att_archive_size(archive, file);
    if (size > (is_json ? MAX_JSON : MAX_LABEL_FILE))
        return ATT_OK;
    char *text = att_allocate(context, size + 1);
    if (!text)
        return att_fail_memory(context, size + 1, att_archive_name(archive, file));
    att_status status = att_archive_read(archive, context, file, text);
    if (status == ATT_OK && is_json)
        status = parse_json(context, att_archive_name(archive, file), text, size, sample);
    else if (status == ATT_OK && strlen(text) == size)
        parse_label(text, sample);
    att_free(context, text);
    return is_bad_file(status) ? ATT_OK : status;
}

/* The files of a sample that hold its label; -1: there is none. */
typedef struct label_files {
    int64_t number, object;
} label_files;

static void sort_in(const char *name, int64_t file, att_shard_sample *sample, label_files *found)
{
    bool plain = has_plain_kind(name);
    if (att_class_tree_is_image(name)) {
        if (plain && sample->image < 0)
            sample->image = file;
        else if (sample->others++ == 0)
            sample->other = file;
    } else if (ends_in(name, "cls")) {
        sample->labelled = true;
        found->number = plain ? file : found->number;
    } else if (ends_in(name, "json")) {
        found->object = plain || found->object < 0 ? file : found->object;
    }
}

static label_files find_files(const att_archive *archive, att_shard_sample *sample)
{
    label_files found = {-1, -1};
    const char *key = NULL;
    for (; sample->end < att_archive_count(archive); sample->end++) {
        const char *name = att_archive_name(archive, sample->end);
        if (att_path_is_hidden(name))
            continue;
        if (!key) {
            key = name;
            sample->begin = sample->end;
        }
        if (!has_key(name, key, key_length(key)))
            break;
        sort_in(name, sample->end, sample, &found);
    }
    return found;
}

att_status att_shard_sample_read(const att_archive *archive, att_context *context, int64_t begin,
                                 att_shard_sample *sample)
{
    *sample = (att_shard_sample){.image = -1, .other = -1, .label = -1, .begin = begin, .end = begin};
    label_files found = find_files(archive, sample);
    if (found.number >= 0)
        return read_label(archive, context, found.number, false, sample);
    bool has_object =
        found.object >= 0 && (has_plain_kind(att_archive_name(archive, found.object)) || sample->image < 0);
    return has_object ? read_label(archive, context, found.object, true, sample) : ATT_OK;
}
