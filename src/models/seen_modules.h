/* models/seen_modules.h - which modules of tokens the names in a file show, and where. */
#ifndef ATT_MODELS_SEEN_MODULES_H
#define ATT_MODELS_SEEN_MODULES_H

#include <attscope/tensors.h>

#include "models/placement.h"

enum { ATT_SEEN_HOOKS = 4 };

/* At each hook which module, and in which blocks. Zero-initialise. */
typedef struct att_seen_modules {
    const att_module *module[ATT_SEEN_HOOKS];
    bool at[ATT_SEEN_HOOKS][ATT_BLOCKS];
} att_seen_modules;

/* The module whose parameter "<branch>.<scope>.<parameter>" is `name`, what follows a block's number; NULL for others.
 */
const att_module *att_seen_module(const char *name, const char *branch);
/* Notes a module of a block below ATT_BLOCKS. */
void att_seen_note(att_seen_modules *seen, const att_module *module, int hook, int block);
/* Sets "modules" where there are any, of a network of `depth` blocks. ERR_UNSUPPORTED where the text has no room. */
att_status att_seen_write(att_context *context, const att_tensors *file, const att_hooks *hooks, int depth,
                          const att_seen_modules *seen, att_option_values *found);

#endif
