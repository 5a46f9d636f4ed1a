/* ops/cross_entropy.h - attributes of cross_entropy and its gradient. */
#ifndef ATT_OPS_CROSS_ENTROPY_H
#define ATT_OPS_CROSS_ENTROPY_H

#include <stdint.h>

typedef struct att_cross_entropy_attrs {
    double smoothing;
    int64_t rows; /* a bool without padding bytes: logits [N, C] with a class for each row, summed over the rows; class
                     ATT_NO_CLASS leaves its row out */
} att_cross_entropy_attrs;

#endif
