/* models/seen_modules.h - which modules the names in a file show, with which options, and where. */
#ifndef ATT_MODELS_SEEN_MODULES_H
#define ATT_MODELS_SEEN_MODULES_H

#include "models/module_options.h"
#include "models/placement.h"

/* A module at one hook; at[b]: block b of the whole network has it. */
typedef struct att_seen_module {
    const att_module *module;
    int hook;
    bool at[ATT_BLOCKS];
} att_seen_module;

/* In the order of hooks, at one hook in the order of `attscope modules`. Zero-initialise. */
typedef struct att_seen_modules {
    int count;
    bool too_many; /* the file has more than there is room for */
    att_seen_module items[ATT_MOST_MODULES];
} att_seen_modules;

/* How the blocks of a family are called. */
typedef struct att_seen_places att_seen_places;
struct att_seen_places {
    const att_tensors *file;
    const att_hooks *hooks;
    att_stages stages;
    att_alias *alias; /* att_family's; NULL: it has none */
    /* Describes block `block` of the whole network at a hook. */
    void (*site)(const att_seen_places *places, const att_module *module, int hook, int block, att_module_site *site);
    const void *user;
};

/* The module of tokens whose parameter "<branch>.<scope>.<parameter>" is `name`, what follows a block's number; NULL
 * for others. */
const att_module *att_seen_find(const att_context *context, const char *name, const char *branch);
/* Whether `name` lies in the scope of a module of tokens that has parameters: "<branch>.<scope>.*". */
bool att_seen_owns(const att_context *context, const char *name, const char *branch);
/* Notes a module of a block below ATT_BLOCKS. */
void att_seen_note(const att_context *context, att_seen_modules *seen, const att_module *module, int hook, int block);
/* The blocks with one of the modules. Returns how many there are. */
int att_seen_sites(const att_seen_places *places, const att_seen_module *seen, att_module_site sites[ATT_BLOCKS]);
/* Sets "modules" where there are any. Tensors do not show the order of two modules at one hook of one block: it is that
 * of `attscope modules`. Errors: ERR_UNSUPPORTED where the text has no room, or for more than ATT_MOST_MODULES;
 * ERR_MEMORY. */
att_status att_seen_write(att_context *context, const att_seen_places *places, const att_seen_modules *seen,
                          att_option_values *found);
/* The same for a family without stages whose blocks are called "blocks.3". branches: of each hook, the branch's name
 * below the block. `found` has "depth" and "embed_dim", the width of every branch. */
att_status att_seen_write_blocks(att_context *context, const att_tensors *file, const att_hooks *hooks,
                                 const char *const *branches, const att_seen_modules *seen, att_option_values *found);

#endif
