#include "lab/papers/ode/lines.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"

att_status att_ode_lines_open(att_ode *ode, const char *path, size_t cap, att_ode_lines *lines)
{
    char *bytes = NULL;
    size_t size = 0;
    ATT_TRY(att_file_read(ode->context, path, cap, &bytes, &size));
    size_t length = strlen(bytes);
    *lines = (att_ode_lines){.path = path, .text = att_arena_string(&ode->arena, bytes)};
    att_free(ode->context, bytes);
    if (!lines->text)
        return att_fail_memory(ode->context, size, path);
    if (length < size)
        return att_fail(ode->context, ATT_ERR_FORMAT, "%s: byte %zu is a NUL, expected text", path, length);
    return att_ode_lines_rewind(ode, lines);
}

/* att_ode_lines_next() writes to the text, so it gets a copy. */
att_status att_ode_lines_rewind(att_ode *ode, att_ode_lines *lines)
{
    lines->number = 0;
    lines->rest = att_arena_string(&ode->arena, lines->text);
    return lines->rest ? ATT_OK : att_fail_memory(ode->context, strlen(lines->text), lines->path);
}

bool att_ode_lines_next(att_ode_lines *lines)
{
    while (lines->rest) {
        lines->line = lines->rest;
        lines->number++;
        char *end = strchr(lines->line, '\n');
        lines->rest = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        lines->line[strcspn(lines->line, "#")] = '\0';
        size_t length = strlen(lines->line);
        while (length > 0 && strchr(" \t\r", lines->line[length - 1]))
            lines->line[--length] = '\0';
        if (lines->line[strspn(lines->line, " \t")])
            return true;
    }
    return false;
}
