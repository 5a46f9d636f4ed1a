/* data/file_layouts.h - finds photographs and the files with their annotations by the names of folders. */
#ifndef ATT_DATA_FILE_LAYOUTS_H
#define ATT_DATA_FILE_LAYOUTS_H

#include "data/dataset.h"

struct att_box_format;

/* One layout. In paths, which begin below the folder of the data set, "*" stands for the name of a split, and "@" for
 * any of the usual words for photographs or for masks ("images", "masks"). The annotations of a photograph have its
 * path, with `annotations` for `photographs` and, of masks, `mask_end` for `photograph_end`; the files may lie in
 * further folders. */
typedef struct att_file_layout {
    const char *photographs, *annotations;
    const char *list; /* a file that says which photographs count; NULL: all */
    /* Layouts of boxes. */
    const struct att_box_format *boxes;
    /* Layouts of masks. */
    const char *photograph_end; /* end of a photograph's name, before its extension */
    const char *mask_end;       /* end of a mask's name, before ".png"; NULL: any of the usual ones ("", "_mask") */
    const char *begin;          /* with what names of photographs begin */
    const char *classes;        /* built-in names of the classes, base/core/names.h; NULL: none */
    bool reduce_zero;           /* label 0 is no class, n is class n - 1 */
    bool void_last;             /* the label after the last class is no class */
    const char *other_end;      /* end of the names of masks with other labels, for a message; NULL: none */
    const char *other_classes;  /* what classes these number, and how the masks that are read are made */
} att_file_layout;

/* Where the files of one split lie. Paths begin with that of the data set. */
typedef struct att_file_place {
    const att_file_layout *layout;
    char *root, *photographs, *annotations, *list; /* list: NULL if the layout has none */
    const char *split;                             /* "": no splits */
} att_file_place;

/* How many folders, each the only one in that above it, may be around a layout. */
enum { ATT_FILE_LAYOUTS_OUTER = 3 };

/* Layouts to try, in this order. */
typedef struct att_file_search {
    const att_file_layout *layouts;
    int count;
    const char *what; /* "masks", for a message */
    /* Whether to take a place, whose folders exist. */
    att_status (*take)(void *user, const att_file_place *place, bool *taken);
    void *user;
} att_file_search;

/* Tries the layouts one after the other: calls `take` for each whose folders exist below `path`, or below the only
 * folder in it, and so on, until one is taken. Paths lie in the arena. wanted: a split; NULL: the first. Returns the
 * status of `take`, or of a failure before: ERR_NOT_FOUND (only other splits), ERR_FORMAT (two folders for one split),
 * ERR_UNSUPPORTED (a path that is too long), ERR_MEMORY. */
att_status att_file_layouts_try(att_arena *arena, const char *path, const char *wanted, const att_file_search *search,
                                bool *taken);

#endif
