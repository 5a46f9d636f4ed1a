/* layouts/pattern.h - patterns of tensor names, as in att_layout_row. */
#ifndef ATT_LAYOUTS_PATTERN_H
#define ATT_LAYOUTS_PATTERN_H

#include <stdbool.h>

enum { ATT_PATTERN_NUMBERS = 3, ATT_PATTERN_NAME = 256 };

/* What the signs of a pattern stand for in a name. */
typedef struct att_captured {
    int numbers[ATT_PATTERN_NUMBERS], count;
    const char *text; /* of '@' */
} att_captured;

/* Returns whether the pattern fits the whole name. '+' stands for a number above 0, which is captured less one. */
bool att_pattern_matches(const char *pattern, const char *name, att_captured *found);
/* Writes the name that a pattern without '*' makes of what another one captured. */
void att_pattern_name(const char *pattern, const att_captured *found, char name[ATT_PATTERN_NAME]);

#endif
