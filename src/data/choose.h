/* data/choose.h - images of a data set that a list names. */
#ifndef ATT_DATA_CHOOSE_H
#define ATT_DATA_CHOOSE_H

#include <attscope/data.h>

#include "core/export.h"

enum { ATT_MOST_CHOSEN = 65536 };

/* The images that a list names, in its order, none twice. Commas separate its items; a comma in a name is "\,". Digits
 * are the image's number, from 0. Anything else is the short name of an image (att_dataset_short_name()), or what
 * stands behind a '/' in it; '*' and '?' match any characters, and every image of that name is taken. On success
 * *images, `count` of them, is the caller's, freed by att_free(). Errors: ERR_ARGUMENT (an empty item, one that names
 * no image, more than ATT_MOST_CHOSEN images), ERR_MEMORY. */
ATT_FOR_LAB att_status att_dataset_choose(const att_dataset *dataset, att_context *context, const char *list,
                                          int64_t **images, int *count);

#endif
