/* ops/residual_norms.h - attributes of residual_norms. */
#ifndef ATT_OPS_RESIDUAL_NORMS_H
#define ATT_OPS_RESIDUAL_NORMS_H

#include <stdbool.h>

/* median: subtract each channel's median over the tokens; otherwise its mean. */
typedef struct att_centre_attrs {
    bool median;
} att_centre_attrs;

#endif
