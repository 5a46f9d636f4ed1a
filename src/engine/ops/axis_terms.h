/* ops/axis_terms.h - attributes of axis_terms and its gradient. */
#ifndef ATT_OPS_AXIS_TERMS_H
#define ATT_OPS_AXIS_TERMS_H

#include <stdint.h>

/* q has at least heads x width columns, the heads in order; more columns are ignored. Tokens 0..prefix-1 are not on the
 * grid. */
typedef struct att_axis_terms_attrs {
    int32_t heads, width, prefix, grid_h, grid_w;
    int32_t unused; /* in place of padding bytes */
    double scale;
} att_axis_terms_attrs;

#endif
