#include "base/io/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

/* Upper bounds of the memory that jansson 2.14 uses: of an object with one member; of an array with one element; of
 * each further member or element; in addition, of each key, not counting the bytes of its text. */
enum { OBJECT_BYTES = 256, ARRAY_BYTES = 160, ELEMENT_BYTES = 64, KEY_BYTES = 128 };

/* Fails if the document is nested too deeply or would need too much memory. jansson itself allows 2048 levels, which
 * can overflow the stack of a thread. */
static att_status check_size(att_context *context, const char *what, const char *bytes, size_t size)
{
    bool in_string = false;
    int depth = 0;
    size_t memory = size;
    for (size_t i = 0; i < size; i++) {
        char byte = bytes[i];
        if (in_string) {
            i += byte == '\\';
            in_string = byte != '"';
            continue;
        }
        in_string = byte == '"';
        bool opens = byte == '[' || byte == '{';
        depth += opens ? 1 : byte == ']' || byte == '}' ? -1 : 0;
        memory += byte == '{' ? OBJECT_BYTES : byte == '[' ? ARRAY_BYTES : byte == ',' ? ELEMENT_BYTES : 0;
        memory += byte == ':' ? KEY_BYTES : 0;
        if (opens && depth > ATT_JSON_MAX_DEPTH)
            return att_fail(context, ATT_ERR_FORMAT, "%s: JSON nested more than %d levels deep at byte %zu", what,
                            (int)ATT_JSON_MAX_DEPTH, i);
        if (memory > ATT_JSON_MAX_MEMORY)
            return att_fail(context, ATT_ERR_FORMAT,
                            "%s: JSON that would need more than the limit of %d bytes of memory", what,
                            (int)ATT_JSON_MAX_MEMORY);
    }
    return ATT_OK;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static size_t skip_blanks(const char *bytes, size_t at, size_t size)
{
    while (at < size && is_blank(bytes[at]))
        at++;
    return at;
}

static att_status load(att_context *context, const char *what, const char *bytes, size_t size, size_t flags,
                       json_t **root)
{
    json_error_t error;
    json_t *parsed = json_loadb(bytes, size, flags, &error);
    if (parsed == NULL) {
        if (json_error_code(&error) == json_error_out_of_memory)
            return att_fail_memory(context, size, what);
        if (memchr(bytes, '\n', size) == NULL)
            return att_fail(context, ATT_ERR_FORMAT, "%s: not valid JSON at column %d: %s", what, error.column,
                            error.text);
        return att_fail(context, ATT_ERR_FORMAT, "%s: not valid JSON at line %d, column %d: %s", what, error.line,
                        error.column, error.text);
    }
    *root = parsed;
    return ATT_OK;
}

static att_status parse(att_context *context, const char *what, const char *bytes, size_t size, size_t flags,
                        json_t **root)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* UTF-8 byte order mark */
    if (size >= sizeof mark - 1 && memcmp(bytes, mark, sizeof mark - 1) == 0) {
        bytes += sizeof mark - 1;
        size -= sizeof mark - 1;
    }
    ATT_TRY(check_size(context, what, bytes, size));
    size_t begin = skip_blanks(bytes, 0, size);
    if (begin == size)
        return att_fail(context, ATT_ERR_FORMAT, "%s: not valid JSON: it is empty", what);
    if (bytes[begin] != '{' && bytes[begin] != '[')
        return att_fail(context, ATT_ERR_FORMAT, "%s: not valid JSON: expected an object in {} or an array in []",
                        what);
    return load(context, what, bytes, size, flags, root);
}

att_status att_json_parse(att_context *context, const char *what, const char *bytes, size_t size, json_t **root)
{
    return parse(context, what, bytes, size, 0, root);
}

att_status att_json_parse_unique(att_context *context, const char *what, const char *bytes, size_t size, json_t **root)
{
    return parse(context, what, bytes, size, JSON_REJECT_DUPLICATES, root);
}

att_status att_json_parse_reals(att_context *context, const char *what, const char *bytes, size_t size, json_t **root)
{
    return parse(context, what, bytes, size, JSON_DECODE_INT_AS_REAL, root);
}

/* --- members ------------------------------------------------------------------------------------------------------ */

/* Returns the offset after the closing quote of the string that begins at `at`, or `size` if there is none. */
static size_t skip_string(const char *text, size_t at, size_t size)
{
    for (at++; at < size && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at < size ? at + 1 : size;
}

/* Returns the end of the value that begins at `at`: the next comma, colon or closing bracket outside nested brackets
 * and strings. */
static size_t skip_value(const char *text, size_t at, size_t size)
{
    for (size_t depth = 0; at < size;) {
        char byte = text[at];
        bool closes = byte == '}' || byte == ']';
        if (depth == 0 && (closes || byte == ',' || byte == ':'))
            break;
        depth += byte == '{' || byte == '[' ? 1 : 0;
        depth -= closes ? 1 : 0;
        at = byte == '"' ? skip_string(text, at, size) : at + 1;
    }
    return at;
}

/* Decodes a JSON string of `size` bytes, including its quotes, in place. The result begins at text + 1 and is never
 * longer than the source. */
static att_status decode(const att_json_members *members, char *text, size_t size)
{
    bool plain = size >= 2 && text[0] == '"' && text[size - 1] == '"';
    for (size_t i = 1; i + 1 < size && plain; i++)
        plain = text[i] >= ' ' && text[i] <= '~' && text[i] != '"' && text[i] != '\\';
    if (plain) {
        text[size - 1] = '\0';
        return ATT_OK;
    }
    json_t *string = NULL;
    ATT_TRY(load(members->context, members->what, text, size, JSON_DECODE_ANY, &string));
    att_status status = ATT_OK;
    if (json_is_string(string))
        memcpy(text + 1, json_string_value(string), json_string_length(string) + 1);
    else
        status = att_fail(members->context, ATT_ERR_FORMAT, "%s: not valid JSON: a string was expected", members->what);
    json_decref(string);
    return status;
}

static att_status refuse_member(const att_json_members *members, const char *expected)
{
    return att_fail(members->context, ATT_ERR_FORMAT, "%s: not valid JSON at byte %zu: %s was expected", members->what,
                    members->at, expected);
}

/* Skips blanks, then skips `byte` if it follows. Returns whether it did. */
static bool skip_byte(att_json_members *members, char byte)
{
    members->at = skip_blanks(members->text, members->at, members->size);
    bool found = members->at < members->size && members->text[members->at] == byte;
    members->at += found;
    return found;
}

/* Called after the end of the object: checks that only blanks follow. */
static att_status finish(att_json_members *members, att_json_member *member)
{
    member->key = NULL;
    members->at = skip_blanks(members->text, members->at, members->size);
    return members->at == members->size ? ATT_OK : refuse_member(members, "the end of the text");
}

/* Like att_json_members_next(), but does not decode the key: member->key is *key_size bytes, including the quotes. */
static att_status find_member(att_json_members *members, att_json_member *member, size_t *key_size)
{
    bool first = !members->begun;
    if (first && !skip_byte(members, '{'))
        return refuse_member(members, "'{'");
    members->begun = true;
    if (skip_byte(members, '}'))
        return finish(members, member);
    if (!first && !skip_byte(members, ','))
        return refuse_member(members, "',' or '}'");
    members->at = skip_blanks(members->text, members->at, members->size);
    if (members->at == members->size || members->text[members->at] != '"')
        return refuse_member(members, "a key in quotes");
    size_t key = members->at, key_end = skip_string(members->text, key, members->size);
    members->at = key_end;
    if (!skip_byte(members, ':'))
        return refuse_member(members, "':'");
    size_t value = skip_blanks(members->text, members->at, members->size);
    members->at = skip_value(members->text, value, members->size);
    if (members->at == value)
        return refuse_member(members, "a value");
    *member = (att_json_member){members->text + key, members->text + value, members->at - value};
    *key_size = key_end - key;
    return ATT_OK;
}

size_t att_json_members_count(att_json_members members)
{
    att_json_member member;
    size_t count = 0, key_size;
    while (find_member(&members, &member, &key_size) == ATT_OK && member.key)
        count++;
    return count;
}

att_status att_json_members_next(att_json_members *members, att_json_member *member)
{
    size_t key_size;
    ATT_TRY(find_member(members, member, &key_size));
    return member->key ? decode(members, member->key++, key_size) : ATT_OK;
}

att_status att_json_member_string(const att_json_members *members, const att_json_member *member, char **string)
{
    *string = member->value + 1;
    size_t size = member->size;
    while (is_blank(member->value[size - 1]))
        size--;
    return decode(members, member->value, size);
}

/* --- numbers and texts -------------------------------------------------------------------------------------------- */

/* The range of the second byte depends on the first byte (Unicode Standard, table 3-7). */
