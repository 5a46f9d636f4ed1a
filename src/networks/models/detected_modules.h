/* models/detected_modules.h - detects from tensor names which modules a file's network has, with which options, and
 * where.
 */
#ifndef ATT_MODELS_DETECTED_MODULES_H
#define ATT_MODELS_DETECTED_MODULES_H

#include "networks/models/module_options.h"
#include "networks/models/placement.h"

/* A module at one hook; at[b]: block b, counted over the whole network, has it. */
typedef struct att_detected_module {
    const att_module *module;
    int hook;
    bool at[ATT_BLOCKS];
} att_detected_module;

/* The detected modules, ordered by hook, then as in `attscope modules`. Zero-initialise. */
typedef struct att_detected_modules {
    int count;
    bool too_many; /* there were more than ATT_MOST_MODULES */
    att_detected_module items[ATT_MOST_MODULES];
} att_detected_modules;

/* How to find the blocks of a family in a file. */
typedef struct att_block_layout att_block_layout;
struct att_block_layout {
    const att_tensors *file;
    const att_hooks *hooks;
    att_stages stages;
    att_alias *alias; /* see att_family; NULL: none */
    /* Describes block `block`, counted over the whole network, at a hook. */
    void (*site)(const att_block_layout *places, const att_module *module, int hook, int block, att_module_block *site);
    const void *user;
};

/* Returns the module of a place whose parameter is `name`, a name without the block's prefix, of the form
 * "<branch>.<scope>.<parameter>"; NULL if there is none. */
const att_module *att_detected_find(const att_context *context, const char *name, const char *branch,
                                    att_module_place place);
/* Returns whether `name`, "<branch>.<scope>.*", lies in the scope of a module of the place, with parameters. */
bool att_detected_owns(const att_context *context, const char *name, const char *branch, att_module_place place);
/* Adds a module in a block; block < ATT_BLOCKS. */
void att_detected_add(const att_context *context, att_detected_modules *detected, const att_module *module, int hook,
                      int block);
/* Describes the blocks that have the module. Returns their number. */
int att_detected_sites(const att_block_layout *places, const att_detected_module *detected,
                       att_module_block sites[ATT_BLOCKS]);
/* Completes the description of a block with a module on tokens or heads from the tensors; the members `block`, `place`,
 * `channels` and `heads` must be set. */
void att_detected_describe(const att_tensors *file, const att_module *module, att_module_block *site);
/* Sets the option "modules" if there are any. Tensors do not show the order of two modules at one hook of one block;
 * the order of `attscope modules` is used. Errors: ERR_UNSUPPORTED if the text is too long or there are more than
 * ATT_MOST_MODULES; ERR_MEMORY. */
att_status att_detected_write(att_context *context, const att_block_layout *places,
                              const att_detected_modules *detected, att_option_values *found);
/* The same for a family without stages, with blocks called "blocks.3". For each hook, branches: the scope below the
 * block that contains the modules' scopes; widths: the channels of the modules' branch. `found` must have "depth", and
 * "num_heads" if there are modules of ATT_ON_HEADS. */
att_status att_detected_write_blocks(att_context *context, const att_tensors *file, const att_hooks *hooks,
                                     const char *const *branches, const int64_t *widths,
                                     const att_detected_modules *detected, att_option_values *found);

#endif
