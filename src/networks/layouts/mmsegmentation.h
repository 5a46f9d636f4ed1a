/* layouts/mmsegmentation.h - what mmsegmentation's UPerNets have in common. */
#ifndef ATT_LAYOUTS_MMSEGMENTATION_H
#define ATT_LAYOUTS_MMSEGMENTATION_H

#include "networks/layouts/layout.h"

#define ATT_MMSEG_PREFIX "backbone."
/* A part of the signature: the head is UPerNet. */
#define ATT_MMSEG_UPER "decode_head.fpn_bottleneck.conv.weight "

/* Its heads, whose names attscope's have. */
#define ATT_MMSEG_HEADS                                        \
    {"decode_head.*", .to = "segmenter.*"},                    \
    {                                                          \
        "auxiliary_head.*", .to = "segmenter.auxiliary_head.*" \
    }

/* How its configurations for ADE20K prepare images. */
#define ATT_MMSEG_IMAGES \
    "crop_pct=1 crop_mode=squash interpolation=bilinear mean=0.485,0.456,0.406 std=0.229,0.224,0.225 "

#endif
