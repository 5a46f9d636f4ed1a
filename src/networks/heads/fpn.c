#include <math.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "networks/heads/detector.h"

const char *const att_detector_keys[] = {"box_channels",  "proposals",   "level_proposals", "detections",
                                         "score_thresh",  "nms_thresh",  "anchor_size",     "anchor_round",
                                         "anchor_stride", "roi_samples", "roi_aligned",     "background_first",
                                         "box_bounded",   "small_boxes"};
const int att_detector_key_count = sizeof att_detector_keys / sizeof *att_detector_keys;

/* A convolution of kernel x kernel with bias, or without bias before a batch norm. */
static att_value conv_in(const att_scope *scope, const att_detector *detector, const char *name, int index, att_value x,
                         int kernel)
{
    const att_scope block = att_scope_in(scope, name, index), conv = att_scope_in(&block, "0");
    const int64_t channels = att_value_shape(scope->graph, x).dims[2];
    const double fan_in = (double)channels * kernel * kernel;
    const att_init start = {.rule = ATT_INIT_UNIFORM, .value = fan_in > 0 ? sqrt(3 / fan_in) : 0};
    const att_detector_conv made =
        att_detector_conv_make(&conv, detector->channels, channels, kernel, start, !detector->norms);
    att_scope_enter(&conv);
    x = att_detector_conv_apply(scope->graph, &made, x);
    if (!detector->norms)
        return x;
    const att_scope norm = att_scope_in(&block, "1");
    return att_nn_batch_norm(&norm, x, 1);
}

/* Repeats each row and column, then leaves out those beyond height x width, which is one less than twice the size at
 * least. A row of pixels twice side by side is a row of pairs of pixels. */
static att_value double_to(att_graph *graph, att_value x, int64_t height, int64_t width)
{
    const att_shape from = att_value_shape(graph, x);
    const int64_t h = from.dims[0], w = from.dims[1], c = from.dims[2];
    x = att_reshape(graph, att_concat(graph, x, x), att_shape_of(h, 2 * w * c));
    if (width < 2 * w)
        x = att_slice_channels(graph, x, 0, width * c);
    x = att_reshape(graph, att_concat(graph, x, x), att_shape_of(2 * h, width * c));
    if (height < 2 * h)
        x = att_slice_tokens(graph, x, 0, (int)height);
    return att_reshape(graph, x, att_shape_of(height, width, c));
}

/* Whether each map has half the sides of the one before, rounded up. */
static bool are_halved(const att_graph *graph, const att_value *maps, int count)
{
    bool halved = true;
    for (int i = 1; i < count; i++) {
        const att_shape large = att_value_shape(graph, maps[i - 1]), small = att_value_shape(graph, maps[i]);
        halved &= small.dims[0] == (large.dims[0] + 1) / 2 && small.dims[1] == (large.dims[1] + 1) / 2;
    }
    return halved;
}

int att_head_fpn(const att_scope *scope, const att_detector *detector, const att_value *maps, int count,
                 att_value levels[ATT_BOX_LEVELS])
{
    att_graph *graph = scope->graph;
    if (att_graph_status(graph) != ATT_OK)
        return 0;
    if (!are_halved(graph, maps, count)) {
        att_graph_fail(graph,
                       att_fail(att_graph_context(graph), ATT_ERR_UNSUPPORTED,
                                "a detector needs maps of which each has half the sides of the one before, as "
                                "those of resnet and swin; --neck feature2pyramid makes them from a ViT's, if the "
                                "sides of its images (--img-size) are multiples of two patches"));
        return 0;
    }
    att_value inner = ATT_NONE;
    for (int i = count; i-- > 0;) {
        att_value lateral = conv_in(scope, detector, "inner_blocks.%d", i, maps[i], 1);
        const att_shape size = att_value_shape(graph, lateral);
        inner = i == count - 1 ? lateral : att_add(graph, lateral, double_to(graph, inner, size.dims[0], size.dims[1]));
        levels[i] = conv_in(scope, detector, "layer_blocks.%d", i, inner, 3);
        if (att_graph_status(graph) != ATT_OK)
            return 0;
    }
    const att_scope pool = att_scope_in(scope, "pool");
    att_scope_enter(&pool);
    levels[count] = att_max_pool(graph, levels[count - 1], &(att_pool_options){.kernel = 1, .stride = 2});
    return count + 1;
}
