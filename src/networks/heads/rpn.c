#include "networks/heads/detector.h"

static const att_init near_zero = {.rule = ATT_INIT_NORMAL, .value = 0.01};

att_detector_conv att_detector_conv_make(const att_scope *scope, int64_t outputs, int64_t inputs, int kernel,
                                         att_init start, bool bias)
{
    const att_init zeros = {.rule = ATT_INIT_CONSTANT};
    return (att_detector_conv){
        .weight = att_scope_parameter(scope, "weight", att_shape_of(outputs, inputs, kernel, kernel), start, true),
        .bias = bias ? att_scope_parameter(scope, "bias", att_shape_of(outputs), zeros, false) : ATT_NONE,
        .kernel = kernel};
}

att_value att_detector_conv_apply(att_graph *graph, const att_detector_conv *conv, att_value x)
{
    return att_conv2d(graph, x, conv->weight, conv->bias, &(att_conv_options){.padding = conv->kernel / 2});
}

static att_detector_conv make_in(const att_scope *scope, const char *name, int64_t outputs, int64_t inputs, int kernel)
{
    const att_scope own = att_scope_in(scope, "%s", name);
    return att_detector_conv_make(&own, outputs, inputs, kernel, near_zero, true);
}

void att_head_rpn(const att_scope *scope, const att_detector *detector, const att_value *levels, int count,
                  att_rpn *rpn)
{
    static const char *const names[] = {"head.conv.0.0", "head.conv.1.0"};
    enum { CONVS = sizeof names / sizeof *names };
    const int64_t channels = detector->channels;
    const int convs = detector->norms ? CONVS : 1;
    att_detector_conv conv[CONVS];
    for (int i = 0; i < convs; i++)
        conv[i] = make_in(scope, names[i], channels, channels, 3);
    const att_detector_conv classify = make_in(scope, "head.cls_logits", ATT_BOX_RATIOS, channels, 1);
    const att_detector_conv regress = make_in(scope, "head.bbox_pred", 4 * ATT_BOX_RATIOS, channels, 1);
    rpn->levels = count;
    for (int l = 0; l < count; l++) {
        const att_scope level = att_scope_in(scope, "head.%d", l);
        att_value x = levels[l];
        att_scope_enter(&level);
        for (int i = 0; i < convs; i++)
            x = att_relu(scope->graph, att_detector_conv_apply(scope->graph, &conv[i], x));
        rpn->objectness[l] = att_detector_conv_apply(scope->graph, &classify, x);
        rpn->deltas[l] = att_detector_conv_apply(scope->graph, &regress, x);
    }
}

att_anchors att_detector_anchors(const att_graph *graph, const att_detector *detector, const att_rpn *rpn,
                                 att_shape image)
{
    att_anchors anchors = detector->proposals.anchors;
    for (int l = 0; l < rpn->levels; l++) {
        const att_shape level = att_value_shape(graph, rpn->objectness[l]);
        for (int axis = 0; axis < 2; axis++)
            anchors.stride[l][axis] =
                detector->stride > 0 ? detector->stride << l : (int)(image.dims[axis] / level.dims[axis]);
    }
    return anchors;
}

void att_head_proposals(const att_scope *scope, const att_detector *detector, const att_rpn *rpn, att_shape image,
                        att_value image_size, att_proposals *proposals)
{
    att_box_proposals_options options = detector->proposals;
    const att_scope own = att_scope_in(scope, "proposals");
    if (att_graph_status(scope->graph) != ATT_OK)
        return;
    options.anchors = att_detector_anchors(scope->graph, detector, rpn, image);
    att_scope_enter(&own);
    att_box_proposals(scope->graph, rpn->objectness, rpn->deltas, rpn->levels, image_size, &options, proposals);
}
