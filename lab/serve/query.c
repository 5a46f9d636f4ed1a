#include "lab/serve/query.h"

#include <string.h>

enum { NAME = 64 }; /* longer names of parameters are unknown names */

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes [begin, end) to a NUL-terminated text. Returns false if it is malformed or does not fit. */
static bool decode(const char *begin, const char *end, char *text, size_t size)
{
    size_t length = 0;
    for (const char *at = begin; at < end; at++) {
        int c = (unsigned char)*at;
        if (c == '+')
            c = ' ';
        if (c == '%') {
            const int high = end - at > 2 ? digit_of(at[1]) : -1, low = high >= 0 ? digit_of(at[2]) : -1;
            c = low >= 0 ? 16 * high + low : 0;
            at += 2;
        }
        if (c == 0 || length + 1 >= size)
            return false;
        text[length++] = (char)c;
    }
    text[length] = '\0';
    return true;
}

static const char *end_of(const char *parameter)
{
    return parameter + strcspn(parameter, "&");
}

static bool is_called(const char *parameter, const char *name)
{
    char decoded[NAME];
    const size_t length = strcspn(parameter, "=&");
    return decode(parameter, parameter + length, decoded, sizeof decoded) && strcmp(decoded, name) == 0;
}

static bool decode_value(const char *parameter, char *text, size_t size)
{
    const char *end = end_of(parameter), *equals = memchr(parameter, '=', (size_t)(end - parameter));
    return decode(equals != NULL ? equals + 1 : end, end, text, size);
}

/* Returns the parameter that follows; NULL if there is none. */
static const char *next_of(const char *parameter)
{
    const char *end = end_of(parameter);
    return *end == '&' ? end + 1 : NULL;
}

/* The first parameter of this name from `at` on; NULL if there is none. */
static const char *find_from(const char *at, const char *name)
{
    while (at != NULL && !is_called(at, name))
        at = next_of(at);
    return at;
}

att_query_found att_query_find(const char *query, const char *name, char *text, size_t size)
{
    const char *found = find_from(query, name);
    if (found == NULL)
        return ATT_QUERY_ABSENT;
    if (find_from(next_of(found), name) != NULL)
        return ATT_QUERY_REPEATED;
    return decode_value(found, text, size) ? ATT_QUERY_FOUND : ATT_QUERY_MALFORMED;
}

att_query_found att_query_find_next(const char **at, const char *name, char *text, size_t size)
{
    const char *found = find_from(*at, name);
    if (found == NULL)
        return ATT_QUERY_ABSENT;
    *at = next_of(found);
    return decode_value(found, text, size) ? ATT_QUERY_FOUND : ATT_QUERY_MALFORMED;
}

void att_query_without(const char *query, const char *name, att_text *out)
{
    const char *separator = "";
    for (const char *at = query; at != NULL; at = next_of(at)) {
        if (is_called(at, name))
            continue;
        att_text_append(out, "%s", separator);
        att_text_append_bytes(out, at, (size_t)(end_of(at) - at));
        separator = "&";
    }
}
