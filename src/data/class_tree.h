/* data/class_tree.h - image files in class folders. The paths come from a folder on disk or from an archive. */
#ifndef ATT_DATA_CLASS_TREE_H
#define ATT_DATA_CLASS_TREE_H

#include "data/dataset.h"

/* path: for example "data/train/cat/1.png". inner: after att_class_tree_resolve(), the part that begins with the class,
 * "cat/1.png". */
typedef struct att_tree_file {
    const char *path, *inner;
    int64_t member; /* number of the file, assigned by the data format */
} att_tree_file;

typedef struct att_tree_list {
    att_tree_file *files;
    int64_t count, capacity;
} att_tree_list;

/* Zero-initialise, then set `context` and `read`. */
typedef struct att_class_tree {
    att_context *context;
    att_split split; /* the top-level folder of the split; split.split is NULL while it is unknown, or there is none */
    att_tree_list images;
    att_tree_list others; /* files that are not images, and folders, whose paths end in a slash */
    /* Reads a file of `others`, of at most `most` bytes, and appends a NUL. *size: without this NUL. The caller owns
     * *text. */
    att_status (*read)(const att_dataset *dataset, const att_tree_file *file, size_t most, char **text, size_t *size);
    att_arena moved; /* owns the inner paths that annotations.c and devkit.c make */
} att_class_tree;

/* Whether a file's name has the extension of an image. */
bool att_class_tree_is_image(const char *path);
/* Adds the path of a file, or of a folder, which ends in a slash. The string must live as long as the tree. Files are
 * recognised as images by their extension, as in timm. Hidden files and folders are ignored. */
att_status att_class_tree_add(att_class_tree *tree, const char *path, int64_t member);
/* Sets the split of the tree and of the data set. found: one of `splits`, for `wanted` (NULL: any). */
void att_class_tree_set_split(att_class_tree *tree, att_dataset *dataset, const att_splits *splits,
                              const att_split *found, const char *wanted);
/* Removes common outer folders, selects the split, drops images outside of class folders, sorts the images, and fills
 * the data set's split, classes, labels and count. Logs warnings about other files in class folders and about class
 * folders without images. Errors: ERR_FORMAT (the same path twice, no images, class folders named as splits, numbers of
 * classes that can be read in two ways, a number that is none of the training's names), ERR_NOT_FOUND (no such split),
 * ERR_MISMATCH (a class that the class map lacks), ERR_UNSUPPORTED (compressed tars in place of images), ERR_MEMORY. */
att_status att_class_tree_resolve(att_class_tree *tree, att_dataset *dataset, const att_dataset_options *options);
/* The last step of att_class_tree_resolve(), for a tree of labelled images whose inner paths begin with the class:
 * sorts the images, and fills the data set's classes, labels and count. Errors: ERR_FORMAT, ERR_MISMATCH, ERR_MEMORY.
 */
att_status att_class_tree_number(att_class_tree *tree, att_dataset *dataset, const att_dataset_options *options);
void att_class_tree_free(att_class_tree *tree);

/* Adds all files and folders below the folder `root` to the tree, which needs no more than its `context`. names: owns
 * the paths, which begin below `root`. Errors: ERR_IO, ERR_UNSUPPORTED, ERR_STOPPED, ERR_MEMORY. */
att_status att_folder_walk(const char *root, att_class_tree *tree, att_arena *names);

#endif
