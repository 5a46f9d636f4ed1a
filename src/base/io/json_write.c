#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/json.h"

enum { MAX_LEVELS = 32 };

/* Bit i of `objects` is set if level i + 1 is an object (else an array); bit i of `filled`, if that level has a member.
 * keyed: a key was written and its value is missing. complete: the document is complete. misused: calls came in a wrong
 * order. delivered: att_json_writer_finish() was called, so the next call starts a new document. */
struct att_json_writer {
    att_context *context;
    att_text text;
    bool indented, keyed, complete, misused, delivered;
    int depth;
    uint32_t objects, filled;
};

att_status att_json_writer_create(att_context *context, bool indented, att_json_writer **writer)
{
    att_json_writer *created;
    ATT_TRY(att_new(context, &created, 1, "a JSON writer"));
    created->context = context;
    created->text.context = context;
    created->indented = indented;
    *writer = created;
    return ATT_OK;
}

void att_json_writer_destroy(att_json_writer **writer)
{
    if (writer == NULL || *writer == NULL)
        return;
    att_text_free(&(*writer)->text);
    att_free((*writer)->context, *writer);
    *writer = NULL;
}

static void restart(att_json_writer *writer)
{
    writer->text.length = 0;
    writer->text.failed = false;
    writer->keyed = writer->complete = writer->misused = writer->delivered = false;
    writer->depth = 0;
    writer->objects = writer->filled = 0;
}

static uint32_t level_bit(const att_json_writer *writer)
{
    return (uint32_t)1 << (writer->depth - 1);
}

static bool in_object(const att_json_writer *writer)
{
    return writer->depth > 0 && (writer->objects & level_bit(writer)) != 0;
}

static void new_line(att_json_writer *writer)
{
    if (writer->indented)
        att_text_append(&writer->text, "\n%*s", 2 * writer->depth, "");
}

static void separate(att_json_writer *writer)
{
    if (writer->depth == 0)
        return;
    if ((writer->filled & level_bit(writer)) != 0)
        att_text_append_bytes(&writer->text, ",", 1);
    writer->filled |= level_bit(writer);
    new_line(writer);
}

/* Writes the separator in front of a value. Returns false if no value is allowed here. */
static bool begin_value(att_json_writer *writer)
{
    if (writer->delivered)
        restart(writer);
    if (writer->complete || (in_object(writer) && !writer->keyed))
        writer->misused = true;
    if (writer->misused)
        return false;
    if (!in_object(writer))
        separate(writer);
    writer->keyed = false;
    writer->complete = writer->depth == 0;
    return true;
}

static void begin_level(att_json_writer *writer, const char *bracket, bool object)
{
    if (!begin_value(writer))
        return;
    if (writer->depth == MAX_LEVELS) {
        writer->misused = true;
        return;
    }
    att_text_append_bytes(&writer->text, bracket, 1);
    writer->complete = false;
    writer->depth++;
    writer->filled &= ~level_bit(writer);
    writer->objects &= ~level_bit(writer);
    writer->objects |= object ? level_bit(writer) : 0;
}

static void end_level(att_json_writer *writer, const char *bracket, bool object)
{
    if (writer->delivered)
        restart(writer);
    if (writer->depth == 0 || in_object(writer) != object || writer->keyed)
        writer->misused = true;
    if (writer->misused)
        return;
    bool filled = (writer->filled & level_bit(writer)) != 0;
    writer->depth--;
    if (filled)
        new_line(writer);
    att_text_append_bytes(&writer->text, bracket, 1);
    writer->complete = writer->depth == 0;
}

void att_json_begin_object(att_json_writer *writer)
{
    begin_level(writer, "{", true);
}

void att_json_end_object(att_json_writer *writer)
{
    end_level(writer, "}", true);
}

void att_json_begin_array(att_json_writer *writer)
{
    begin_level(writer, "[", false);
}

void att_json_end_array(att_json_writer *writer)
{
    end_level(writer, "]", false);
}

static void write_escaped(att_text *out, uint32_t code)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = code < 0x80 ? strchr(plain, (char)code) : NULL;
    if (found != NULL)
        att_text_append(out, "\\%c", letters[found - plain]);
    else if (code < 0x10000)
        att_text_append(out, "\\u%04x", (unsigned)code);
    else
        att_text_append(out, "\\u%04x\\u%04x", 0xD800 + ((unsigned)code - 0x10000) / 0x400,
                        0xDC00 + (unsigned)code % 0x400);
}

/* Characters that could control a terminal are escaped, because the document may be printed on one. */
static bool is_escaped(uint32_t code)
{
    return code == '"' || code == '\\' || !att_code_is_printable(code);
}

static void write_quoted(att_text *out, const char *text)
{
    att_text_append_bytes(out, "\"", 1);
    while (*text != '\0') {
        uint32_t code;
        size_t run = 0, length;
        while ((length = att_utf8_decode(text + run, &code)) > 0 && !is_escaped(code))
            run += length;
        att_text_append_bytes(out, text, run);
        text += run;
        if (*text == '\0')
            break;
        if (length == 0)
            att_text_append(out, "\xEF\xBF\xBD");
        else
            write_escaped(out, code);
        text += length > 0 ? length : 1;
    }
    att_text_append_bytes(out, "\"", 1);
}

void att_json_key(att_json_writer *writer, const char *key)
{
    if (writer->delivered)
        restart(writer);
    if (!in_object(writer) || writer->keyed)
        writer->misused = true;
    if (writer->misused)
        return;
    separate(writer);
    write_quoted(&writer->text, key);
    att_text_append(&writer->text, writer->indented ? ": " : ":");
    writer->keyed = true;
}

void att_json_string(att_json_writer *writer, const char *text)
{
    if (!begin_value(writer))
        return;
    if (text == NULL)
        att_text_append(&writer->text, "null");
    else
        write_quoted(&writer->text, text);
}

void att_json_number(att_json_writer *writer, double value)
{
    char text[ATT_NUMBER_TEXT];
    if (begin_value(writer))
        att_text_append(&writer->text, "%s", isfinite(value) ? att_format_number(value, text) : "null");
}

void att_json_float(att_json_writer *writer, double value)
{
    char text[ATT_NUMBER_TEXT];
    att_json_number(writer, value);
    if (isfinite(value) && !writer->misused && !strpbrk(att_format_number(value, text), ".e"))
        att_text_append(&writer->text, ".0");
}

void att_json_integer(att_json_writer *writer, int64_t value)
{
    if (begin_value(writer))
        att_text_append(&writer->text, "%" PRId64, value);
}

void att_json_bool(att_json_writer *writer, bool value)
{
    if (begin_value(writer))
        att_text_append(&writer->text, "%s", value ? "true" : "false");
}

att_status att_json_writer_finish(att_json_writer *writer, const char **text, size_t *length)
{
    bool finished = writer->complete && !writer->misused && !writer->delivered;
    writer->delivered = true;
    if (!finished)
        return att_fail(writer->context, ATT_ERR_ARGUMENT, "the calls to the JSON writer did not make one document");
    if (writer->text.failed)
        return att_fail_memory(writer->context, writer->text.length, "a JSON document");
    *text = writer->text.data;
    *length = writer->text.length;
    return ATT_OK;
}
