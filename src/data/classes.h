/* data/classes.h - the names of a data set's classes, and their sort order. */
#ifndef ATT_DATA_CLASSES_H
#define ATT_DATA_CLASSES_H

#include <attscope/data.h>

#include "base/core/memory.h"

typedef struct att_class_entry {
    const char *name;
    int number;
} att_class_entry;

/* Zero-initialise. names[number]; by_name is sorted for att_class_list_find(). */
typedef struct att_class_list {
    att_arena arena;
    const char **names;
    att_class_entry *by_name;
    int count;
    uint8_t (*colours)[3]; /* red, green and blue of each class; NULL: none */
    att_numbering numbering;
    bool map_names; /* ATT_NUMBERED_BY_MAP: the numbers are the data's own labels, which the class map only names */
} att_class_list;

/* timm's natural order: ASCII letters in lower case, runs of digits by value. Names that are equal in this order are
 * compared by bytes. */
int att_natural_compare(const char *a, const char *b);

/* Makes a list of `count` names, in the given order. The names are copied. The caller frees the list, also after a
 * failure. Errors: ERR_FORMAT (a name appears twice, or has a line break; the message names `origin`), ERR_MEMORY. */
att_status att_class_list_make(att_context *context, const char *origin, const char *const *names, int count,
                               att_class_list *list);
/* Reads the list from a file with one class per line, as att_text_lines() reads lines: the whole line is the name.
 * Errors: ERR_FORMAT (empty file, a blank line, a class twice), those of att_file_read(). */
att_status att_class_list_read(att_context *context, const char *path, att_class_list *list);
/* Reads the list from the contents of such a file, which end in a NUL. `text` is modified. */
att_status att_class_list_parse(att_context *context, const char *origin, char *text, size_t size,
                                att_class_list *list);
/* The same with the names "0", "1", ..., and with names and colours of a built-in data set (base/core/names.h).
 */
att_status att_class_list_number(att_context *context, int count, att_class_list *list);
att_status att_class_list_known(att_context *context, const char *data_set, att_class_list *list);
/* Whether the list has the names of a built-in data set, in the same order. */
bool att_class_list_is(const att_class_list *list, const char *data_set);
/* Gives a list without colours those of a built-in data set with as many classes, if it has any. Errors: ERR_MEMORY. */
att_status att_class_list_colour(att_class_list *list, const char *data_set);
/* Returns the names "0", "1", ..., which lie in the arena; NULL if memory is exhausted. */
const char **att_class_numbers(att_arena *arena, int count);
/* Returns the number of a class; -1 if the list lacks the name. */
int att_class_list_find(const att_class_list *list, const char *name);
/* Returns the name of the list that begins with `name` and a blank, or else the most similar one; NULL if none is. */
const char *att_class_list_nearest(const att_class_list *list, const char *name);
void att_class_list_free(att_class_list *list);

#endif
