/* ops/context_broadcast.h - attributes of context_broadcast. */
#ifndef ATT_OPS_CONTEXT_BROADCAST_H
#define ATT_OPS_CONTEXT_BROADCAST_H

/* share is ignored if the op has a scale vector; without one, 0 means that no mean is taken. */
typedef struct att_broadcast_attrs {
    double keep, share;
} att_broadcast_attrs;

#endif
