#include <math.h>

#include "networks/heads/detector.h"

enum { CONVS = 4 };

static att_value linear_in(const att_scope *scope, const char *name, att_value x, int64_t outputs)
{
    const att_scope own = att_scope_in(scope, "%s", name);
    return att_nn_classifier(&own, x, outputs);
}

/* A linear layer of maps [R, side, side, C], whose weight [outputs, C side side] has torch.nn.Flatten's order. The maps
 * are transposed, not the weight: they are smaller than a copy of the weight, its gradient and its packs. */
static att_value flatten_in(const att_scope *scope, const char *name, att_value x, int64_t outputs)
{
    static const int channels_first[] = {0, 2, 1};
    att_graph *graph = scope->graph;
    const att_scope own = att_scope_in(scope, "%s", name);
    const att_shape shape = att_value_shape(graph, x);
    const int64_t rows = shape.dims[0], places = shape.dims[1] * shape.dims[2], channels = shape.dims[3];
    const att_init start = {.rule = ATT_INIT_UNIFORM, .value = 1 / sqrt((double)(places * channels))};
    att_scope_enter(&own);
    att_value weight = att_scope_parameter(&own, "weight", att_shape_of(outputs, channels * places), start, true);
    att_value bias = att_scope_parameter(&own, "bias", att_shape_of(outputs), start, false);
    x = att_transpose(graph, att_reshape(graph, x, att_shape_of(rows, places, channels)), channels_first, 3);
    return att_linear(graph, att_reshape(graph, x, att_shape_of(rows, places * channels)), weight, bias);
}

/* A convolution of each of R maps [R, side, side, C]. */
static att_value convolve_each(const att_scope *scope, att_value x, int64_t outputs)
{
    const int64_t channels = att_value_shape(scope->graph, x).dims[3];
    const att_init start = {.rule = ATT_INIT_NORMAL, .value = sqrt(2 / ((double)outputs * 9))};
    const att_detector_conv conv = att_detector_conv_make(scope, outputs, channels, 3, start, false);
    att_scope_enter(scope);
    return att_detector_conv_apply(scope->graph, &conv, x);
}

static att_value build_convs(const att_scope *scope, const att_detector *detector, att_value x)
{
    for (int i = 0; i < CONVS; i++) {
        const att_scope conv = att_scope_in(scope, "%d.0", i), norm = att_scope_in(scope, "%d.1", i);
        x = att_relu(scope->graph, att_nn_batch_norm(&norm, convolve_each(&conv, x, detector->channels), 1));
        if (att_graph_status(scope->graph) != ATT_OK)
            return ATT_NONE;
    }
    return att_relu(scope->graph, flatten_in(scope, "5", x, detector->box_channels));
}

static att_value build_linears(const att_scope *scope, const att_detector *detector, att_value x)
{
    x = att_relu(scope->graph, flatten_in(scope, "fc6", x, detector->box_channels));
    return att_relu(scope->graph, linear_in(scope, "fc7", x, detector->box_channels));
}

/* The power of two that is nearest to the sides of the image over those of the map. */
static int stride_of(att_shape image, att_shape map)
{
    return (int)exp2(rint(log2((double)image.dims[0] / (double)map.dims[0])));
}

void att_head_boxes(const att_scope *scope, const att_detector *detector, const att_value *levels, int count,
                    att_shape image, const att_proposals *proposals, att_box_answers *answers)
{
    att_roi_align_options align = detector->align;
    const att_scope own = att_scope_in(scope, "roi_align"), head = att_scope_in(scope, "box_head");
    *answers = (att_box_answers){ATT_NONE, ATT_NONE};
    if (att_graph_status(scope->graph) != ATT_OK)
        return;
    align.stride = stride_of(image, att_value_shape(scope->graph, levels[0]));
    att_scope_enter(&own);
    att_value x = att_roi_align(scope->graph, levels, count - 1, proposals->boxes, proposals->count, &align);
    if (att_graph_status(scope->graph) != ATT_OK)
        return;
    x = (detector->norms ? build_convs : build_linears)(&head, detector, x);
    answers->logits = linear_in(scope, "box_predictor.cls_score", x, detector->classes + 1);
    answers->deltas =
        linear_in(scope, "box_predictor.bbox_pred", x, 4 * (detector->classes + (detector->background_first ? 1 : 0)));
}
