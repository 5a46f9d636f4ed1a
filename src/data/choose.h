/* data/choose.h - selects images of a data set by a list of names and numbers. */
#ifndef ATT_DATA_CHOOSE_H
#define ATT_DATA_CHOOSE_H

#include <attscope/data.h>

#include "base/core/export.h"

enum { ATT_MAX_CHOSEN = 65536 };

/* Finds the images that a list names, in the list's order and without repetition. Commas separate the items; "\," is a
 * comma within a name. An item of digits is the image's number, from 0. Any other item is an image's short name
 * (att_dataset_short_name()), or the part of the short name after one of its slashes; '*' and '?' are wildcards, and
 * all matching images are selected. On success the caller owns *images (`count` numbers) and frees it with att_free().
 * Errors: ERR_ARGUMENT (an empty item, an item without an image, more than ATT_MAX_CHOSEN images), ERR_MEMORY. */
ATT_FOR_LAB att_status att_dataset_choose(const att_dataset *dataset, att_context *context, const char *list,
                                          int64_t **images, int *count);

#endif
