/* models/module_options.h - what the tensors of a checkpoint say of the options that its modules were made with. */
#ifndef ATT_MODELS_MODULE_OPTIONS_H
#define ATT_MODELS_MODULE_OPTIONS_H

#include <attscope/nn.h>
#include <attscope/tensors.h>

/* Writes the index-th other name under which files have parameter `name`; false past the last. */
typedef bool att_alias(const att_context *context, const char *name, int index, char *other, size_t size);

/* A block with the module. */
typedef struct att_module_site {
    char block[32];   /* the scope that the module's own lies in: "layer1.0", "blocks.3.mlp" */
    int64_t channels; /* of its branch */
    int tensors;      /* that the file has in the module's scope there */
} att_module_site;

/* Where modules lie in a file. */
typedef struct att_module_places {
    const att_tensors *file;
    const att_module_site *sites;
    int count;
    att_alias *alias; /* att_family's; NULL: it has none */
} att_module_places;

/* Writes the module as text, "se:ratio=8", with the options for which its parameters have the names and shapes that the
 * file has at each site: the defaults where these do, or where no options do. Options that show in no tensor stay the
 * defaults; so does the ratio where no ratio gives the hidden widths of all sites. Errors: ERR_MEMORY. */
att_status att_module_options_infer(att_context *context, const att_module_places *places, const att_module *module,
                                    char *text, size_t size);

/* For a choice that is known, written as `text`. *own: whether it fits the file only with hidden widths of each site's
 * own; hidden[i] is then that of site i. A width that the text says is kept. Where it says a ratio, the widths differ
 * from C / ratio by less than 1, by rounding. Errors: ERR_MEMORY. */
att_status att_module_options_fit(att_context *context, const att_module_places *places,
                                  const att_module_choice *choice, const char *text, int *hidden, bool *own);

/* Sets the module's option `hidden`; false where it has none. */
bool att_module_set_hidden(att_module_choice *choice, int hidden);

#endif
