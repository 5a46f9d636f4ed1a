/* ops/box_targets.h - attributes of anchor_sample and box_sample, and what they compute.
 *
 * As with ops/boxes.h, the kernels of all backends on a CPU call the functions below. */
#ifndef ATT_OPS_BOX_TARGETS_H
#define ATT_OPS_BOX_TARGETS_H

#include <attscope/ops.h>

#include "engine/ops/box_parts.h"

/* att_box_sampling, and the key of the node's random draws. */
typedef struct att_box_sampling_attrs {
    double positive, negative, least, crowd, share;
    uint64_t stream;
    int32_t best, samples;
} att_box_sampling_attrs;

typedef struct att_anchor_sample_attrs {
    att_box_sampling_attrs sampling;
    double size;
    int32_t stride[ATT_BOX_LEVELS][2], sides[ATT_BOX_LEVELS][2]; /* vertical, horizontal */
    int32_t levels, rounded;
} att_anchor_sample_attrs;

typedef struct att_box_sample_attrs {
    att_box_sampling_attrs sampling;
    double weights[4];
    int32_t classes, background_first;
} att_box_sample_attrs;

/* For the functions that emit and check these nodes: the attributes of a sampling, with the key of the next node's
 * draws; and a check of these attributes and of the true boxes, which are input `true_boxes`. */
att_box_sampling_attrs att_box_sampling_of(const att_graph *graph, const att_box_sampling *sampling);
att_status att_box_sampling_check(const att_infer *infer, const att_box_sampling_attrs *attrs, int true_boxes);

/* The number of anchors. */
int64_t att_anchor_count(const att_anchor_sample_attrs *attrs);

/* As the functions of ops/boxes.h. */
void att_anchor_sample_run(const att_box_work *work);
size_t att_anchor_sample_scratch(const void *attrs, const att_desc *in, int in_count);
void att_box_sample_run(const att_box_work *work);
size_t att_box_sample_scratch(const void *attrs, const att_desc *in, int in_count);

#endif
