/* ops/batch_moments.h - attributes of merge_moments, running_stats, batch_mean and merge_gram. */
#ifndef ATT_OPS_BATCH_MOMENTS_H
#define ATT_OPS_BATCH_MOMENTS_H

#include <stdint.h>

/* rows: rows per sample. */
typedef struct att_moments_attrs {
    int64_t rows;
    double momentum; /* running_stats: weight of the new value */
} att_moments_attrs;

#endif
