/* ops/attention.h - attributes of attention and its gradient. */
#ifndef ATT_OPS_ATTENTION_H
#define ATT_OPS_ATTENTION_H

#include <stdint.h>

/* Columns of the attention statistics, which have one row per head and query. a is the query's row of the attention
 * map. */
typedef enum att_attention_stat {
    ATT_STAT_ENTROPY,  /* -sum_j a_j ln a_j, nats */
    ATT_STAT_SUM2,     /* sum_j a_j^2 */
    ATT_STAT_SUM3,     /* sum_j a_j^3 */
    ATT_STAT_DISTANCE, /* sum over spatial j != i of a_j ||p_i - p_j||; 0 for prefix queries */
    ATT_STAT_PREFIX,   /* sum over prefix tokens (class token, registers) of a_j */
    ATT_STAT_SELF,     /* a_i */
    ATT_STAT_MAX,      /* max_j a_j */
    ATT_STAT_ARGMAX,   /* the smallest j with the maximum */
    ATT_STAT_COUNT
} att_attention_stat;

/* Tokens 0..prefix-1 are not on the grid. The others fill grid_h x grid_w, row by row (0 x 0: no grid), with distance
 * step_h between adjacent rows and step_w between adjacent columns. */
typedef struct att_attention_attrs {
    int32_t heads, prefix, grid_h, grid_w;
    double step_h, step_w;
    double scale; /* factor of q . k, usually 1/sqrt(d) */
} att_attention_attrs;

#endif
