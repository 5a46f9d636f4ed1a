/* ops/residual_norms.h - attributes of residual_norms. */
#ifndef ATT_OPS_RESIDUAL_NORMS_H
#define ATT_OPS_RESIDUAL_NORMS_H

#include <stdbool.h>

/* residual_norms: what is taken from every token, the median of each channel or the mean. */
typedef struct att_centre_attrs {
    bool median;
} att_centre_attrs;

#endif
