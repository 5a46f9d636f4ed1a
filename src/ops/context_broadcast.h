/* ops/context_broadcast.h - attributes of context_broadcast. */
#ifndef ATT_OPS_CONTEXT_BROADCAST_H
#define ATT_OPS_CONTEXT_BROADCAST_H

/* share is ignored if the op has a scale vector. */
typedef struct att_broadcast_attrs {
    double keep, share;
} att_broadcast_attrs;

#endif
