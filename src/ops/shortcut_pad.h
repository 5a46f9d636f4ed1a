/* ops/shortcut_pad.h - attributes of shortcut_pad and its gradient. */
#ifndef ATT_OPS_SHORTCUT_PAD_H
#define ATT_OPS_SHORTCUT_PAD_H

#include <stdint.h>

/* shortcut_pad: channels in all, of which `before` are zeros in front; height, width, from: x [height, width, from],
 * for the gradient. */
typedef struct att_shortcut_attrs {
    int32_t stride, channels, before;
    int32_t height, width, from;
} att_shortcut_attrs;

#endif
