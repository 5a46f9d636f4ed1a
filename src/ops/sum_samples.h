/* ops/sum_samples.h - attributes of sum_samples. */
#ifndef ATT_OPS_SUM_SAMPLES_H
#define ATT_OPS_SUM_SAMPLES_H

#include <stdint.h>

/* sum_samples: how many of the first axes are summed, too. */
typedef struct att_sum_attrs {
    int32_t axes;
} att_sum_attrs;

#endif
