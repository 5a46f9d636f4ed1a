#include "base/core/text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

enum { FIRST_CAPACITY = 256, DISTANCE_MAX = 127 };

static bool reserve(att_text *text, size_t more)
{
    if (text->failed || more > SIZE_MAX / 4 - text->length) {
        text->failed = true;
        return false;
    }
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity : FIRST_CAPACITY;
    while (capacity < needed)
        capacity *= 2;
    char *data = att_reallocate(text->context, text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void att_text_append_bytes(att_text *text, const void *bytes, size_t count)
{
    if (!reserve(text, count))
        return;
    if (count)
        memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
}

void att_text_append(att_text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        text->failed = true;
    else if (reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void att_text_free(att_text *text)
{
    att_free(text->context, text->data);
    *text = (att_text){.context = text->context};
}

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t\r")] == '\0';
}

static int count_lines(const char *text)
{
    int lines = 1;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

size_t att_text_bom_size(const char *text)
{
    return strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

att_status att_text_all_lines(att_arena *arena, const char *origin, char *text, size_t size, const char ***lines,
                              int *count)
{
    if (strlen(text) != size)
        return att_fail(arena->context, ATT_ERR_FORMAT,
                        "%s holds zero bytes; expected a list in UTF-8, with one entry on each line", origin);
    const size_t bytes = (size_t)count_lines(text) * sizeof **lines;
    *lines = att_arena_allocate(arena, bytes);
    if (!*lines)
        return att_fail_memory(arena->context, bytes, origin);
    *count = 0;
    for (char *line = text + att_text_bom_size(text), *next; line; line = next) {
        size_t length = strcspn(line, "\n");
        next = line[length] ? line + length + 1 : NULL;
        length -= length > 0 && line[length - 1] == '\r';
        line[length] = '\0';
        if (next || length > 0)
            (*lines)[(*count)++] = line;
    }
    return ATT_OK;
}

att_status att_text_lines(att_arena *arena, const char *origin, char *text, size_t size, const char ***lines,
                          int *count)
{
    ATT_TRY(att_text_all_lines(arena, origin, text, size, lines, count));
    while (*count > 0 && is_blank((*lines)[*count - 1]))
        --*count;
    return ATT_OK;
}

const char *att_path_last(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool att_path_is_hidden(const char *path)
{
    return *path == '.' || strstr(path, "/.");
}

static bool matches(const char *pattern, size_t length, const char *text)
{
    const char *end = pattern + length, *star = NULL, *resume = NULL;
    while (*text) {
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            resume = text;
        } else if (pattern < end && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

bool att_text_matches(const char *pattern, const char *text)
{
    return matches(pattern, strlen(pattern), text);
}

bool att_text_matches_any(const char *patterns, const char *text)
{
    for (const char *at = patterns;; at++) {
        at += strspn(at, " ");
        const size_t whole = strcspn(at, ",");
        size_t length = whole;
        while (length > 0 && at[length - 1] == ' ')
            length--;
        if (matches(at, length, text))
            return true;
        at += whole;
        if (!*at)
            return false;
    }
}

static int min3(int a, int b, int c)
{
    int least = a < b ? a : b;
    return least < c ? least : c;
}

int att_text_distance(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b);
    if (la > DISTANCE_MAX || lb > DISTANCE_MAX)
        return DISTANCE_MAX + 1;
    int rows[3][DISTANCE_MAX + 1]; /* the last three rows of the distance table; row i is in rows[i % 3] */
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= la; i++) {
        int *row = rows[i % 3], *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= lb; j++) {
            int differ = a[i - 1] != b[j - 1];
            row[j] = min3(before[j] + 1, row[j - 1] + 1, before[j - 1] + differ);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_before[j - 2] + 1 < row[j])
                row[j] = two_before[j - 2] + 1;
        }
    }
    return rows[la % 3][lb];
}

const char *att_text_nearest(const char *text, const char *(*name)(const void *user, int index), const void *user,
                             int count)
{
    const char *nearest = NULL;
    int least = ((int)strlen(text) + 2) / 3; /* accept typing errors in up to a third of the letters, rounded up */
    for (int i = 0; i < count; i++) {
        const char *candidate = name(user, i);
        int distance = att_text_distance(text, candidate);
        if (distance < least || (distance == least && !nearest)) {
            least = distance;
            nearest = candidate;
        }
    }
    return nearest;
}

char *att_size_format(size_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(text, size, "%zu bytes", bytes);
        return text;
    }
    double value = (double)bytes / 1024;
    int unit = 0;
    for (; value >= 1023.95; unit++)
        value /= 1024;
    snprintf(text, size, "%.1f %s", value, units[unit]);
    return text;
}

bool att_text_to_i64(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        return false;
    *value = parsed;
    return true;
}

bool att_text_to_f64(const char *text, double *value)
{
    char *end;
    double parsed = strtod(text, &end);
    if (end == text || *end || !isfinite(parsed))
        return false;
    *value = parsed;
    return true;
}

int att_text_to_list(const char *text, int low, int high, int *numbers, int most)
{
    int count = 0;
    for (const char *at = text, *next; at; at = next) {
        char item[24];
        int64_t number;
        const size_t length = strcspn(at, ",");
        next = at[length] ? at + length + 1 : NULL;
        if (count == most || snprintf(item, sizeof item, "%.*s", (int)length, at) >= (int)sizeof item ||
            !att_text_to_i64(item, &number) || number < low || number > high)
            return 0;
        numbers[count++] = (int)number;
    }
    return count;
}

bool att_format_list(const int *numbers, int count, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%d", i ? "," : "", numbers[i]);
    return length < size;
}

/* --- UTF-8 -------------------------------------------------------------------------------------------------------- */

size_t att_utf8_decode(const char *text, uint32_t *code)
{
    const unsigned char *byte = (const unsigned char *)text;
    if (byte[0] < 0x80) {
        *code = byte[0];
        return 1;
    }
    if (byte[0] < 0xC2 || byte[0] > 0xF4)
        return 0;
    unsigned char lowest = byte[0] == 0xE0 ? 0xA0 : byte[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char highest = byte[0] == 0xED ? 0x9F : byte[0] == 0xF4 ? 0x8F : 0xBF;
    if (byte[1] < lowest || byte[1] > highest)
        return 0;
    size_t length = byte[0] < 0xE0 ? 2 : byte[0] < 0xF0 ? 3 : 4;
    *code = byte[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | (byte[i] & 0x3Fu);
    }
    return length;
}

size_t att_utf8_length(const char *text)
{
    uint32_t code;
    return att_utf8_decode(text, &code);
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

bool att_code_is_printable(uint32_t code)
{
    static const uint32_t refused[][2] = {
        {0x00, 0x1F},       /* C0 controls */
        {0x7F, 0x9F},       /* DEL, C1 controls */
        {0xAD, 0xAD},       /* soft hyphen */
        {0x061C, 0x061C},   /* Arabic letter mark */
        {0x180E, 0x180E},   /* Mongolian vowel separator */
        {0x200B, 0x200B},   /* zero width space */
        {0x200E, 0x200F},   /* left-to-right and right-to-left marks */
        {0x2028, 0x202E},   /* line and paragraph separators, embeddings and overrides of direction */
        {0x2060, 0x206F},   /* word joiner, invisible operators, isolates, deprecated controls */
        {0xFEFF, 0xFEFF},   /* byte order mark */
        {0xFFF9, 0xFFFB},   /* interlinear annotations */
        {0xE0000, 0xE007F}, /* tags */
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (code >= refused[i][0] && code <= refused[i][1])
            return false;
    return true;
}

/* --- printable ---------------------------------------------------------------------------------------------------- */

char *att_text_printable(char *text, bool keep_lines)
{
    for (char *at = text; *at;) {
        uint32_t code;
        size_t length = att_utf8_decode(at, &code);
        bool kept = length > 0 && (att_code_is_printable(code) || (keep_lines && code == '\n'));
        if (kept)
            at += length;
        else
            for (size_t left = length ? length : 1; left > 0; left--)
                *at++ = '?';
    }
    return text;
}

/* Replaces the locale's decimal separator, which printf writes and which may have several bytes, by a point. */
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
