/* data/splits.h - which folders and files of a data set are its splits. */
#ifndef ATT_DATA_SPLITS_H
#define ATT_DATA_SPLITS_H

#include <attscope/context.h>

enum { ATT_SPLITS = 7, ATT_SPLIT_NAME = 256 };

/* A folder or file that can be a split. */
typedef struct att_split {
    const char *split;          /* "train", "training", "val", ...; NULL: none */
    char name[ATT_SPLIT_NAME];  /* of the folder or file; of several the first in byte order */
    char other[ATT_SPLIT_NAME]; /* another one for the same split, the last in byte order; "": none */
    size_t begin, length;       /* where the split's name is in `name` */
} att_split;

/* The splits among the names of a folder or an archive. Zero-initialise.
 *
 * A name is that of a split if it equals "train", "training", "val", "validation", "valid", "test" or "testing" in
 * lower or upper case. If there is no such name, names that differ only in such a word are splits, too: "seg_train" and
 * "seg_test". */
typedef struct att_splits {
    att_split equal[ATT_SPLITS], word[ATT_SPLITS];
    bool words; /* a name with such a word is that of a split even if no other name differs in the word alone */
    char flat[ATT_SPLITS][ATT_SPLIT_NAME]; /* folders named after a split that hold no class folders */
} att_splits;

/* Names that can stand for the split `wanted` (NULL: any split), best first, NULL-terminated. NULL if there is no such
 * split. */
const char *const *att_split_names(const char *wanted);
/* Returns ERR_ARGUMENT with a message that lists the valid splits. */
att_status att_split_unknown(att_context *context, const char *wanted);

/* Whether the name is that of a split, in lower or upper case. */
bool att_split_is_name(const char *name);
/* Whether the split's name is a word of `name`, in lower or upper case, between characters that are no letters. */
bool att_split_is_word(const char *name, const char *split);
/* Whether all names are those of splits, as above. */
bool att_split_are_all(const char *const *names, int count);

void att_splits_add(att_splits *splits, const char *name, size_t length);
/* Notes a folder that holds no class folders. */
void att_splits_add_flat(att_splits *splits, const char *name, size_t length);
/* Adds the visible folders in `folder`: those for which `holds_classes` (path) is true as splits, the others as flat.
 */
void att_splits_scan(att_splits *splits, const char *folder, bool (*holds_classes)(const char *path));
/* Returns the first of the names (NULL-terminated; att_split_names()) that is a split; NULL if none is. */
const att_split *att_splits_find(const att_splits *splits, const char *const *names);
/* Returns the name of a flat folder that could stand for the split `wanted`; NULL if there is none. */
const char *att_splits_flat(const att_splits *splits, const char *wanted);
/* As att_splits_find() for `wanted`: *found is NULL if there is none. Errors: ERR_FORMAT (two names stand for the
 * split or, if `wanted` is NULL and split names are only words of the names, for any split; the message begins with
 * `path`). */
att_status att_splits_choose(const att_splits *splits, att_context *context, const char *path, const char *wanted,
                             const att_split **found);

#endif
