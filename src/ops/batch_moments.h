/* ops/batch_moments.h - attributes of merge_moments, running_stats, batch_mean and merge_gram. */
#ifndef ATT_OPS_BATCH_MOMENTS_H
#define ATT_OPS_BATCH_MOMENTS_H

#include <stdint.h>

/* merge_moments, running_stats, batch_mean: rows of each sample. */
typedef struct att_moments_attrs {
    int64_t rows;
    double momentum; /* running_stats: the share of what is new */
} att_moments_attrs;

#endif
