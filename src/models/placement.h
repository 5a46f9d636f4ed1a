/* models/placement.h - which modules a network has, and where, as text.
 *
 *     modules   = "none" | placed {"+" placed}
 *     placed    = module ["@" hook [":" placement]]      module: att_module_parse()'s
 *     placement = item {"," item}          item = [stage ":"] choice
 *     choice    = "all" | "none" | "every:" K | N | N "-" M          stage = ["layer"] S
 *
 * Blocks count from 0, stages from 1. Without a stage, blocks are counted over the whole network; a stage holds for its
 * item and those that follow, until another is named: "layer3:0,2,layer4:all". What several items name is named once.
 * every:K names blocks 0, K, 2K, ...
 */
#ifndef ATT_MODELS_PLACEMENT_H
#define ATT_MODELS_PLACEMENT_H

#include <attscope/nn.h>

#include "core/options.h"

enum { ATT_STAGES = 4, ATT_BLOCKS = 1024, ATT_MOST_MODULES = 4 };

/* blocks[s] of stage s + 1; together at most ATT_BLOCKS. */
typedef struct att_stages {
    int count, blocks[ATT_STAGES];
} att_stages;

int att_stages_total(const att_stages *stages);

/* chosen[b], b over the whole network. ERR_ARGUMENT, saying what was expected. */
att_status att_placement_parse(att_context *context, const char *text, const att_stages *stages,
                               bool chosen[ATT_BLOCKS]);
/* The shortest of the texts for it that name no stages; false where that has no room. */
bool att_placement_format(const bool *chosen, const att_stages *stages, char *text, size_t size);

/* A module at one of the family's hooks. */
typedef struct att_placed_module {
    att_module_choice choice;
    int hook;
    bool at[ATT_BLOCKS];
    int hidden[ATT_BLOCKS]; /* the module's option `hidden` of this block; 0: as the choice says */
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

/* ERR_ARGUMENT, ERR_NOT_FOUND: unknown modules, hooks and options, with the nearest; a module that does not fit its
 * hook. */
att_status att_modules_parse(att_context *context, const att_hooks *hooks, const att_stages *stages, const char *text,
                             att_modules *modules);
/* Writes the first module that a text names and the context has not to `name`, as much as has room; false where it has
 * all of them. */
bool att_modules_lack(const att_context *context, const char *text, char *name, size_t size);
/* Writes one placed module: "se:ratio=8@after_branch:every:2", as short as it can be said. False where that has no
 * room.
 */
bool att_placed_format(const char *module, const att_hooks *hooks, int hook, const bool *chosen,
                       const att_stages *stages, char *text, size_t size);
bool att_modules_any(const att_modules *modules, int hook, int block);
/* Applies those of a hook and block one after the other; the branch itself where there are none. */
att_value att_modules_apply(const att_modules *modules, int hook, int block, const att_scope *scope, att_value branch,
                            att_value identity);

/* Of a text of one placed module: the bytes before "@". */
size_t att_placed_module_length(const char *text);
/* Whether both texts are of one placed module of the same name, or both of none. */
bool att_placed_same(const char *a, const char *b);
/* What `said` leaves open of a module, its options or its place, is taken from `known`, of the same module; "@..." is
 * any module. ERR_ARGUMENT where that names none. */
att_status att_placed_complete(att_context *context, const char *known, att_option_values *said);

/* Widths as runs of equal ones: "3x2,5x2,10" is 3, 3, 5, 5, 10. Parsing gives them to the chosen of `total` blocks in
 * order, and 0 to the others; ERR_ARGUMENT, saying what was expected. */
att_status att_widths_parse(att_context *context, const char *text, const bool *chosen, int total,
                            int widths[ATT_BLOCKS]);
/* Of `count` widths; false where the text has no room. */
bool att_widths_format(const int *widths, int count, char *text, size_t size);

#endif
