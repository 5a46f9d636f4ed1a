/* ops/boxes.h - attributes of box_proposals and box_detections, and what they compute.
 *
 * The kernels of all backends on a CPU call the functions below, so that decisions, such as which of two boxes has the
 * larger score, are the same everywhere. Numbers are F32 or F64; arithmetic is in f64. */
#ifndef ATT_OPS_BOXES_H
#define ATT_OPS_BOXES_H

#include <attscope/ops.h>

#include "engine/graph/op.h"

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

/* Compute the outputs of the samples begin .. end - 1 of a call. in, out: descriptions and data of the whole group, as
 * in att_problem and att_call; an output that nobody reads is NULL. scratch: as many bytes as the function below says,
 * aligned to 8. */
void att_box_proposals_run(const att_box_proposals_attrs *attrs, const att_desc *in, int in_count,
                           const void *const *data, void *const *out, int64_t begin, int64_t end, void *scratch);
size_t att_box_proposals_scratch(const att_box_proposals_attrs *attrs, const att_desc *in, int in_count);

void att_box_detections_run(const att_box_detections_attrs *attrs, const att_desc *in, const void *const *data,
                            void *const *out, int64_t begin, int64_t end, void *scratch);
size_t att_box_detections_scratch(const att_box_detections_attrs *attrs, const att_desc *in);

#endif
