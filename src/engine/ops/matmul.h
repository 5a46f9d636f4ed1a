/* ops/matmul.h - attributes of matmul. */
#ifndef ATT_OPS_MATMUL_H
#define ATT_OPS_MATMUL_H

#include <stdint.h>

/* a_transposed: a is stored as [.., K, M]. b_transposed: b is stored as [.., N, K]. */
typedef struct att_matmul_attrs {
    double scale;
    int32_t a_transposed, b_transposed; /* bools */
} att_matmul_attrs;

#endif
