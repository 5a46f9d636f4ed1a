/* ops/shift_scores.h - attributes of shift_scores and its gradient. */
#ifndef ATT_OPS_SHIFT_SCORES_H
#define ATT_OPS_SHIFT_SCORES_H

#include <stdint.h>

typedef struct att_shift_scores_attrs {
    int32_t prefix, height, width; /* tokens before the grid, and the grid */
    int32_t rows;                  /* of the table; for the gradient */
} att_shift_scores_attrs;

/* Shifts between tokens of the grid. */
static inline int64_t att_shift_count(const att_shift_scores_attrs *attrs)
{
    return (2 * (int64_t)attrs->height - 1) * (2 * (int64_t)attrs->width - 1);
}

static inline int64_t att_shift_tokens(const att_shift_scores_attrs *attrs)
{
    return attrs->prefix + (int64_t)attrs->height * attrs->width;
}

/* Row of a table for query i and key j: the shift from key to query or, behind all shifts, the number of a prefix token
 * as query, as key, as both. */
static inline int64_t att_shift_between(const att_shift_scores_attrs *attrs, int64_t i, int64_t j)
{
    int64_t prefix = attrs->prefix, h = attrs->height, w = attrs->width;
    if (i < prefix || j < prefix)
        return att_shift_count(attrs) + (i < prefix && j < prefix ? 2 : j < prefix);
    i -= prefix, j -= prefix;
    return (i / w - j / w + h - 1) * (2 * w - 1) + i % w - j % w + w - 1;
}

#endif
