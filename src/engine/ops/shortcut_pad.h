/* ops/shortcut_pad.h - attributes of shortcut_pad and its gradient. */
#ifndef ATT_OPS_SHORTCUT_PAD_H
#define ATT_OPS_SHORTCUT_PAD_H

#include <stdint.h>

/* channels: channels of the output, of which the first `before` are zero. height, width, from: shape of x [height,
 * width, from], for the gradient. */
typedef struct att_shortcut_attrs {
    int32_t stride, channels, before;
    int32_t height, width, from;
} att_shortcut_attrs;

#endif
