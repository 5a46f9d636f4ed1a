/* models/describe.h - descriptions of networks for people, beside those in attscope/models.h. */
#ifndef ATT_MODELS_DESCRIBE_H
#define ATT_MODELS_DESCRIBE_H

#include <attscope/options.h>

#include "base/core/export.h"

/* Lists the modules and the extra layer that the options add to a network, for people: "cb, extra layer
 * attn"; "" if there are none. Returns `text`. */
enum { ATT_ADDITIONS_TEXT = ATT_OPTION_TEXT_BYTES + 32 };
ATT_FOR_LAB char *att_additions_describe(const att_option_values *options, char text[ATT_ADDITIONS_TEXT]);

#endif
