/* models/placement.h - the option "modules": which modules a network has, and where.
 *
 *     modules   = "none" | placed {"+" placed}
 *     placed    = module ["@" hook [":" placement]]      module: as att_module_parse() takes it
 *     placement = item {"," item}          item = [stage ":"] choice
 *     choice    = "all" | "none" | "every:" K | N | N "-" M          stage = ["layer"] S
 *
 * Blocks count from 0, stages from 1. Without a stage, blocks are counted over the whole network. A stage applies to
 * its item and all items up to the next stage: "layer3:0,2,layer4:all". A block may be named only once. every:K names
 * the blocks 0, K, 2K, ...
 */
#ifndef ATT_MODELS_PLACEMENT_H
#define ATT_MODELS_PLACEMENT_H

#include <attscope/nn.h>

#include "base/core/options.h"

enum { ATT_STAGES = 4, ATT_BLOCKS = 1024, ATT_MOST_MODULES = 4 };

/* blocks[s] is the number of blocks in stage s + 1; at most ATT_BLOCKS in total. */
typedef struct att_stages {
    int count, blocks[ATT_STAGES];
} att_stages;

int att_stages_total(const att_stages *stages);
/* Returns the number of blocks before stage `stage`, which counts from 0. */
int att_stages_before(const att_stages *stages, int stage);
/* Returns the stage, from 0, of a block that is counted over the whole network. *block becomes its number there. */
int att_stages_find(const att_stages *stages, int *block);
/* Parse the texts of options about stages. att_stages_parse(): the numbers of blocks, "2,2,6,2". att_stages_numbers():
 * a number for each of `stages` stages, or one for all; from `low` to 65536. The text is rewritten in one form: a
 * single number if all are the same. key: the option, for messages. Errors: ERR_ARGUMENT. */
att_status att_stages_parse(att_context *context, const char *key, const char *text, att_stages *stages);
att_status att_stages_numbers(att_context *context, const char *key, char *text, size_t size, int low, int stages,
                              int numbers[ATT_STAGES]);
/* The drop path rate of block `index` of `count`: rates rise linearly with depth, and the last block has `last`. */
double att_drop_path_of(double last, int index, int count);

/* Sets chosen[b] for the blocks b of the whole network. Errors: ERR_ARGUMENT. */
att_status att_placement_parse(att_context *context, const char *text, const att_stages *stages,
                               bool chosen[ATT_BLOCKS]);
/* Writes the shortest text for the chosen blocks that names no stages; returns false if it does not fit. */
bool att_placement_format(const bool *chosen, const att_stages *stages, char *text, size_t size);

/* A module at one of the family's hooks. */
typedef struct att_placed_module {
    att_module_choice choice;
    int hook;
    bool at[ATT_BLOCKS];
    int hidden[ATT_BLOCKS]; /* value of the module's option "hidden" in each block; 0: that of `choice` */
} att_placed_module;

typedef struct att_modules {
    int count;
    att_placed_module items[ATT_MOST_MODULES];
} att_modules;

/* The hooks of a family. */
typedef struct att_hooks {
    const att_module_hook *items;
    int count;
} att_hooks;

/* The hook of networks that have one only: on feature maps, at the end of a block's residual branch. */
enum { ATT_AFTER_BRANCH };
extern const att_module_hook att_branch_hook_list[1];
#define ATT_BRANCH_HOOK_SET     \
    {                           \
        att_branch_hook_list, 1 \
    }
extern const att_hooks att_branch_hooks;

/* Parses the option "modules". Errors: ERR_ARGUMENT, ERR_NOT_FOUND for unknown modules, hooks and options (with the
 * nearest name), and for a module that does not fit its hook. */
att_status att_modules_parse(att_context *context, const att_hooks *hooks, const att_stages *stages, const char *text,
                             att_modules *modules);
/* Writes the first module that the text names and the context lacks to `name`, truncated to `size`; returns false if
 * the context has all of them. */
bool att_modules_find_missing(const att_context *context, const char *text, char *name, size_t size);
/* Writes one placed module in its shortest form: "se:ratio=8@after_branch:every:2". module_text: the module with its
 * options, "se:ratio=8". Returns false if it does not fit. */
bool att_placed_format(const att_module *module, const char *module_text, const att_hooks *hooks, int hook,
                       const bool *chosen, const att_stages *stages, char *text, size_t size);
bool att_modules_any(const att_modules *modules, int hook, int block);
/* Returns how many heads of its attention the modules of a hook and block replace. */
int att_modules_replaced_heads(const att_modules *modules, int hook, int block);
/* Applies the modules of a hook and block in order, each to the branch that the one before it made. Returns the branch
 * itself if there are none. */
att_value att_modules_apply(const att_modules *modules, int hook, int block, const att_scope *scope,
                            const att_module_site *at);

/* Returns whether both texts are one placed module of the same name, or both "none". */
bool att_placed_same(const char *a, const char *b);
/* Completes the option "modules" in `given`, if it leaves open options or placement of a module, from `known`, a text
 * with the same module. "@..." stands for the module of `known`; ERR_ARGUMENT if `known` does not name exactly one
 * module. */
att_status att_placed_complete(att_context *context, const char *known, att_option_values *given);

/* Widths in run-length form: "3x2,5x2,10" is 3, 3, 5, 5, 10. Assigns them to the chosen ones of `total` blocks, in
 * order, and 0 to the others. Errors: ERR_ARGUMENT. */
att_status att_widths_parse(att_context *context, const char *text, const bool *chosen, int total,
                            int widths[ATT_BLOCKS]);
/* Writes `count` widths in that form; returns false if the text does not fit. */
bool att_widths_format(const int *widths, int count, char *text, size_t size);

#endif
