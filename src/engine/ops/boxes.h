/* ops/boxes.h - attributes of box_proposals and box_detections, and what they compute.
 *
 * The kernels of all backends on a CPU call the functions below, so that decisions, such as which of two boxes has the
 * larger score, are the same everywhere. Numbers are F32 or F64; arithmetic is in f64. */
#ifndef ATT_OPS_BOXES_H
#define ATT_OPS_BOXES_H

#include <attscope/ops.h>

#include "engine/ops/box_parts.h"

typedef struct att_box_proposals_attrs {
    double size, overlap, least;
    int32_t stride[ATT_BOX_LEVELS][2];
    int32_t rounded, bounded, per_level, most;
} att_box_proposals_attrs;

typedef struct att_box_detections_attrs {
    double weights[4], score, overlap, least;
    int64_t most;
    int32_t background_first, bounded;
} att_box_detections_attrs;

/* Compute the outputs of a part of a call, and the bytes of scratch that it needs. */
void att_box_proposals_run(const att_box_work *work);
size_t att_box_proposals_scratch(const void *attrs, const att_desc *in, int in_count);
void att_box_detections_run(const att_box_work *work);
size_t att_box_detections_scratch(const void *attrs, const att_desc *in, int in_count);

#endif
