/* data/devkit.h - ImageNet's development kit, which holds the classes of the validation images.
 *
 * The images ILSVRC2012_val_00000001.JPEG to ILSVRC2012_val_00050000.JPEG lie in one folder or tar without classes. The
 * kit is the file ILSVRC2012_devkit_t12.tar.gz, that file unpacked to a .tar, or its folder ILSVRC2012_devkit_t12:
 *
 *     data/ILSVRC2012_validation_ground_truth.txt    line n: ILSVRC2012_ID of the class of image n
 */
#ifndef ATT_DATA_DEVKIT_H
#define ATT_DATA_DEVKIT_H

#include "data/class_tree.h"

/* Moves each validation image that lies in no class folder to the folder named by its WNID. The kit is looked for in
 * the data set's path and in the folder that holds this path. Without a kit does nothing, unless all images need it:
 * then fails with ERR_NOT_FOUND. Other errors: ERR_FORMAT (the kit is damaged), ERR_MISMATCH (the kit lacks an image),
 * ERR_IO, ERR_MEMORY. */
att_status att_devkit_apply(att_class_tree *tree, const att_dataset *dataset);

/* Returns n for a path that ends in "ILSVRC2012_val_<n, eight digits>", with or without an extension; 0 for others. */
int64_t att_devkit_image_number(const char *path);

#endif
