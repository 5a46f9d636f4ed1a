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

enum { MAX_LABEL_FILE = 64, MAX_JSON = 1 << 20 };

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

static bool is_image(const char *path)
{
    return !strchr(kind_of(path), '.') && att_class_tree_is_image(path);
}

/* Whether a label could not be read because the file, not the reading of it, is at fault. */
static bool is_bad_file(att_status status)
{
    return status == ATT_ERR_FORMAT || status == ATT_ERR_UNSUPPORTED;
}

static int32_t parse_number(char *text)
{
    char *end = text + strlen(text);
    int64_t value;
    while (end > text && strchr(" \t\r\n", end[-1]))
        *--end = '\0';
    return att_text_to_i64(text + strspn(text, " \t\r\n"), &value) && value >= 0 && value <= ATT_TAR_MOST_LABEL
               ? (int32_t)value
               : -1;
}

static att_status parse_json(att_context *context, const char *path, const char *text, size_t size, int32_t *label)
{
    json_t *root;
    ATT_TRY(att_json_parse(context, path, text, size, &root));
    const json_t *member = json_object_get(root, "label");
    json_int_t value = json_is_integer(member) ? json_integer_value(member) : -1;
    *label = value >= 0 && value <= ATT_TAR_MOST_LABEL ? (int32_t)value : -1;
    json_decref(root);
    return ATT_OK;
}

/* Reads the label in a cls or json file. Leaves *label unchanged if there is none. */
static att_status read_label(const att_archive *archive, att_context *context, int64_t file, bool is_json,
                             int32_t *label)
{
    size_t size = att_archive_size(archive, file);
    if (size > (is_json ? MAX_JSON : MAX_LABEL_FILE))
        return ATT_OK;
    char *text = att_allocate(context, size + 1);
    if (!text)
        return att_fail_memory(context, size + 1, att_archive_name(archive, file));
    att_status status = att_archive_read(archive, context, file, text);
    if (status == ATT_OK && is_json)
        status = parse_json(context, att_archive_name(archive, file), text, size, label);
    else if (status == ATT_OK)
        *label = parse_number(text);
    att_free(context, text);
    return is_bad_file(status) ? ATT_OK : status;
}

/* The files of a sample; -1: there is none. */
typedef struct sample_files {
    int64_t image, number, object, end;
} sample_files;

static sample_files find_files(const att_archive *archive, int64_t begin)
{
    sample_files found = {-1, -1, -1, begin};
    const char *key = NULL;
    for (; found.end < att_archive_count(archive); found.end++) {
        const char *name = att_archive_name(archive, found.end), *kind = kind_of(name);
        if (att_path_is_hidden(name))
            continue;
        if (!key)
            key = name;
        if (!has_key(name, key, key_length(key)))
            break;
        if (found.image < 0 && is_image(name))
            found.image = found.end;
        else if (strcasecmp(kind, "cls") == 0)
            found.number = found.end;
        else if (strcasecmp(kind, "json") == 0)
            found.object = found.end;
    }
    return found;
}

att_status att_shard_sample_read(const att_archive *archive, att_context *context, int64_t begin,
                                 att_shard_sample *sample)
{
    sample_files found = find_files(archive, begin);
    *sample = (att_shard_sample){.image = found.image, .label = -1, .end = found.end};
    if (found.image < 0)
        return ATT_OK;
    if (found.number >= 0)
        return read_label(archive, context, found.number, false, &sample->label);
    return found.object >= 0 ? read_label(archive, context, found.object, true, &sample->label) : ATT_OK;
}
