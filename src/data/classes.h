/* data/classes.h - the names of a data set's classes, and the order names are put in. */
#ifndef ATT_DATA_CLASSES_H
#define ATT_DATA_CLASSES_H

#include <attscope/data.h>

#include "core/memory.h"

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
    att_numbering numbering;
} att_class_list;

/* timm's order of names: ASCII letters as lower case, runs of digits by their value; names equal under it go by bytes.
 */
int att_natural_compare(const char *a, const char *b);

/* Makes the list of `count` names in this order; the names are copied. A list that failed is to be freed too.
 * Errors: ERR_FORMAT where one appears twice (`origin` is named), ERR_MEMORY. */
att_status att_class_list_make(att_context *context, const char *origin, const char *const *names, int count,
                               att_class_list *list);
/* From a file with one class a line, of which the first word counts. Errors: ERR_FORMAT (empty, a line without a word,
 * a class twice), those of att_file_read(). */
att_status att_class_list_read(att_context *context, const char *path, att_class_list *list);
/* The same from such a file's bytes, which have a NUL after the last. `text` is changed. */
att_status att_class_list_parse(att_context *context, const char *origin, char *text, size_t size,
                                att_class_list *list);
/* Number of a name; -1 where there is none. */
int att_class_list_find(const att_class_list *list, const char *name);
/* The name nearest to `name`, NULL where none is near. */
const char *att_class_list_nearest(const att_class_list *list, const char *name);
void att_class_list_free(att_class_list *list);

#endif
