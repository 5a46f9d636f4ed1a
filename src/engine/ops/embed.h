/* ops/embed.h - attributes of embed_grad. */
#ifndef ATT_OPS_EMBED_H
#define ATT_OPS_EMBED_H

#include <stdint.h>

/* rows: number of rows of the table. */
typedef struct att_embed_attrs {
    int64_t rows;
} att_embed_attrs;

#endif
