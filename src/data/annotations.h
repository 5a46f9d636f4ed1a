/* data/annotations.h - Tiny-ImageNet's own layout, in which a text file holds the classes of the validation images.
 *
 *     train/<class>/images/<name>.JPEG    train/<class>/<class>_boxes.txt
 *     val/images/<name>.JPEG              val/val_annotations.txt: "<name>.JPEG <class> ..." on each line
 *     test/images/<name>.JPEG             (no labels)
 */
#ifndef ATT_DATA_ANNOTATIONS_H
#define ATT_DATA_ANNOTATIONS_H

#include "data/class_tree.h"

#define ATT_ANNOTATIONS_PATH "val/val_annotations.txt"
enum { ATT_ANNOTATIONS_MAX = 16 << 20 }; /* largest size of the list file, in bytes */

/* Whether the last part of `path` is the file name of the list. */
bool att_annotations_named(const char *path);
/* Whether `path` is a class's list of bounding boxes, "<class>/<class>_boxes.txt". These files are part of the layout,
 * but are not read. */
bool att_annotations_boxes(const char *path);
/* If the tree contains the list and a folder "images" next to it, moves each image in that folder to the folder of its
 * class, and drops the images of the test split, which have no class. Otherwise does nothing. Errors: ERR_FORMAT (a
 * line without a class, two classes for one image), ERR_MISMATCH (no line names an image), those of tree->read. */
att_status att_annotations_apply(att_class_tree *tree, const att_dataset *dataset);

#endif
