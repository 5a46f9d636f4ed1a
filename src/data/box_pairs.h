/* data/box_pairs.h - photographs with a file of boxes each, such as a/1.jpg and a/1.xml. */
#ifndef ATT_DATA_BOX_PAIRS_H
#define ATT_DATA_BOX_PAIRS_H

#include "data/file_layouts.h"

/* Paths of files. */
typedef struct att_box_pair {
    const char *photograph;
    const char *annotations; /* NULL: there is no such file */
} att_box_pair;

/* The arena owns everything. */
typedef struct att_box_pairs {
    att_box_pair *pairs; /* in the order of the place's list, or in the natural order of the photographs' paths */
    int64_t count;
    int64_t alone;           /* files of boxes without a photograph */
    const char *first_alone; /* the first of them */
} att_box_pairs;

/* Lists the photographs of a place. ending: of the files of boxes, ".xml"; other names, and "classes.txt", do not
 * count. With a list, `alone` is 0. Errors: ERR_FORMAT (no photographs; an empty list), ERR_MISMATCH (two photographs
 * with one file of boxes; a line that names no photograph, or one of an earlier line), those of att_folder_walk() and
 * of reading the list. */
att_status att_box_pairs_list(att_arena *arena, const att_file_place *place, const char *ending, att_box_pairs *pairs);

/* For att_box_format.is: calls `looks` for the beginnings of the first files in the place's folder of annotations,
 * until it returns true. text: NUL-terminated. */
bool att_box_pairs_look(const att_file_place *place, const char *ending, bool (*looks)(char *text));

#endif
