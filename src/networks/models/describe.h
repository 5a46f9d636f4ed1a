/* models/describe.h - descriptions of networks for people, beside att_identity_describe(). */
#ifndef ATT_MODELS_DESCRIBE_H
#define ATT_MODELS_DESCRIBE_H

#include <attscope/models.h>
#include <attscope/options.h>

#include "base/core/export.h"

/* Lists the modules and the extra layer that the options add to a network, for people: "cb, extra layer
 * attn"; "" if there are none. Returns `text`. */
enum { ATT_ADDITIONS_TEXT = ATT_OPTION_TEXT_BYTES + 32 };
ATT_FOR_LAB char *att_additions_describe(const att_option_values *options, char text[ATT_ADDITIONS_TEXT]);

/* Describes the head of a network with these options (NULL: none) for people: "10 classes", "no head", or "task NAME"
 * if the task has a head of its own, with the option "head" if it is given: "task segment, head uper". context: the one
 * in which the tasks are registered. Returns `text`. */
enum { ATT_HEAD_TEXT = ATT_OPTION_KEY + 24 };
ATT_FOR_LAB char *att_head_describe(const att_context *context, const att_option_values *options,
                                    char text[ATT_HEAD_TEXT]);

#endif
