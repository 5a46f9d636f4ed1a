/* data/mask_pairs.h - finds photographs and their masks. */
#ifndef ATT_DATA_MASK_PAIRS_H
#define ATT_DATA_MASK_PAIRS_H

#include "data/mask_layouts.h"

/* Paths below the folders of the place. */
typedef struct att_mask_pair {
    const char *photograph, *mask;
} att_mask_pair;

/* Zero-initialise, then set the arena's context. The caller frees the arena, which owns everything. */
typedef struct att_mask_pairs {
    att_arena arena;
    att_file_place place;
    att_mask_pair *pairs; /* in the natural order of the photographs' paths, or that of the layout's list */
    int64_t count;
} att_mask_pairs;

/* Finds the pairs of one split below `path`. *found: false if there is no known layout. Errors: ERR_MISMATCH (a
 * photograph without a mask, a mask without a photograph, two photographs for one mask, a line of a list that names no
 * photograph), ERR_FORMAT (an empty list; masks of another kind, such as labelIds; two folders for one split),
 * ERR_NOT_FOUND (no such split), ERR_UNSUPPORTED, ERR_IO, ERR_STOPPED, ERR_MEMORY. */
att_status att_mask_pairs_find(att_mask_pairs *pairs, const char *path, const char *wanted, bool *found);
/* Whether there is a pair in any split. Errors: ERR_STOPPED, ERR_MEMORY. */
att_status att_mask_pairs_exist(att_context *context, const char *path, bool *found);

#endif
