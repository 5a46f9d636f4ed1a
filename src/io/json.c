#include "io/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* Where the document is nested too deeply: that byte's index, else `size`. jansson's own limit is 2048 levels, which is
 * more stack than a thread may have. */
static size_t find_too_deep(const char *bytes, size_t size)
{
    bool in_string = false;
    int depth = 0;
    for (size_t i = 0; i < size; i++) {
        char byte = bytes[i];
        if (in_string) {
            i += byte == '\\';
            in_string = byte != '"';
        } else if (byte == '"') {
            in_string = true;
        } else if (byte == '[' || byte == '{') {
            if (++depth > ATT_JSON_MAX_DEPTH)
                return i;
        } else if (byte == ']' || byte == '}') {
            depth--;
        }
    }
    return size;
}

/* How many blanks JSON text begins with. */
static size_t count_blanks(const char *bytes, size_t size)
{
    size_t count = 0;
    while (count < size && bytes[count] && strchr(" \t\r\n", bytes[count]))
        count++;
    return count;
}

att_status att_json_parse(att_context *context, const char *what, const char *bytes, size_t size, json_t **root)
{
    size_t deep = find_too_deep(bytes, size);
    if (deep < size)
        return att_fail(context, ATT_ERR_FORMAT, "%s: JSON nested more than %d levels deep at byte %zu", what,
                        (int)ATT_JSON_MAX_DEPTH, deep);
    size_t begin = count_blanks(bytes, size);
    if (begin == size)
        return att_fail(context, ATT_ERR_FORMAT, "%s: not valid JSON: it is empty", what);
    if (bytes[begin] != '{' && bytes[begin] != '[')
        return att_fail(context, ATT_ERR_FORMAT, "%s: not valid JSON: expected an object in {} or an array in []",
                        what);
    json_error_t error;
    json_t *parsed = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
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

/* printf's decimal point is the locale's, which may be several bytes. */
static void restore_point(char *text)
{
    size_t foreign = strspn(text, "+-0123456789");
    size_t length = strcspn(text + foreign, "+-0123456789e");
    if (length == 0)
        return;
    text[foreign] = '.';
    memmove(text + foreign + 1, text + foreign + length, strlen(text + foreign + length) + 1);
}

char *att_format_number(double value, char text[static ATT_NUMBER_TEXT])
{
    if (!isfinite(value)) {
        snprintf(text, ATT_NUMBER_TEXT, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return text;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, ATT_NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    restore_point(text);
    return text;
}

/* Table 3-7 of the Unicode Standard: what the second byte may be depends on the first. */
size_t att_utf8_length(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    if (byte[0] < 0x80)
        return 1;
    if (byte[0] < 0xC2 || byte[0] > 0xF4)
        return 0;
    unsigned char lowest = byte[0] == 0xE0 ? 0xA0 : byte[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char highest = byte[0] == 0xED ? 0x9F : byte[0] == 0xF4 ? 0x8F : 0xBF;
    if (byte[1] < lowest || byte[1] > highest)
        return 0;
    size_t length = byte[0] < 0xE0 ? 2 : byte[0] < 0xF0 ? 3 : 4;
    for (size_t i = 2; i < length; i++)
        if ((byte[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

bool att_utf8_valid(const char *text)
{
    while (*text != '\0') {
        size_t length = att_utf8_length(text);
        if (length == 0)
            return false;
        text += length;
    }
    return true;
}
