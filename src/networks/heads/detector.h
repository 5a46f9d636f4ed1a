/* heads/detector.h - the parts of Faster R-CNN (Ren et al., NeurIPS 2015) with a feature pyramid (Lin et al., CVPR
 * 2017), with the names of torchvision's parameters.
 *
 * Parts add nodes to the graph of one image and report failures with att_graph_fail(). A task calls them in the order
 * of this file. */
#ifndef ATT_HEADS_DETECTOR_H
#define ATT_HEADS_DETECTOR_H

#include <attscope/ops.h>

#include "networks/heads/heads.h"

typedef struct att_detector {
    int64_t channels;      /* of the pyramid */
    int64_t box_channels;  /* of the box head's linear layers */
    int64_t classes;       /* without the background */
    bool norms;            /* torchvision's second version: see the parts */
    bool background_first; /* in the box head's outputs; else it is the last */
    int stride;            /* pixels between anchors of the first level; 0: as att_detector_anchors() says */
    att_box_proposals_options proposals; /* strides: see att_detector_anchors() */
    att_roi_align_options align;         /* its stride is set by att_head_boxes() */
} att_detector;

/* The pyramid. maps: `count` maps, each of half the sides of the one before. A convolution of 1 x 1 of each map
 * (inner_blocks.#.0) plus the sum above it, doubled in size by repeating its places, then one of 3 x 3
 * (layer_blocks.#.0); at last every other place of the smallest level. With `norms` the convolutions have no bias but
 * batch norm (inner_blocks.#.1, layer_blocks.#.1). Returns the number of levels [h, w, channels], count + 1; 0 after a
 * failure: ERR_UNSUPPORTED for other sizes. */
int att_head_fpn(const att_scope *scope, const att_detector *detector, const att_value *maps, int count,
                 att_value levels[ATT_BOX_LEVELS]);

/* What the region proposal network says of each anchor of each level, before boxes are chosen. */
typedef struct att_rpn {
    int levels;
    att_value objectness[ATT_BOX_LEVELS]; /* [h, w, ATT_BOX_RATIOS] */
    att_value deltas[ATT_BOX_LEVELS];     /* [h, w, 4 ATT_BOX_RATIOS] */
} att_rpn;
/* One convolution of 3 x 3 with ReLU, or with `norms` two (head.conv.#.0), then two of 1 x 1 (head.cls_logits,
 * head.bbox_pred), the same for all levels. Weights start as N(0, 0.01^2). */
void att_head_rpn(const att_scope *scope, const att_detector *detector, const att_value *levels, int count,
                  att_rpn *rpn);
/* att_box_proposals() of these. image: height and width of the network's input. image_size: as in att_box_proposals().
 */
void att_head_proposals(const att_scope *scope, const att_detector *detector, const att_rpn *rpn, att_shape image,
                        att_value image_size, att_proposals *proposals);

/* What the box head says of each proposal. */
typedef struct att_box_answers {
    att_value logits; /* [R, classes + 1] */
    att_value deltas; /* [R, 4 (classes + 1)], or without those of a background that is the last [R, 4 classes] */
} att_box_answers;
/* RoIAlign of the levels but the last, then two linear layers with ReLU (box_head.fc6, box_head.fc7), whose first
 * weight has columns in the order of channels, rows, columns; with `norms` four convolutions of 3 x 3 with batch norm
 * and ReLU (box_head.#.0, box_head.#.1) and one linear layer with ReLU (box_head.5). Then a linear layer for classes
 * and one for boxes (box_predictor.cls_score, box_predictor.bbox_pred). Linear layers start as those of
 * att_nn_classifier(). */
void att_head_boxes(const att_scope *scope, const att_detector *detector, const att_value *levels, int count,
                    att_shape image, const att_proposals *proposals, att_box_answers *answers);

/* --- training ----------------------------------------------------------------------------------------------------- */

typedef struct att_detector_training {
    att_box_sampling anchors, boxes;
    double beta; /* of both att_smooth_l1() */
} att_detector_training;

/* Both losses are scalars of a sample, which divide sums by the number S of samples, so that each of them counts the
 * same in all images; torchvision and mmdetection divide by the number that was found in the batch, which is S but for
 * tiny images. true_boxes: as in att_anchor_sample(). scope: of the nodes, whose random draws follow from it.
 *
 * Of the anchors: (1 / S) (BCE of objectness + att_smooth_l1() of the deltas of positive ones). */
att_value att_head_anchor_loss(const att_scope *scope, const att_detector *detector, const att_rpn *rpn,
                               att_shape image, att_value true_boxes, const att_detector_training *training);
/* Of the boxes that att_box_sample() takes of the proposals: (1 / S) (cross entropy of classes + att_smooth_l1() of the
 * deltas of the right class of positive ones). roi: the scope of the box head's parameters. */
att_value att_head_box_loss(const att_scope *scope, const att_scope *roi, const att_detector *detector,
                            const att_value *levels, int count, att_shape image, const att_proposals *proposals,
                            att_value true_boxes, const att_detector_training *training);

/* --- shared by these files ---------------------------------------------------------------------------------------- */

/* Weights of the deltas of the box head (att_box_detections_options). */
#define ATT_DETECTOR_WEIGHTS 10, 10, 5, 5

/* The anchors with their strides: detector->stride 2^l of level l, as in mmdetection; if that is 0, the sides of the
 * image over those of the level, rounded down, as in torchvision. */
att_anchors att_detector_anchors(const att_graph *graph, const att_detector *detector, const att_rpn *rpn,
                                 att_shape image);

/* A convolution's parameters, which can be applied to several maps. */
typedef struct att_detector_conv {
    att_value weight, bias; /* bias ATT_NONE: none */
    int kernel;
} att_detector_conv;
/* weight [outputs, inputs, kernel, kernel], from `start`; bias: zeros. */
att_detector_conv att_detector_conv_make(const att_scope *scope, int64_t outputs, int64_t inputs, int kernel,
                                         att_init start, bool bias);
/* Keeps the map's size. */
att_value att_detector_conv_apply(att_graph *graph, const att_detector_conv *conv, att_value x);

#endif
