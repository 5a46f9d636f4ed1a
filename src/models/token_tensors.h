/* models/token_tensors.h - finds the modules of residual blocks of tokens (models/token_block.h) in the names of
 * tensors.
 */
#ifndef ATT_MODELS_TOKEN_TENSORS_H
#define ATT_MODELS_TOKEN_TENSORS_H

#include "models/detected_modules.h"
#include "models/token_block.h"

/* The scope of each hook's modules, below a block. */
extern const char *const att_token_branches[ATT_TOKEN_HOOKS];

/* Returns the module of a parameter, and its hook; NULL for others. rest: the parameter's name within the block;
 * has_attention: whether the file has the block's own attention. */
const att_module *att_token_module_at(const att_context *context, const char *rest, bool has_attention, int *hook);
/* Returns whether `rest` lies in the scope of a module. */
bool att_token_owns(const att_context *context, const char *rest);

#endif
