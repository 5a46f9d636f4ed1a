/* data/tar_set.h - which tars are one data set: a single tar, those that a pattern names, or those of a split in a
 * folder. */
#ifndef ATT_DATA_TAR_SET_H
#define ATT_DATA_TAR_SET_H

#include "data/dataset.h"

/* Zero-initialise, then set `arena.context`. The arena owns all texts. */
typedef struct att_tar_set {
    att_arena arena;
    const char *folder; /* of all tars */
    const char **names; /* their paths relative to the folder, in the order of the data set */
    int count, capacity;
    const char *split; /* static string; "" if the tars belong to no split */
    bool class_tars;   /* a tar whose images lie in no folder is a class, named by the tar */
} att_tar_set;

/* Whether `path` does not exist and has braces: "train-{000..146}.tar", "{cat,dog}.tar". */
bool att_tar_set_is_pattern(const char *path);
/* Whether the path is a plain tar, a pattern, or a folder with tars that are a data set or a split of one. */
bool att_tar_set_accepts(const char *path);
/* Finds the tars of the split `wanted` (NULL: the first split that exists), or, if unlabelled, of all splits. In a
 * folder these are, by falling preference:
 *
 *  - the tars in the folder's folder of the split, if that holds neither folders nor images
 *  - the tars that the folder's _info.json lists for the split, as timm does
 *  - the folder's tars whose names have the name of the split as a word: "imagenet-train-000000.tar". Of the files of
 *    ILSVRC2012, only the images of training and validation count
 *  - if no split is found at all: all tars of the folder
 *
 * The last three are not tried if the folder holds images, or folders that are neither those of a split nor ImageNet's
 * devkit. The set is empty if the folder has class folders of the split, or the split is missing. Errors: ERR_ARGUMENT
 * (a pattern that is not valid), ERR_NOT_FOUND (a listed tar is missing), ERR_FORMAT (a damaged _info.json; two folders
 * of one split), ERR_IO, ERR_MEMORY. The caller frees the set, also after a failure. */
att_status att_tar_set_find(att_tar_set *set, const char *path, const char *wanted, bool unlabelled);
/* Whether the path ends in ".tar", in upper or lower case. */
bool att_tar_named(const char *path);
/* Returns the split whose name is a word of the tar's name, as above; NULL if there is none. */
const char *att_tar_set_split(const char *name);
void att_tar_set_free(att_tar_set *set);

#endif
