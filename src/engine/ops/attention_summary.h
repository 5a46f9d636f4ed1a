/* ops/attention_summary.h - attributes of attention_summary. */
#ifndef ATT_OPS_ATTENTION_SUMMARY_H
#define ATT_OPS_ATTENTION_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

/* Columns of an attention summary, which has one row per head: means of the row statistics over all queries; those of
 * distances and shifts, over grid queries only. */
typedef enum att_attention_summary_column {
    ATT_SUMMARY_ENTROPY,
    ATT_SUMMARY_NUCLEAR,         /* 1 - sum a^2 */
    ATT_SUMMARY_FROBENIUS,       /* sqrt(sum a^2 - 2 sum a^3 + (sum a^2)^2) */
    ATT_SUMMARY_DISTANCE,        /* as ATT_STAT_DISTANCE */
    ATT_SUMMARY_DISTANCE_OTHERS, /* the distance divided by the mass on other grid tokens; 0 if there is no such mass */
    ATT_SUMMARY_PREFIX,
    ATT_SUMMARY_SELF,
    ATT_SUMMARY_MAX,
    /* Moments of the shift, ATT_STAT_Y to ATT_STAT_YX, divided by the mass on the grid; 0 if there is no such mass. Y
       and X are of a query's mean shift, YY, XX and YX of the shifts about it. */
    ATT_SUMMARY_Y,
    ATT_SUMMARY_X,
    ATT_SUMMARY_YY,
    ATT_SUMMARY_XX,
    ATT_SUMMARY_YX,
    /* Variances and covariance, over the queries, of a query's mean shift. With YY, XX and YX they add up to those of
       all shifts of a head. */
    ATT_SUMMARY_BETWEEN_YY,
    ATT_SUMMARY_BETWEEN_XX,
    ATT_SUMMARY_BETWEEN_YX,
    ATT_SUMMARY_COUNT
} att_attention_summary_column;

/* Whether the column is a mean over grid queries. */
static inline bool att_summary_is_spatial(int column)
{
    return column == ATT_SUMMARY_DISTANCE || column == ATT_SUMMARY_DISTANCE_OTHERS ||
           (column >= ATT_SUMMARY_Y && column <= ATT_SUMMARY_BETWEEN_YX);
}

/* A smaller mass on other tokens, or on the grid, counts as 0: it is below the accuracy of 1 - prefix - self in f32. */
#define ATT_SUMMARY_LEAST_MASS 1e-6

typedef struct att_attention_summary_attrs {
    int32_t prefix;
} att_attention_summary_attrs;

#endif
