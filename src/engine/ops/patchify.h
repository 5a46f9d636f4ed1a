/* ops/patchify.h - attributes of patchify and its gradient. */
#ifndef ATT_OPS_PATCHIFY_H
#define ATT_OPS_PATCHIFY_H

#include <stdint.h>

typedef struct att_patch_attrs {
    int32_t patch[2];                /* height, width */
    int32_t height, width, channels; /* size of the image, for the gradient */
} att_patch_attrs;

#endif
