/* data/class_tree.h - image files under class folders, from wherever their paths come. */
#ifndef ATT_DATA_CLASS_TREE_H
#define ATT_DATA_CLASS_TREE_H

#include "data/dataset.h"

/* A path like "data/train/cat/1.png"; once settled, inner begins at the class ("cat/1.png"). */
typedef struct att_tree_file {
    const char *path, *inner;
    int64_t member; /* the format's number for it */
} att_tree_file;

/* Zero-initialise, then set `context`. */
typedef struct att_class_tree {
    att_context *context;
    att_tree_file *files;
    int64_t count, capacity;
} att_class_tree;

/* Whether the name of a file says that it is an image, as timm decides it. */
bool att_tree_is_image(const char *name);
/* Adds a path, which must live as long as the tree. */
att_status att_class_tree_add(att_class_tree *tree, const char *path, int64_t member);
/* Goes into folders that hold everything, picks the split, leaves out what lies in no class folder, sorts, and fills
 * the data set's split, classes, labels and count. */
att_status att_class_tree_settle(att_class_tree *tree, att_dataset *dataset, const att_dataset_options *options);
void att_class_tree_free(att_class_tree *tree);

#endif
