/* models/placement.h - which blocks of a network bear a module, as text.
 *
 *     placement = item {"," item}          item = [stage ":"] choice
 *     choice    = "all" | "none" | "every:" K | N | N "-" M          stage = ["layer"] S
 *
 * Blocks count from 0, stages from 1. Without a stage, blocks are counted over the whole network; a stage holds for its
 * item and those that follow, until another is named: "layer3:0,2,layer4:all". What several items name is named once.
 * every:K names blocks 0, K, 2K, ...
 */
#ifndef ATT_MODELS_PLACEMENT_H
#define ATT_MODELS_PLACEMENT_H

#include <attscope/context.h>

enum { ATT_STAGES = 4, ATT_BLOCKS = 512 };

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

/* Widths as runs of equal ones: "3x2,5x2,10" is 3, 3, 5, 5, 10. Parsing gives them to the chosen of `total` blocks in
 * order, and 0 to the others; ERR_ARGUMENT, saying what was expected. */
att_status att_widths_parse(att_context *context, const char *text, const bool *chosen, int total,
                            int widths[ATT_BLOCKS]);
/* Of `count` widths; false where the text has no room. */
bool att_widths_format(const int *widths, int count, char *text, size_t size);

#endif
