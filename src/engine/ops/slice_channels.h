/* ops/slice_channels.h - attributes of slice_channels and its gradient. */
#ifndef ATT_OPS_SLICE_CHANNELS_H
#define ATT_OPS_SLICE_CHANNELS_H

#include <stdint.h>

/* Channels [first, first + count) of [.., C]. total: C, for the gradient. */
typedef struct att_channels_attrs {
    int64_t first, count, total;
} att_channels_attrs;

#endif
