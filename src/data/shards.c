#include "data/shards.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/json.h"
#include "data/class_tree.h"
#include "data/tar_index.h"

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

bool att_shard_is_class_name(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == '/')
            return false;
    return *text && *text != '.' && strlen(text) <= ATT_SHARD_MOST_NAME;
}

/* Keeps the begin of a label that is no class, on one line. */
static void set_no_class(att_shard_sample *sample, const char *text)
{
    enum { MOST = 60 };
    char *to = sample->class_name;
    const char *end = text + strnlen(text, MOST);
    sample->state = ATT_LABEL_NO_CLASS;
    for (const char *at = text; at < end; at++) {
        if (*at == '\n')
            *to++ = '\\';
        *to++ = *at == '\n' ? 'n' : (char)((unsigned char)*at < ' ' ? ' ' : *at);
    }
    strcpy(to, *end ? "..." : "");
}

/* Whether the text is a number in any notation, such as "3.0". */
static bool is_number(const char *text)
{
    double number;
    return text[strspn(text, "+-.0123456789eE")] == '\0' && att_text_to_f64(text, &number);
}

static void parse_label(const char *text, att_shard_sample *sample)
{
    char label[MAX_LABEL_FILE + 1];
    int64_t number;
    text += att_text_bom_size(text);
    text += strspn(text, " \t\r\n");
    size_t length = strnlen(text, MAX_LABEL_FILE);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        length--;
    if (length == 0)
        return;
    memcpy(label, text, length);
    label[length] = '\0';
    sample->state = ATT_LABEL_READ;
    if (att_text_to_i64(label, &number) && number >= 0 && number <= ATT_TAR_MOST_LABEL)
        sample->label = (int32_t)number;
    else if (!is_number(label) && att_shard_is_class_name(label))
        memcpy(sample->class_name, label, length + 1);
    else
        set_no_class(sample, label);
}

/* member: NULL if the object has no label. */
static att_status parse_member(att_context *context, const char *path, const json_t *member, att_shard_sample *sample)
{
    sample->labelled |= json_is_integer(member) || json_is_string(member);
    if (!member || json_is_null(member))
        return ATT_OK;
    if (json_is_string(member)) {
        parse_label(json_string_value(member), sample);
        return ATT_OK;
    }
    char *text = json_dumps(member, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!text)
        return att_fail_memory(context, 1, path);
    if (json_is_integer(member))
        parse_label(text, sample);
    else
        set_no_class(sample, text);
    free(text);
    return ATT_OK;
}

static att_status parse_json(att_context *context, const char *path, const char *text, size_t size,
                             att_shard_sample *sample)
{
    json_t *root;
    att_status status = att_json_parse_unique(context, path, text, size, &root);
    if (is_bad_file(status))
        set_no_class(sample, text);
    if (status != ATT_OK)
        return is_bad_file(status) ? ATT_OK : status;
    const json_t *member = json_object_get(root, "label");
    if (member)
        status = parse_member(context, path, member, sample);
    else if (json_object_size(root) > 0 || !json_is_object(root))
        set_no_class(sample, text);
    json_decref(root);
    return status;
}

/* Reads the label in a cls or json file. Leaves the sample unchanged if there is none. */
static att_status read_label(const att_archive *archive, att_context *context, int64_t file, bool is_json,
                             att_shard_sample *sample)
{
    size_t size = att_archive_size(archive, file);
    const char *name = att_archive_name(archive, file);
    if (size > (is_json ? MAX_JSON : MAX_LABEL_FILE)) {
        set_no_class(sample, "a file that is too long");
        return ATT_OK;
    }
    char *text = att_allocate(context, size + 1);
    if (!text)
        return att_fail_memory(context, size + 1, name);
    att_status status = att_archive_read(archive, context, file, text);
    if (status == ATT_OK && is_json)
        status = parse_json(context, name, text, size, sample);
    else if (status == ATT_OK && strlen(text) == size)
        parse_label(text, sample);
    else
        set_no_class(sample, status == ATT_OK ? "a file with zero bytes" : "a file that cannot be read");
    att_free(context, text);
    return is_bad_file(status) ? ATT_OK : status;
}

/* The files of a sample that hold its label; -1: there is none. */
typedef struct label_files {
    int64_t number, object;
    bool repeated; /* a file of the sample is there twice */
} label_files;

static bool is_plain_file(const att_archive *archive, int64_t file)
{
    return file >= 0 && has_plain_kind(att_archive_name(archive, file));
}

static bool has_kind_of(const att_archive *archive, int64_t file, const char *name)
{
    return file >= 0 && strcasecmp(kind_of(att_archive_name(archive, file)), kind_of(name)) == 0;
}

static void sort_in(const att_archive *archive, int64_t file, att_shard_sample *sample, label_files *found)
{
    const char *name = att_archive_name(archive, file);
    bool plain = has_plain_kind(name);
    if (att_class_tree_is_image(name)) {
        found->repeated |= plain && has_kind_of(archive, sample->image, name);
        if (plain && sample->image < 0)
            sample->image = file;
        else if (sample->others++ == 0)
            sample->other = file;
        return;
    }
    sample->others_beside = true;
    if (ends_in(name, "cls")) {
        sample->labelled = true;
        found->repeated |= plain && found->number >= 0;
        found->number = plain ? file : found->number;
    } else if (ends_in(name, "json")) {
        found->repeated |= plain && is_plain_file(archive, found->object);
        found->object = plain || found->object < 0 ? file : found->object;
    }
}

static label_files find_files(const att_archive *archive, att_shard_sample *sample)
{
    label_files found = {-1, -1, false};
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
        sort_in(archive, sample->end, sample, &found);
    }
    return found;
}

/* Combines the label of the cls file, which the sample has, with that of the json file. */
static void add_object(att_shard_sample *sample, const att_shard_sample *object)
{
    sample->labelled |= object->labelled;
    if (sample->state == ATT_LABEL_MISSING) {
        sample->state = object->state;
        sample->label = object->label;
        memcpy(sample->class_name, object->class_name, sizeof sample->class_name);
        return;
    }
    bool both = sample->state == ATT_LABEL_READ && object->state == ATT_LABEL_READ;
    bool same_sort = !*sample->class_name == !*object->class_name;
    bool same = sample->label == object->label && strcmp(sample->class_name, object->class_name) == 0;
    if (both && same_sort && !same)
        sample->state = ATT_LABEL_TWO;
}

static const att_shard_sample no_sample = {.image = -1, .other = -1, .label = -1, .state = ATT_LABEL_MISSING};

att_status att_shard_sample_read(const att_archive *archive, att_context *context, int64_t begin,
                                 att_shard_sample *sample)
{
    *sample = no_sample;
    sample->begin = sample->end = begin;
    label_files found = find_files(archive, sample);
    if (found.number >= 0)
        ATT_TRY(read_label(archive, context, found.number, false, sample));
    if (found.object >= 0 && (is_plain_file(archive, found.object) || sample->image < 0)) {
        att_shard_sample object = no_sample;
        ATT_TRY(read_label(archive, context, found.object, true, &object));
        add_object(sample, &object);
    }
    if (found.repeated)
        sample->state = ATT_LABEL_REPEATED;
    return ATT_OK;
}
