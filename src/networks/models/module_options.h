/* models/module_options.h - infers the options of modules from the tensors of a checkpoint. */
#ifndef ATT_MODELS_MODULE_OPTIONS_H
#define ATT_MODELS_MODULE_OPTIONS_H

#include <attscope/nn.h>
#include <attscope/tensors.h>

/* Writes alternative name `index` that files use for the parameter `name`; returns false past the last. */
typedef bool att_alias(const att_context *context, const char *name, int index, char *other, size_t size);

/* A block that has the module. */
typedef struct att_module_block {
    char block[32];         /* the scope that contains the module's: "layer1.0", "blocks.3.mlp" */
    att_module_place place; /* what it changes there */
    int64_t channels;       /* channels of its branch */
    int tensors;            /* number of the file's tensors in the module's scope there */
    /* ATT_ON_HEADS: heads of the attention without the module, and how many of them the file's attention lacks */
    int heads, replaced_heads;
    bool has_bias; /* ATT_ON_HEADS: the attention's queries, keys and values have biases */
} att_module_block;

/* The blocks of a file that have a module. */
typedef struct att_module_places {
    const att_tensors *file;
    const att_module_block *sites;
    int count;
    att_alias *alias; /* see att_family; NULL: none */
} att_module_places;

/* Finds options with which the module's parameters have the names and shapes that the file has at every site, and
 * writes the module with them: "se:ratio=8". Defaults are preferred; they are also used if no options fit (*fits
 * false). Options that the tensors do not show keep their defaults, and so does the ratio if no ratio gives the hidden
 * widths of all sites. Errors: ERR_MEMORY. */
att_status att_module_options_infer(att_context *context, const att_module_places *places, const att_module *module,
                                    char *text, size_t size, bool *fits);

/* Checks a given choice, written as `text`, against the file. If it fits only with a different hidden width at each
 * site, *own is true and hidden[i] is the width of site i. A width given in the text is not changed. If the text gives
 * a ratio, each width must differ from C / ratio by less than 1, as rounding does. Errors: ERR_MEMORY. */
att_status att_module_options_fit(att_context *context, const att_module_places *places,
                                  const att_module_choice *choice, const char *text, int *hidden, bool *own);

/* Sets the module's option "hidden"; returns false if it has none. */
bool att_module_set_hidden(att_module_choice *choice, int hidden);

#endif
