/* ops/matmul.h - attributes of matmul. */
#ifndef ATT_OPS_MATMUL_H
#define ATT_OPS_MATMUL_H

#include <stdbool.h>

/* a_transposed: a lies as [.., K, M]; b_transposed: b lies as [.., N, K]. */
typedef struct att_matmul_attrs {
    double scale;
    bool a_transposed, b_transposed;
} att_matmul_attrs;

#endif
