/* ops/channel_gram.h - attributes of gram_norm and its gradient. */
#ifndef ATT_OPS_CHANNEL_GRAM_H
#define ATT_OPS_CHANNEL_GRAM_H

#include <stdint.h>

/* Attributes of gram_norm and its gradient. rows: rows per sample. */
typedef struct att_gram_norm_attrs {
    double eps;
    int64_t rows;
} att_gram_norm_attrs;

#endif
