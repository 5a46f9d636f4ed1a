/* nn/module.h - what a module's descriptor must have. */
#ifndef ATT_NN_MODULE_H
#define ATT_NN_MODULE_H

#include <attscope/nn.h>

/* NULL where there is none of that name. */
const att_module *att_module_find(const att_context *context, const char *name);
/* ERR_ARGUMENT, in one sentence, where a member is missing or cannot be. The name is valid. */
att_status att_module_check(att_context *context, const att_module *module);

#endif
