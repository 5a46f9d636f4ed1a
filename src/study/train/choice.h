/* train/choice.h - finds an item of a list by its name. */
#ifndef ATT_TRAIN_CHOICE_H
#define ATT_TRAIN_CHOICE_H

#include <attscope/train.h>

#include "base/core/error.h"

/* Finds the index of `name` among at(0 .. count-1). `what`: kind of item for the message, such as "schedule". Errors:
 * ERR_NOT_FOUND, whose message suggests the most similar name, or lists all names. */
att_status att_choice_find(att_context *context, const char *what, const char *name, att_choice (*at)(int), int count,
                           int *index);

#endif
