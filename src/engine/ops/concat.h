/* ops/concat.h - attributes of concat's gradient. */
#ifndef ATT_OPS_CONCAT_H
#define ATT_OPS_CONCAT_H

#include <stdint.h>

/* first: number of columns of the first operand. */
typedef struct att_concat_attrs {
    int32_t first;
} att_concat_attrs;

#endif
