/* ops/binary_cross_entropy.h - attributes of binary_cross_entropy and its gradient. */
#ifndef ATT_OPS_BINARY_CROSS_ENTROPY_H
#define ATT_OPS_BINARY_CROSS_ENTROPY_H

#include <attscope/ops.h>

typedef att_binary_cross_entropy_options att_binary_cross_entropy_attrs;

#endif
