#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/yaml.h"

struct writer {
    att_context *context;
    yaml_emitter_t emitter;
    att_text out;
};

static int append_output(void *user, unsigned char *bytes, size_t size)
{
    struct writer *writer = user;
    att_text_append_bytes(&writer->out, bytes, size);
    return !writer->out.failed;
}

/* Emits an event, of which the emitter takes ownership. initialised: whether initialising the event succeeded. */
static att_status emit(struct writer *writer, yaml_event_t *event, int initialised)
{
    if (initialised && yaml_emitter_emit(&writer->emitter, event))
        return ATT_OK;
    return att_fail_memory(writer->context, writer->out.length, "a YAML document");
}

/* Returns whether a YAML reader could parse the unquoted text as null, a number, a date or a boolean. Also returns true
 * if the text does not begin with a letter, '/' or '_'. */
static bool is_ambiguous(const char *text)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    bool letter = (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z');
    return !letter && text[0] != '/' && text[0] != '_';
}

static att_status emit_scalar(struct writer *writer, const char *text, bool quoted)
{
    if (!att_utf8_valid(text))
        return att_fail(writer->context, ATT_ERR_ARGUMENT, "\"%s\" is not UTF-8 and cannot be written as YAML", text);
    yaml_event_t event;
    yaml_scalar_style_t style = quoted ? YAML_SINGLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;
    return emit(
        writer, &event,
        yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), 1, 1, style));
}

static att_status emit_value(struct writer *writer, const att_yaml_entry *entry, int index)
{
    const char *value = entry->values[index];
    return emit_scalar(writer, value, entry->text ? is_ambiguous(value) : att_yaml_is_null(value));
}

static att_status emit_entry(struct writer *writer, const att_yaml_entry *entry)
{
    ATT_TRY(emit_scalar(writer, entry->key, is_ambiguous(entry->key)));
    if (entry->kind == ATT_YAML_NULL)
        return emit_scalar(writer, "null", false);
    if (entry->kind == ATT_YAML_SCALAR)
        return emit_value(writer, entry, 0);
    yaml_event_t event;
    ATT_TRY(
        emit(writer, &event, yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE)));
    for (int i = 0; i < entry->value_count; i++)
        ATT_TRY(emit_value(writer, entry, i));
    return emit(writer, &event, yaml_sequence_end_event_initialize(&event));
}

static att_status emit_document(struct writer *writer, const att_yaml_entry *entries, int count)
{
    yaml_event_t event;
    ATT_TRY(emit(writer, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING)));
    ATT_TRY(emit(writer, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1)));
    ATT_TRY(emit(writer, &event, yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE)));
    for (int i = 0; i < count; i++)
        ATT_TRY(emit_entry(writer, &entries[i]));
    ATT_TRY(emit(writer, &event, yaml_mapping_end_event_initialize(&event)));
    ATT_TRY(emit(writer, &event, yaml_document_end_event_initialize(&event, 1)));
    return emit(writer, &event, yaml_stream_end_event_initialize(&event));
}

att_status att_yaml_write(att_context *context, const char *path, const att_yaml_entry *entries, int count)
{
    ATT_TRY(att_require(context, path, "the path of a YAML file"));
    struct writer writer = {.context = context, .out = {.context = context}};
    att_status status;
    if (yaml_emitter_initialize(&writer.emitter)) {
        yaml_emitter_set_output(&writer.emitter, append_output, &writer);
        yaml_emitter_set_unicode(&writer.emitter, 1);
        yaml_emitter_set_width(&writer.emitter, -1);
        status = emit_document(&writer, entries, count);
    } else {
        status = att_fail_memory(context, sizeof(writer.emitter), "a YAML document");
    }
    yaml_emitter_delete(&writer.emitter);
    if (status == ATT_OK)
        status = att_file_replace(context, path, writer.out.data, writer.out.length);
    att_text_free(&writer.out);
    return status;
}
