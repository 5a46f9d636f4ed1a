/* ops/drop.h - attributes of dropout and drop_path. */
#ifndef ATT_OPS_DROP_H
#define ATT_OPS_DROP_H

#include <stdint.h>

/* Attributes of dropout and drop_path. stream: key of the node's random draws; a gradient node has the stream of its
 * forward node. */
typedef struct att_drop_attrs {
    double rate;
    uint64_t stream;
} att_drop_attrs;

#endif
