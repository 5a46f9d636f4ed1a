#include "networks/models/timm.h"

#include <string.h>

static bool is_text(att_timm_text text, const char *other)
{
    return strlen(other) == text.length && memcmp(text.bytes, other, text.length) == 0;
}

/* Reads the line at *at, skipping comments and empty lines; returns false at the end of the list. */
static bool next_line(const unsigned char *list, size_t size, size_t *at, att_timm_text *line)
{
    while (*at < size) {
        const char *begin = (const char *)list + *at, *end = memchr(begin, '\n', size - *at);
        size_t length = end ? (size_t)(end - begin) : size - *at;
        *at += length + 1;
        *line = (att_timm_text){begin, length};
        if (length > 0 && begin[0] != '#')
            return true;
    }
    return false;
}

/* Truncates *line before `separator` and returns the text after it. Without a separator *line is unchanged and the
 * result empty. */
static att_timm_text split_off(att_timm_text *line, const char *separator)
{
    size_t length = strlen(separator);
    for (size_t i = 0; i + length <= line->length; i++)
        if (memcmp(line->bytes + i, separator, length) == 0) {
            att_timm_text rest = {line->bytes + i + length, line->length - i - length};
            line->length = i;
            return rest;
        }
    return (att_timm_text){line->bytes, 0};
}

bool att_timm_next_name(size_t *at, att_timm_name *name)
{
    if (!next_line(att_timm_names, att_timm_names_size, at, &name->name))
        return false;
    name->lacks = split_off(&name->name, ": ");
    name->current = split_off(&name->name, " -> ");
    name->equivalent = split_off(&name->name, " = ");
    return true;
}

bool att_timm_find_name(const char *text, att_timm_name *name)
{
    for (size_t at = 0; att_timm_next_name(&at, name);)
        if (is_text(name->name, text))
            return true;
    return false;
}

bool att_timm_next_tag(const char *network, size_t *at, att_timm_tag *tag)
{
    while (next_line(att_timm_tags, att_timm_tags_size, at, &tag->network)) {
        tag->values = split_off(&tag->network, " ");
        tag->tag = split_off(&tag->network, ".");
        if (is_text(tag->network, network))
            return true;
    }
    return false;
}

bool att_timm_find_tag(const char *network, const char *text, att_timm_tag *tag)
{
    for (size_t at = 0; att_timm_next_tag(network, &at, tag);)
        if (is_text(tag->tag, text))
            return true;
    return false;
}
