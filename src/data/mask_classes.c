#include "data/mask_classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"

enum { CHANNELS = 3 };

/* Cuts the last word off the line, and returns whether it is a whole number behind other words. A number that is too
 * large becomes INT64_MAX. */
static bool take_number(char *line, int64_t *number)
{
    size_t end = strlen(line);
    while (end > 0 && strchr(" \t", line[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && !strchr(" \t", line[begin - 1]))
        begin--;
    if (begin == 0 || end == begin || begin + strspn(line + begin, "0123456789") < end)
        return false;
    line[end] = '\0';
    if (!att_text_to_i64(line + begin, number))
        *number = INT64_MAX;
    while (begin > 0 && strchr(" \t", line[begin - 1]))
        begin--;
    line[begin] = '\0';
    return begin > 0;
}

/* Cuts the colour off a line. Returns false, with the line unchanged, if it does not end in three whole numbers. */
static bool take_colour(char *line, int64_t colour[CHANNELS])
{
    const size_t length = strlen(line);
    char saved[256];
    if (length >= sizeof saved)
        return false;
    memcpy(saved, line, length + 1);
    bool has = true;
    for (int c = CHANNELS - 1; has && c >= 0; c--)
        has = take_number(line, &colour[c]);
    if (!has)
        memcpy(line, saved, length + 1);
    return has;
}

static att_status bad_colour(att_context *context, const char *path, int line, const char *what)
{
    return att_fail(context, ATT_ERR_FORMAT,
                    "%s: line %d %s; expected \"name\" on every line, or \"name R G B\" with numbers from 0 to 255 on "
                    "every line",
                    path, line, what);
}

/* Whether a line without a colour ends in several numbers, however they are separated. */
static bool ends_in_numbers(const char *line)
{
    static const char between[] = " \t,;()[]";
    size_t end = strlen(line);
    for (int numbers = 0; numbers < 2; numbers++) {
        while (end > 0 && strchr(between, line[end - 1]))
            end--;
        size_t begin = end;
        while (begin > 0 && strchr("0123456789+-.", line[begin - 1]))
            begin--;
        if (begin == end || begin == 0 || !strchr(between, line[begin - 1]))
            return false;
        end = begin;
    }
    return true;
}

att_status att_take_colours(att_arena *arena, const char *path, char *const *lines, int count,
                            uint8_t (**colours)[CHANNELS])
{
    int coloured = 0, numbers = 0;
    uint8_t(*taken)[CHANNELS] = att_arena_allocate(arena, (size_t)count * sizeof *taken);
    if (!taken)
        return att_fail_memory(arena->context, (size_t)count * sizeof *taken, "the colours of classes");
    for (int i = 0; i < count; i++) {
        int64_t colour[CHANNELS];
        bool has = take_colour(lines[i], colour);
        if (i > 0 && has != (coloured > 0))
            return bad_colour(arena->context, path, i + 1,
                              has ? "has a colour, but the lines before have none" : "has no colour");
        for (int c = 0; has && c < CHANNELS; c++) {
            if (colour[c] > UINT8_MAX)
                return bad_colour(arena->context, path, i + 1, "has a colour beyond 255");
            taken[i][c] = (uint8_t)colour[c];
        }
        coloured += has;
        numbers += !has && ends_in_numbers(lines[i]);
    }
    if (numbers == count)
        return bad_colour(arena->context, path, 1, "ends in numbers that are no colour, as do all others");
    *colours = coloured > 0 ? taken : NULL;
    return ATT_OK;
}

/* Whether a name follows a number on every line. */
static bool all_begin_with_numbers(char **lines, int count)
{
    for (int i = 0; i < count; i++) {
        const size_t digits = strspn(lines[i], "0123456789"), after = digits + strspn(lines[i] + digits, " \t,:;");
        if (digits == 0 || after == digits || lines[i][after] == '\0')
            return false;
    }
    return true;
}

/* Makes a list of classes from the lines of a file, which it may change. */
typedef att_status (*list_maker)(att_context *context, const char *path, char **lines, int count, att_class_list *list);

static att_status make_list(att_context *context, const char *path, char **lines, int count, att_class_list *list)
{
    list->arena.context = context;
    if (count == 0)
        return att_fail(context, ATT_ERR_FORMAT, "%s: it names no class; expected one on each line", path);
    ATT_TRY(att_take_colours(&list->arena, path, lines, count, &list->colours));
    for (int i = 0; i < count; i++)
        if (lines[i][strspn(lines[i], " \t")] == '\0')
            return att_fail(context, ATT_ERR_FORMAT, "%s: line %d names no class", path, i + 1);
    if (all_begin_with_numbers(lines, count))
        att_log(
            context, ATT_LOG_WARNING,
            "%s: every line begins with a number, which becomes a part of the name (\"%s\"); expected the name alone",
            path, lines[0]);
    return att_class_list_make(context, path, (const char *const *)lines, count, list);
}

static att_status make_from_table(att_context *context, const char *path, char **lines, int count, att_class_list *list)
{
    for (int i = 1; i < count; i++) {
        char *tab = strrchr(lines[i], '\t');
        if (!tab || strtol(lines[i], NULL, 10) != i)
            return att_fail(context, ATT_ERR_FORMAT,
                            "%s: line %d: expected the number %d of a class, and further columns after tabs, of which "
                            "the last is its name",
                            path, i + 1, i);
        lines[i] = tab + 1;
        size_t length = strcspn(lines[i], ",;");
        while (length > 0 && lines[i][length - 1] == ' ')
            length--;
        lines[i][length] = '\0';
    }
    if (count < 2)
        return att_fail(context, ATT_ERR_FORMAT, "%s: it names no class; expected a heading and one on each line",
                        path);
    ATT_TRY(att_class_list_make(context, path, (const char *const *)lines + 1, count - 1, list));
    return att_class_list_colour(list, "ade20k");
}

static att_status parse(att_context *context, const char *path, char *text, size_t size, list_maker make,
                        att_class_list *list)
{
    att_arena arena = {.context = context};
    const char **lines;
    int count;
    att_status status = att_text_lines(&arena, path, text, size, &lines, &count);
    if (status == ATT_OK)
        status = make(context, path, (char **)lines, count, list);
    att_arena_free(&arena);
    return status;
}

att_status att_mask_classes_parse(att_context *context, const char *path, char *text, size_t size, att_class_list *list)
{
    return parse(context, path, text, size, make_list, list);
}

att_status att_mask_classes_parse_table(att_context *context, const char *path, char *text, size_t size,
                                        att_class_list *list)
{
    return parse(context, path, text, size, make_from_table, list);
}
