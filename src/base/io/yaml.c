#include "base/io/yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"

enum { MAX_BYTES = 1 << 20, MAX_ENTRIES = 4096 };

/* An entry's values are values[first .. first + count - 1]. */
struct entry {
    const char *key;
    att_yaml_kind kind;
    int first, count, line;
    bool text;
};

struct att_yaml {
    att_context *context;
    att_arena arena;
    struct entry *entries;
    const char **values;
    int entry_count, entry_capacity, value_count, value_capacity;
};

struct reader {
    att_yaml *yaml;
    const char *what;
    yaml_parser_t parser;
    yaml_event_t event; /* the current event */
};

bool att_yaml_is_null(const char *text)
{
    return text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 ||
           strcmp(text, "NULL") == 0;
}

static int line_of(const struct reader *reader)
{
    return (int)reader->event.start_mark.line + 1;
}

static att_status refuse(const struct reader *reader, const char *reason)
{
    return att_fail(reader->yaml->context, ATT_ERR_FORMAT, "%s, line %d: %s", reader->what, line_of(reader), reason);
}

static att_status fail_parser(const struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return att_fail_memory(reader->yaml->context, MAX_BYTES, reader->what);
    return att_fail(reader->yaml->context, ATT_ERR_FORMAT, "%s, line %zu: not valid YAML: %s", reader->what,
                    parser->problem_mark.line + 1, parser->problem != NULL ? parser->problem : "unknown problem");
}

static att_status refuse_decoration(const struct reader *reader, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor != NULL)
        return refuse(reader, "anchors (&name) are not supported");
    if (tag != NULL)
        return refuse(reader, "tags (!name) are not supported");
    return ATT_OK;
}

/* Moves to the next event. */
static att_status next(struct reader *reader)
{
    yaml_event_delete(&reader->event);
    if (!yaml_parser_parse(&reader->parser, &reader->event))
        return fail_parser(reader);
    const yaml_event_t *event = &reader->event;
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return refuse(reader, "aliases (*name) are not supported");
    case YAML_SCALAR_EVENT:
        return refuse_decoration(reader, event->data.scalar.anchor, event->data.scalar.tag);
    case YAML_SEQUENCE_START_EVENT:
        return refuse_decoration(reader, event->data.sequence_start.anchor, event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return refuse_decoration(reader, event->data.mapping_start.anchor, event->data.mapping_start.tag);
    default:
        return ATT_OK;
    }
}

/* Makes room for one more element. */
static att_status grow(att_context *context, void **array, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return ATT_OK;
    int grown = *capacity == 0 ? 64 : *capacity * 2;
    void *block = att_reallocate(context, *array, (size_t)grown * size);
    if (block == NULL)
        return att_fail_memory(context, (size_t)grown * size, "the entries of a YAML file");
    *array = block;
    *capacity = grown;
    return ATT_OK;
}

static att_status copy_scalar(const struct reader *reader, char **copy)
{
    const char *value = (const char *)reader->event.data.scalar.value;
    if (strlen(value) != reader->event.data.scalar.length)
        return refuse(reader, "a NUL character inside a value");
    *copy = att_arena_string(&reader->yaml->arena, value);
    return *copy != NULL ? ATT_OK : att_fail_memory(reader->yaml->context, strlen(value), reader->what);
}

static bool is_quoted(const struct reader *reader)
{
    return reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
}

static att_status add_value(struct reader *reader, struct entry *entry)
{
    att_yaml *yaml = reader->yaml;
    char *value = NULL;
    ATT_TRY(copy_scalar(reader, &value));
    void *array = (void *)yaml->values;
    ATT_TRY(grow(yaml->context, &array, yaml->value_count, &yaml->value_capacity, sizeof(*yaml->values)));
    yaml->values = array;
    yaml->values[yaml->value_count++] = value;
    entry->text = is_quoted(reader);
    entry->count++;
    return ATT_OK;
}

static att_status read_list(struct reader *reader, struct entry *entry)
{
    entry->kind = ATT_YAML_LIST;
    for (;;) {
        ATT_TRY(next(reader));
        if (reader->event.type == YAML_SEQUENCE_END_EVENT)
            return ATT_OK;
        if (reader->event.type != YAML_SCALAR_EVENT)
            return refuse(reader, "a list may contain only plain values");
        if (!is_quoted(reader) && att_yaml_is_null((const char *)reader->event.data.scalar.value))
            return refuse(reader, "an empty value in a list");
        ATT_TRY(add_value(reader, entry));
    }
}

/* Reads the value at the current event, which is a scalar or the start of a list. */
static att_status read_value(struct reader *reader, struct entry *entry)
{
    if (reader->event.type == YAML_SEQUENCE_START_EVENT)
        return read_list(reader, entry);
    if (!is_quoted(reader) && att_yaml_is_null((const char *)reader->event.data.scalar.value))
        return ATT_OK;
    entry->kind = ATT_YAML_SCALAR;
    return add_value(reader, entry);
}

static bool same_key(const char *a, const char *b)
{
    while (*a && (*a == *b || (*a == '_' && *b == '-') || (*a == '-' && *b == '_')))
        a++, b++;
    return !*a && !*b;
}

/* Makes the key "outer.key", or the key alone if outer is NULL. */
static att_status copy_key(const struct reader *reader, const char *outer, char **key)
{
    ATT_TRY(copy_scalar(reader, key));
    if (!outer)
        return ATT_OK;
    size_t size = strlen(outer) + strlen(*key) + 2;
    char *nested = att_arena_allocate(&reader->yaml->arena, size);
    if (!nested)
        return att_fail_memory(reader->yaml->context, size, reader->what);
    snprintf(nested, size, "%s.%s", outer, *key);
    *key = nested;
    return ATT_OK;
}

static att_status read_key(struct reader *reader, const char *outer, struct entry *entry)
{
    if (reader->event.type != YAML_SCALAR_EVENT)
        return refuse(reader, "a key must be a plain name");
    char *key = NULL;
    ATT_TRY(copy_key(reader, outer, &key));
    const att_yaml *yaml = reader->yaml;
    for (int i = 0; i < yaml->entry_count; i++)
        if (same_key(yaml->entries[i].key, key))
            return att_fail(yaml->context, ATT_ERR_FORMAT, "%s, line %d: %s was given in line %d already", reader->what,
                            line_of(reader), key, yaml->entries[i].line);
    entry->key = key;
    entry->line = line_of(reader);
    return ATT_OK;
}

static att_status add_entry(struct reader *reader, const struct entry *entry)
{
    att_yaml *yaml = reader->yaml;
    void *array = yaml->entries;
    if (yaml->entry_count == MAX_ENTRIES)
        return refuse(reader, "more than 4096 keys");
    ATT_TRY(grow(yaml->context, &array, yaml->entry_count, &yaml->entry_capacity, sizeof(*yaml->entries)));
    yaml->entries = array;
    yaml->entries[yaml->entry_count++] = *entry;
    return ATT_OK;
}

static att_status skip_empty_mapping(struct reader *reader)
{
    ATT_TRY(next(reader));
    if (reader->event.type == YAML_MAPPING_END_EVENT)
        return ATT_OK;
    return refuse(reader, "`key: value` lines nested twice are not supported; expected one value or a list");
}

/* Reads a mapping. Before the call, the current event is the mapping's start; after the call, its end. outer: the key
 * whose value the mapping is; NULL: the mapping is the whole document. */
static att_status read_entries(struct reader *reader, const char *outer)
{
    for (;;) {
        ATT_TRY(next(reader));
        if (reader->event.type == YAML_MAPPING_END_EVENT)
            return ATT_OK;
        struct entry entry = {.kind = ATT_YAML_NULL, .first = reader->yaml->value_count};
        int before = reader->yaml->entry_count;
        ATT_TRY(read_key(reader, outer, &entry));
        ATT_TRY(next(reader));
        bool nested = reader->event.type == YAML_MAPPING_START_EVENT;
        if (nested && outer)
            ATT_TRY(skip_empty_mapping(reader));
        else
            ATT_TRY(nested ? read_entries(reader, entry.key) : read_value(reader, &entry));
        if (!nested || reader->yaml->entry_count == before)
            ATT_TRY(add_entry(reader, &entry));
    }
}

static att_status read_stream(struct reader *reader)
{
    ATT_TRY(next(reader)); /* stream start */
    ATT_TRY(next(reader));
    if (reader->event.type == YAML_STREAM_END_EVENT)
        return ATT_OK;
    ATT_TRY(next(reader)); /* start of the document's content */
    if (reader->event.type == YAML_MAPPING_START_EVENT)
        ATT_TRY(read_entries(reader, NULL));
    else if (reader->event.type != YAML_SCALAR_EVENT || reader->event.data.scalar.length > 0)
        return refuse(reader, "expected lines of `key: value`");
    ATT_TRY(next(reader)); /* document end */
    ATT_TRY(next(reader));
    if (reader->event.type != YAML_STREAM_END_EVENT)
        return refuse(reader, "a second document; expected one");
    return ATT_OK;
}

att_status att_yaml_parse(att_context *context, const char *what, const char *bytes, size_t size, att_yaml **yaml)
{
    if (size > MAX_BYTES)
        return att_fail(context, ATT_ERR_FORMAT, "%s: %zu bytes; a file of options may have at most %d", what, size,
                        MAX_BYTES);
    att_yaml *parsed;
    ATT_TRY(att_new(context, &parsed, 1, what));
    parsed->context = parsed->arena.context = context;
    struct reader reader = {.yaml = parsed, .what = what};
    att_status status;
    const size_t mark = size >= 3 ? att_text_bom_size(bytes) : 0;
    if (yaml_parser_initialize(&reader.parser)) {
        yaml_parser_set_input_string(&reader.parser, (const unsigned char *)bytes + mark, size - mark);
        yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
        status = read_stream(&reader);
    } else {
        status = att_fail_memory(context, size, what);
    }
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    if (status != ATT_OK)
        att_yaml_destroy(&parsed);
    else
        *yaml = parsed;
    return status;
}

att_status att_yaml_read(att_context *context, const char *path, att_yaml **yaml)
{
    char *bytes = NULL;
    size_t size = 0;
    ATT_TRY(att_file_read(context, path, MAX_BYTES, &bytes, &size));
    att_status status = att_yaml_parse(context, path, bytes, size, yaml);
    att_free(context, bytes);
    return status;
}

void att_yaml_destroy(att_yaml **yaml)
{
    if (yaml == NULL || *yaml == NULL)
        return;
    att_yaml *done = *yaml;
    att_arena_free(&done->arena);
    att_free(done->context, done->entries);
    att_free(done->context, (void *)done->values);
    att_free(done->context, done);
    *yaml = NULL;
}

int att_yaml_count(const att_yaml *yaml)
{
    return yaml->entry_count;
}

att_yaml_entry att_yaml_at(const att_yaml *yaml, int index)
{
    const struct entry *entry = &yaml->entries[index];
    return (att_yaml_entry){.key = entry->key,
                            .kind = entry->kind,
                            .values = entry->count > 0 ? yaml->values + entry->first : NULL,
                            .value_count = entry->count,
                            .text = entry->text,
                            .line = entry->line};
}
