/* Reads the elements of arrays in a JSON file one at a time. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "base/io/json.h"

enum { MOST_OF_ELEMENT = 64 << 20, CHUNK = 1 << 18 };

typedef struct scan {
    att_context *context;
    const char *path;
    att_file_window window;
    uint64_t at;
} scan;

static att_status refuse(const scan *s, const char *expected)
{
    return att_fail(s->context, ATT_ERR_FORMAT, "%s: not valid JSON at byte %llu: %s was expected", s->path,
                    (unsigned long long)s->at, expected);
}

static att_status fail_truncated(const scan *s)
{
    return att_fail(s->context, ATT_ERR_FORMAT,
                    "%s ends in the middle, at byte %llu: brackets or quotes are not closed; is it truncated?", s->path,
                    (unsigned long long)s->at);
}

/* Skips blanks. *byte: what follows, which is not skipped; 0 at the end of the file. */
static att_status peek(scan *s, char *byte)
{
    const uint8_t *bytes;
    size_t size, i;
    do {
        ATT_TRY(att_file_window_peek(&s->window, s->at, 1, &bytes, &size));
        for (i = 0; i < size && (bytes[i] == ' ' || bytes[i] == '\n' || bytes[i] == '\r' || bytes[i] == '\t'); i++)
            ;
        s->at += i;
    } while (i == size && size > 0);
    *byte = size > 0 ? (char)bytes[i] : '\0';
    return ATT_OK;
}

/* Skips blanks and `byte`. */
static att_status expect(scan *s, char byte, const char *expected)
{
    char found;
    ATT_TRY(peek(s, &found));
    if (found != byte)
        return found ? refuse(s, expected) : fail_truncated(s);
    s->at++;
    return ATT_OK;
}

/* Where a value ends. */
typedef struct value_end {
    int depth;
    bool in_string, escaped;
} value_end;

/* Whether the value ends before this byte. */
static bool ends_before(const value_end *v, uint8_t byte)
{
    return v->depth == 0 && !v->in_string && (byte == ',' || byte == ']' || byte == '}' || byte <= ' ');
}

/* Takes a byte. Returns whether the value ends with it. */
static bool ends_with(value_end *v, uint8_t byte)
{
    if (v->in_string) {
        v->in_string = v->escaped || byte != '"';
        v->escaped = !v->escaped && byte == '\\';
        return !v->in_string && v->depth == 0;
    }
    v->in_string = byte == '"';
    v->depth += byte == '{' || byte == '[';
    v->depth -= byte == '}' || byte == ']';
    return v->depth == 0 && (byte == '}' || byte == ']');
}

/* Sets *end to the offset after the value that begins here. It is only known to have closed brackets and quotes. */
static att_status find_end(scan *s, uint64_t *end)
{
    value_end v = {0};
    for (uint64_t at = s->at;;) {
        const uint8_t *bytes;
        size_t size;
        ATT_TRY(att_file_window_peek(&s->window, at, 1, &bytes, &size));
        if (size == 0)
            return fail_truncated(s);
        for (size_t i = 0; i < size; i++) {
            const bool before = ends_before(&v, bytes[i]);
            if (before && at + i == s->at)
                return refuse(s, "a value");
            if (before || ends_with(&v, bytes[i])) {
                *end = at + i + !before;
                return ATT_OK;
            }
        }
        at += size;
    }
}

/* Builds the element that begins here, and skips it. */
static att_status take_element(scan *s, const att_json_array *array, int64_t index, void *user)
{
    char what[512];
    uint64_t end;
    const uint8_t *bytes;
    size_t size;
    json_t *element = NULL;
    ATT_TRY(find_end(s, &end));
    snprintf(what, sizeof what, "%.400s: %s[%lld]", s->path, array->name ? array->name : "", (long long)index);
    if (end - s->at > MOST_OF_ELEMENT)
        return att_fail(s->context, ATT_ERR_FORMAT, "%s has more than %d bytes", what, (int)MOST_OF_ELEMENT);
    ATT_TRY(att_file_window_peek(&s->window, s->at, (size_t)(end - s->at), &bytes, &size));
    ATT_TRY(att_json_parse(s->context, what, (const char *)bytes, (size_t)(end - s->at), &element));
    att_status status = json_is_object(element)
                            ? array->element(user, what, element, index)
                            : att_fail(s->context, ATT_ERR_FORMAT, "%s is a list; expected an object in {}", what);
    json_decref(element);
    s->at = end;
    return status;
}

/* Skips a comma, if one follows. *more: whether; else `close` was skipped. */
static att_status next(scan *s, char close, bool *more)
{
    char byte;
    ATT_TRY(peek(s, &byte));
    *more = byte == ',';
    if (byte != ',' && byte != close)
        return byte ? refuse(s, close == ']' ? "',' or ']'" : "',' or '}'") : fail_truncated(s);
    s->at++;
    return ATT_OK;
}

/* Whether a list or an object ends here, before its first element, and skips its end. */
static att_status is_empty(scan *s, char close, bool *empty)
{
    char byte;
    ATT_TRY(peek(s, &byte));
    *empty = byte == close;
    s->at += *empty;
    return ATT_OK;
}

static att_status read_array(scan *s, att_json_array *array, void *user)
{
    bool empty, more = true;
    if (array->found)
        return att_fail(s->context, ATT_ERR_FORMAT, "%s has \"%s\" twice", s->path, array->name);
    array->found = true;
    ATT_TRY(expect(s, '[', "'['"));
    ATT_TRY(is_empty(s, ']', &empty));
    for (int64_t i = 0; !empty && more; i++) {
        char byte;
        ATT_TRY(peek(s, &byte));
        ATT_TRY(take_element(s, array, i, user));
        ATT_TRY(next(s, ']', &more));
    }
    return ATT_OK;
}

/* Skips a key with its quotes. *array: the one of this name; NULL: there is none. */
static att_status read_key(scan *s, att_json_array *arrays, int count, att_json_array **array)
{
    enum { MOST_OF_KEY = 1 << 16 };
    char byte;
    uint64_t end;
    const uint8_t *bytes;
    size_t size;
    *array = NULL;
    ATT_TRY(peek(s, &byte));
    if (byte != '"')
        return byte ? refuse(s, "a key in quotes") : fail_truncated(s);
    ATT_TRY(find_end(s, &end));
    if (end - s->at > MOST_OF_KEY)
        return refuse(s, "a shorter key");
    const size_t length = (size_t)(end - s->at) - 2;
    ATT_TRY(att_file_window_peek(&s->window, s->at, length + 2, &bytes, &size));
    for (int i = 0; i < count; i++)
        if (arrays[i].name && strlen(arrays[i].name) == length && memcmp(bytes + 1, arrays[i].name, length) == 0)
            *array = &arrays[i];
    s->at = end;
    return expect(s, ':', "':'");
}

static att_status read_object(scan *s, att_json_array *arrays, int count, void *user)
{
    bool empty, more = true;
    ATT_TRY(expect(s, '{', "an object in {}"));
    ATT_TRY(is_empty(s, '}', &empty));
    while (!empty && more) {
        att_json_array *array;
        char byte;
        ATT_TRY(read_key(s, arrays, count, &array));
        ATT_TRY(peek(s, &byte));
        if (array)
            ATT_TRY(read_array(s, array, user));
        else
            ATT_TRY(find_end(s, &s->at));
        ATT_TRY(next(s, '}', &more));
    }
    return ATT_OK;
}

static att_status read_arrays(scan *s, att_json_array *arrays, int count, void *user)
{
    char byte;
    const uint8_t *bytes;
    size_t size;
    ATT_TRY(att_file_window_peek(&s->window, 0, CHUNK, &bytes, &size));
    if (size >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) /* UTF-8 byte order mark */
        s->at = 3;
    if (count == 1 && !arrays[0].name)
        ATT_TRY(read_array(s, &arrays[0], user));
    else
        ATT_TRY(read_object(s, arrays, count, user));
    ATT_TRY(peek(s, &byte));
    return byte ? refuse(s, "the end of the file") : ATT_OK;
}

att_status att_json_read_arrays(att_context *context, const char *path, att_json_array *arrays, int count, void *user)
{
    scan s = {.context = context, .path = path};
    att_file_reader *reader;
    for (int i = 0; i < count; i++)
        arrays[i].found = false;
    ATT_TRY(att_file_reader_open(context, path, &reader));
    s.window.reader = reader;
    att_status status = read_arrays(&s, arrays, count, user);
    att_file_window_free(&s.window);
    att_file_reader_close(&reader);
    return status;
}
