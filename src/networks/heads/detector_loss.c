#include "networks/heads/detector.h"

/* The values of all levels, one after the other. */
static att_value join_levels(att_graph *graph, const att_value *maps, int count)
{
    att_value all = ATT_NONE;
    for (int l = 0; l < count && att_graph_status(graph) == ATT_OK; l++) {
        att_value flat = att_reshape(graph, maps[l], att_shape_of(att_shape_count(att_value_shape(graph, maps[l]))));
        all = l == 0 ? flat : att_concat(graph, all, flat);
    }
    return all;
}

att_value att_head_anchor_loss(const att_scope *scope, const att_detector *detector, const att_rpn *rpn,
                               att_shape image, att_value true_boxes, const att_detector_training *training)
{
    static const att_binary_cross_entropy_options sum = {.positive_weight = 1, .sum = true};
    att_graph *graph = scope->graph;
    const double share = 1.0 / training->anchors.samples;
    att_anchor_targets targets;
    if (att_graph_status(graph) != ATT_OK)
        return ATT_NONE;
    const att_anchors anchors = att_detector_anchors(graph, detector, rpn, image);
    att_scope_enter(scope);
    att_anchor_sample(graph, true_boxes, rpn->objectness, rpn->levels, &anchors, &training->anchors, &targets);
    att_value objectness = join_levels(graph, rpn->objectness, rpn->levels);
    att_value deltas = join_levels(graph, rpn->deltas, rpn->levels);
    if (att_graph_status(graph) != ATT_OK)
        return ATT_NONE;
    deltas = att_reshape(graph, deltas, att_value_shape(graph, targets.deltas));
    return att_combine(graph, share, att_binary_cross_entropy(graph, objectness, targets.classes, &sum), share,
                       att_smooth_l1(graph, deltas, targets.deltas, targets.columns, training->beta));
}

att_value att_head_box_loss(const att_scope *scope, const att_scope *roi, const att_detector *detector,
                            const att_value *levels, int count, att_shape image, const att_proposals *proposals,
                            att_value true_boxes, const att_detector_training *training)
{
    att_graph *graph = scope->graph;
    const double share = 1.0 / training->boxes.samples;
    const att_box_targets_options options = {.sampling = training->boxes,
                                             .weights = {ATT_DETECTOR_WEIGHTS},
                                             .classes = (int)detector->classes,
                                             .background_first = detector->background_first};
    att_box_targets targets;
    att_box_answers answers;
    att_scope_enter(scope);
    att_box_sample(graph, proposals->boxes, proposals->count, true_boxes, &options, &targets);
    const att_proposals sampled = {.boxes = targets.boxes, .scores = ATT_NONE, .count = targets.count};
    att_head_boxes(roi, detector, levels, count, image, &sampled, &answers);
    att_scope_enter(scope);
    return att_combine(graph, share, att_token_cross_entropy(graph, answers.logits, targets.classes), share,
                       att_smooth_l1(graph, answers.deltas, targets.deltas, targets.columns, training->beta));
}
