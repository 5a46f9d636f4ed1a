#include "data/classes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/names.h"
#include "base/core/text.h"
#include "base/io/file.h"

enum { MAX_MAP_BYTES = 16 << 20, MAX_CLASSES = 1 << 20 };

/* --- order ------------------------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static bool ends_text(char c)
{
    return c == '\0' || is_digit(c);
}

/* Compares the runs of non-digits at *a and *b, and moves both past their common beginning. The run that ends first is
 * the smaller. */
static int compare_text(const char **a, const char **b)
{
    while (!ends_text(**a) && lower(**a) == lower(**b)) {
        ++*a;
        ++*b;
    }
    if (ends_text(**a) || ends_text(**b))
        return ends_text(**b) - ends_text(**a);
    return lower(**a) - lower(**b);
}

static size_t skip_number(const char **text)
{
    size_t digits = 0;
    while (is_digit((*text)[digits]))
        digits++;
    *text += digits;
    return digits;
}

/* Compares the runs of digits at *a and *b by value and moves past them. A string that has ended is the smaller. */
static int compare_numbers(const char **a, const char **b)
{
    if (!is_digit(**a) || !is_digit(**b))
        return is_digit(**a) - is_digit(**b);
    while (**a == '0')
        ++*a;
    while (**b == '0')
        ++*b;
    const char *from_a = *a, *from_b = *b;
    size_t digits_a = skip_number(a), digits_b = skip_number(b);
    if (digits_a != digits_b)
        return digits_a < digits_b ? -1 : 1;
    return memcmp(from_a, from_b, digits_a);
}

int att_natural_compare(const char *a, const char *b)
{
    const char *at_a = a, *at_b = b;
    while (*at_a || *at_b) {
        int order = compare_text(&at_a, &at_b);
        if (order == 0)
            order = compare_numbers(&at_a, &at_b);
        if (order != 0)
            return order;
    }
    return strcmp(a, b);
}

/* --- lists ------------------------------------------------------------------------------------------------------- */

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const att_class_entry *)a)->name, ((const att_class_entry *)b)->name);
}

static att_status index_names(att_context *context, const char *origin, att_class_list *list)
{
    for (int i = 0; i < list->count; i++)
        list->by_name[i] = (att_class_entry){list->names[i], i};
    qsort(list->by_name, (size_t)list->count, sizeof *list->by_name, compare_entries);
    for (int i = 1; i < list->count; i++) {
        const att_class_entry *one = &list->by_name[i - 1], *other = &list->by_name[i];
        if (strcmp(one->name, other->name) == 0)
            return att_fail(context, ATT_ERR_FORMAT, "%s: class \"%s\" is on lines %d and %d", origin, one->name,
                            (one->number < other->number ? one : other)->number + 1,
                            (one->number < other->number ? other : one)->number + 1);
    }
    return ATT_OK;
}

att_status att_class_list_make(att_context *context, const char *origin, const char *const *names, int count,
                               att_class_list *list)
{
    list->arena.context = context;
    list->names = att_arena_allocate(&list->arena, (size_t)count * sizeof *list->names);
    list->by_name = att_arena_allocate(&list->arena, (size_t)count * sizeof *list->by_name);
    if (!list->names || !list->by_name)
        return att_fail_memory(context, (size_t)count * (sizeof *list->names + sizeof *list->by_name), "class names");
    list->count = count;
    for (int i = 0; i < count; i++) {
        if (strpbrk(names[i], "\r\n"))
            return att_fail(context, ATT_ERR_FORMAT,
                            "%s: the name of class \"%s\" has a line break, but lists of classes have one name a line; "
                            "rename the class",
                            origin, names[i]);
        list->names[i] = att_arena_string(&list->arena, names[i]);
        if (!list->names[i])
            return att_fail_memory(context, strlen(names[i]) + 1, "a class name");
    }
    return index_names(context, origin, list);
}

const char **att_class_numbers(att_arena *arena, int count)
{
    enum { DIGITS = 12 };
    const char **names = att_arena_allocate(arena, (size_t)count * (sizeof *names + DIGITS));
    for (int i = 0; names && i < count; i++) {
        char *digits = (char *)(names + count) + (size_t)i * DIGITS;
        snprintf(digits, DIGITS, "%d", i);
        names[i] = digits;
    }
    return names;
}

/* names: in the arena, which is freed; NULL: there was no memory for them. */
static att_status make_and_free(att_arena *arena, const char *origin, const char **names, int count,
                                att_class_list *list)
{
    att_status status = names ? att_class_list_make(arena->context, origin, names, count, list)
                              : att_fail_memory(arena->context, (size_t)count * sizeof *names, "class names");
    att_arena_free(arena);
    return status;
}

att_status att_class_list_number(att_context *context, int count, att_class_list *list)
{
    att_arena arena = {.context = context};
    return make_and_free(&arena, "numbers of classes", att_class_numbers(&arena, count), count, list);
}

att_status att_class_list_known(att_context *context, const char *data_set, att_class_list *list)
{
    const att_known_classes *known = att_known_classes_find(data_set);
    att_arena arena = {.context = context};
    const char **names = att_arena_allocate(&arena, (size_t)known->count * sizeof *names);
    for (int c = 0; names && c < known->count; c++)
        names[c] = att_known_classes_label(known, c);
    ATT_TRY(make_and_free(&arena, data_set, names, known->count, list));
    return att_class_list_colour(list, data_set);
}

bool att_class_list_is(const att_class_list *list, const char *data_set)
{
    const att_known_classes *known = att_known_classes_find(data_set);
    bool equal = list->count == known->count;
    for (int c = 0; equal && c < list->count; c++)
        equal = strcmp(list->names[c], att_known_classes_label(known, c)) == 0;
    return equal;
}

att_status att_class_list_colour(att_class_list *list, const char *data_set)
{
    const att_known_classes *known = att_known_classes_find(data_set);
    if (list->colours || !known->colours || list->count != known->count)
        return ATT_OK;
    const size_t bytes = (size_t)list->count * sizeof *list->colours;
    list->colours = att_arena_allocate(&list->arena, bytes);
    if (!list->colours)
        return att_fail_memory(list->arena.context, bytes, "the colours of classes");
    memcpy(list->colours, known->colours, bytes);
    return ATT_OK;
}

static att_status parse_map(att_arena *arena, const char *path, char *text, size_t size, att_class_list *list)
{
    const char **lines;
    int count;
    ATT_TRY(att_text_lines(arena, path, text, size, &lines, &count));
    if (count < 1 || count > MAX_CLASSES)
        return att_fail(arena->context, ATT_ERR_FORMAT, "%s: a class map holds 1 to %d lines", path, MAX_CLASSES);
    for (int i = 0; i < count; i++)
        if (lines[i][strspn(lines[i], " \t")] == '\0')
            return att_fail(arena->context, ATT_ERR_FORMAT, "%s: line %d names no class", path, i + 1);
    return att_class_list_make(arena->context, path, lines, count, list);
}

att_status att_class_list_parse(att_context *context, const char *origin, char *text, size_t size, att_class_list *list)
{
    att_arena arena = {.context = context};
    list->numbering = ATT_NUMBERED_BY_MAP;
    att_status status = parse_map(&arena, origin, text, size, list);
    att_arena_free(&arena);
    return status;
}

att_status att_class_list_read(att_context *context, const char *path, att_class_list *list)
{
    char *text;
    size_t size;
    ATT_TRY(att_file_read(context, path, MAX_MAP_BYTES, &text, &size));
    att_status status = att_class_list_parse(context, path, text, size, list);
    att_free(context, text);
    return status;
}

int att_class_list_find(const att_class_list *list, const char *name)
{
    if (list->count == 0)
        return -1;
    att_class_entry key = {name, 0};
    const att_class_entry *found =
        bsearch(&key, list->by_name, (size_t)list->count, sizeof *list->by_name, compare_entries);
    return found ? found->number : -1;
}

static const char *name_at(const void *list, int index)
{
    return ((const att_class_list *)list)->names[index];
}

const char *att_class_list_nearest(const att_class_list *list, const char *name)
{
    const size_t length = strlen(name);
    for (int i = 0; i < list->count; i++)
        if (strncmp(list->names[i], name, length) == 0 && strchr(" \t", list->names[i][length]))
            return list->names[i];
    return att_text_nearest(name, name_at, list, list->count);
}

void att_class_list_free(att_class_list *list)
{
    if (list->arena.context)
        att_arena_free(&list->arena);
    *list = (att_class_list){0};
}
