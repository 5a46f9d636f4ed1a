/* data/class_tree.h - image files under class folders, from wherever their paths come. */
#ifndef ATT_DATA_CLASS_TREE_H
#define ATT_DATA_CLASS_TREE_H

#include "data/dataset.h"

/* A path like "data/train/cat/1.png"; once settled, inner begins at the class ("cat/1.png"). */
typedef struct att_tree_file {
    const char *path, *inner;
    int64_t member; /* the format's number for it */
} att_tree_file;

typedef struct att_tree_list {
    att_tree_file *files;
    int64_t count, capacity;
} att_tree_list;

/* Zero-initialise, then set `context` and `read`. */
typedef struct att_class_tree {
    att_context *context;
    att_tree_list images;
    att_tree_list others; /* files that are none, and folders, whose paths end in a slash */
    /* Reads a file among the others, of at most `most` bytes, and puts a NUL behind it; *text is the caller's. */
    att_status (*read)(const att_dataset *dataset, const att_tree_file *file, size_t most, char **text);
    att_arena moved; /* inner paths that data/annotations.h makes */
} att_class_tree;

/* Whether a file's name says that it is an image. */
bool att_class_tree_is_image(const char *path);
/* Adds the path of a file, or of a folder with a slash behind it, which must live as long as the tree. A file's name
 * says whether it is an image, as timm decides it; hidden ones are passed over. */
att_status att_class_tree_add(att_class_tree *tree, const char *path, int64_t member);
/* Goes into folders that hold everything, picks the split, leaves out what lies in no class folder, sorts, and fills
 * the data set's split, classes, labels and count. One path twice is refused (ERR_FORMAT). Says in the log what other
 * files lie in class folders, and which of these have no image. */
att_status att_class_tree_settle(att_class_tree *tree, att_dataset *dataset, const att_dataset_options *options);
void att_class_tree_free(att_class_tree *tree);

#endif
