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
enum { ATT_ANNOTATIONS_MAX = 16 << 20 }; /* bytes of the text */

/* Whether the path of a file ends as that of the list does. */
bool att_annotations_named(const char *path);
/* Whether the path is that of a class's bounding boxes, "<class>/<class>_boxes.txt", which belong to the layout and
 * are not read. */
bool att_annotations_boxes(const char *path);
/* Where the tree holds the list and images in the folder "images" beside it, puts each of these images into the folder
 * of its class, and takes the images of test, which have no class, out of the tree; else does nothing. Errors:
 * ERR_FORMAT (a line without a class, two classes of one image), ERR_MISMATCH (an image that no line names), those of
 * tree->read. */
att_status att_annotations_apply(att_class_tree *tree, const att_dataset *dataset);

#endif
