/* nn/module.h - finds modules and checks their descriptors. */
#ifndef ATT_NN_MODULE_H
#define ATT_NN_MODULE_H

#include <attscope/nn.h>

/* Returns the module `name`; NULL if there is none. */
const att_module *att_module_find(const att_context *context, const char *name);
/* Checks all members except the name, which must be valid. Errors: ERR_ARGUMENT if one is missing or invalid. */
att_status att_module_check(att_context *context, const att_module *module);

#endif
