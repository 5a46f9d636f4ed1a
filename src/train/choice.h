/* train/choice.h - picking a module by its name. */
#ifndef ATT_TRAIN_CHOICE_H
#define ATT_TRAIN_CHOICE_H

#include <attscope/train.h>

#include "core/error.h"

/* The index of `name` among at(0 .. count-1). `what` ("schedule") is for the message. ERR_NOT_FOUND names the nearest,
 * or all where none is near. */
att_status att_choice_find(att_context *context, const char *what, const char *name, att_choice (*at)(int), int count,
                           int *index);

#endif
