/* data/mask_layouts.h - how people lay out photographs with index masks beside them. */
#ifndef ATT_DATA_MASK_LAYOUTS_H
#define ATT_DATA_MASK_LAYOUTS_H

#include "data/dataset.h"

/* One layout. In paths, which begin below the folder of the data set, "*" stands for the name of a split, and "@" for
 * any of the usual words for photographs or for masks ("images", "masks"). A mask has the path of its photograph, with
 * `masks` for `photographs` and `mask_end` for `photograph_end`; the files may lie in further folders. */
typedef struct att_mask_layout {
    const char *photographs, *masks;
    const char *list;           /* a file with the name of a photograph on each line; NULL: all photographs count */
    const char *photograph_end; /* end of a photograph's name, before its extension */
    const char *mask_end;       /* end of a mask's name, before ".png"; NULL: any of the usual ones ("", "_mask") */
    const char *begin;          /* with what names of photographs begin */
    const char *classes;        /* built-in names of the classes, base/core/names.h; NULL: none */
    bool reduce_zero;           /* label 0 is no class, n is class n - 1 */
    bool void_last;             /* the label after the last class is no class */
    const char *other_end;      /* end of the names of masks with other labels, for a message; NULL: none */
    const char *other_classes;  /* what classes these number, and how the masks that are read are made */
} att_mask_layout;

/* Where the files of one split lie. Paths begin with that of the data set. */
typedef struct att_mask_place {
    const att_mask_layout *layout;
    char *root, *photographs, *masks, *list; /* list: NULL if the layout has none */
    const char *split;                       /* "": no splits */
} att_mask_place;

/* How many folders, each the only one in that above it, may be around a layout. */
enum { ATT_MASK_LAYOUTS_OUTER = 3 };

/* Tries the layouts one after the other: calls `take` for each whose folders exist below `path`, or below the only
 * folder in it, and so on, until one is taken. Paths lie in the arena. Returns the status of `take`, or of a failure
 * before: ERR_NOT_FOUND (only other splits), ERR_FORMAT (two folders for one split), ERR_UNSUPPORTED (a path that is
 * too long), ERR_MEMORY. */
att_status att_mask_layouts_try(att_arena *arena, const char *path, const char *wanted,
                                att_status (*take)(void *user, const att_mask_place *place, bool *taken), void *user,
                                bool *taken);

/* The usual ends of the names of masks, before ".png"; NULL beyond the last. */
const char *att_mask_layouts_end(int index);

#endif
