/* ops/sum_samples.h - attributes of sum_samples. */
#ifndef ATT_OPS_SUM_SAMPLES_H
#define ATT_OPS_SUM_SAMPLES_H

#include <stdint.h>

/* axes: number of leading axes that are summed in addition to the samples. */
typedef struct att_sum_attrs {
    int32_t axes;
} att_sum_attrs;

#endif
