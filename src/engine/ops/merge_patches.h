/* ops/merge_patches.h - attributes of merge_patches_grad. */
#ifndef ATT_OPS_MERGE_PATCHES_H
#define ATT_OPS_MERGE_PATCHES_H

#include <stdint.h>

/* Size of the map before merging. */
typedef struct att_merge_attrs {
    int32_t height, width;
} att_merge_attrs;

#endif
