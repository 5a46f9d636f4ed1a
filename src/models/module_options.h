/* models/module_options.h - what the tensors of a checkpoint say of the options that its modules were made with. */
#ifndef ATT_MODELS_MODULE_OPTIONS_H
#define ATT_MODELS_MODULE_OPTIONS_H

#include <attscope/nn.h>
#include <attscope/tensors.h>

typedef bool att_alias(const char *name, int index, char *other, size_t size);

/* A block with the module. */
typedef struct att_module_site {
    char block[24];   /* "layer1.0" */
    int64_t channels; /* of its branch */
    int tensors;      /* that the file has in the module's scope there */
} att_module_site;

/* Writes the module as text, "se:ratio=8", with the options for which its parameters have the names and shapes that the
 * file has at each of the `count` sites: the defaults where these do, or where no options do. Options that show in no
 * tensor stay the defaults. alias: as att_family's. Errors: ERR_MEMORY. */
att_status att_module_options_infer(att_context *context, const att_tensors *file, const att_module *module,
                                    const att_module_site *sites, int count, att_alias *alias, char *text, size_t size);

#endif
