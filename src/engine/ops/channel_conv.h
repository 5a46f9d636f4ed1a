/* ops/channel_conv.h - attributes of channel_conv. */
#ifndef ATT_OPS_CHANNEL_CONV_H
#define ATT_OPS_CHANNEL_CONV_H

#include <stdbool.h>

/* flipped: use the weight in reverse order, as the gradient does. */
typedef struct att_channel_conv_attrs {
    bool flipped;
} att_channel_conv_attrs;

#endif
