/* nn/module.h - finds modules and checks their descriptors. */
#ifndef ATT_NN_MODULE_H
#define ATT_NN_MODULE_H

#include <attscope/nn.h>

#include "base/core/export.h"

/* Returns the module `name`; NULL if there is none. */
const att_module *att_module_find(const att_context *context, const char *name);
/* Checks all members except the name, which must be valid. Errors: ERR_ARGUMENT if one is missing or invalid. */
att_status att_module_check(att_context *context, const att_module *module);

/* Applies the choice in its scope below `scope` ("blocks.0.mlp" gives "blocks.0.mlp.cb.weight"). Returns the branch
 * itself if the choice has no module. A branch of the wrong kind fails the graph (ERR_UNSUPPORTED). */
att_value att_module_apply(const att_module_choice *choice, const att_scope *scope, const att_module_site *site);

/* Whether the module of a choice, which is not "none", has parameters with the options of the choice. */
ATT_FOR_LAB bool att_module_has_parameters(const att_module_choice *choice);

#endif
