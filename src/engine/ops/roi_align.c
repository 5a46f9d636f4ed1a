#include "engine/ops/roi_align.h"

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_roi_align(att_graph *graph, const att_value *maps, int levels, att_value boxes, att_value count,
                        const att_roi_align_options *options)
{
    const att_roi_align_attrs attrs = {.finest = options->finest,
                                       .levels = levels,
                                       .side = options->side,
                                       .samples = options->samples,
                                       .stride = options->stride,
                                       .aligned = options->aligned};
    att_value in[ATT_BOX_LEVELS + 2];
    int used = 0;
    for (; used < levels && used < ATT_BOX_LEVELS; used++)
        in[used] = maps[used];
    in[used] = boxes;
    in[used + 1] = count;
    return att_emit(graph, "roi_align", &attrs, in, used + 2, NULL);
}

static att_status check_attrs(const att_infer *infer)
{
    enum { MOST = 1024 };
    const att_roi_align_attrs *attrs = infer->attrs;
    if (attrs->side < 1 || attrs->side > MOST || attrs->samples < 0 || attrs->samples > MOST || attrs->stride < 1 ||
        !(attrs->finest > 0))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "side %d, samples %d, stride %d, finest %g: must be in 1..%d, in 0..%d, at least 1, and "
                             "positive",
                             attrs->side, attrs->samples, attrs->stride, attrs->finest, MOST, MOST);
    return ATT_OK;
}

/* Boxes are input `boxes`; the count is the next input. */
static att_status require_boxes(const att_infer *infer, int boxes)
{
    ATT_TRY(att_rule_require_rank(infer, boxes, "boxes", ATT_SAMPLE, 2));
    if (infer->in[boxes].shape.dims[1] != 4)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "boxes %s must have four numbers each",
                             ATT_SHOWN(&infer->in[boxes]));
    return att_rule_require_count(infer, boxes + 1);
}

static att_status align_infer(att_infer *infer)
{
    const att_roi_align_attrs *attrs = infer->attrs;
    const int levels = (int)attrs->levels;
    if (levels < 1 || levels > ATT_BOX_LEVELS)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d maps, must be 1 to %d", levels, ATT_BOX_LEVELS);
    ATT_TRY(att_rule_count(infer, levels + 2));
    for (int l = 0; l < levels; l++) {
        ATT_TRY(att_rule_require_rank(infer, l, "map", ATT_SAMPLE, 3));
        if (infer->in[l].shape.dims[2] != infer->in[0].shape.dims[2] || infer->in[l].shape.dims[0] > INT32_MAX ||
            infer->in[l].shape.dims[1] > INT32_MAX)
            return att_rule_fail(infer, ATT_ERR_MISMATCH, "map %s must have as many channels as the first %s",
                                 ATT_SHOWN(&infer->in[l]), ATT_SHOWN(&infer->in[0]));
    }
    ATT_TRY(require_boxes(infer, levels));
    ATT_TRY(check_attrs(infer));
    const att_shape shape =
        att_shape_of(infer->in[levels].shape.dims[0], attrs->side, attrs->side, infer->in[0].shape.dims[2]);
    if (att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "boxes %s are too many", ATT_SHOWN(&infer->in[levels]));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

static void align_backward(att_backward *backward)
{
    att_roi_align_attrs attrs = *(const att_roi_align_attrs *)att_backward_attrs(backward);
    att_value maps[ATT_BOX_LEVELS];
    const int levels = (int)attrs.levels;
    for (int l = 0; l < levels; l++) {
        const att_shape map = att_backward_in_desc(backward, l).shape;
        attrs.height[l] = (int32_t)map.dims[0];
        attrs.width[l] = (int32_t)map.dims[1];
    }
    const att_value in[] = {att_backward_gradient(backward, 0), att_backward_in(backward, levels),
                            att_backward_in(backward, levels + 1)};
    if (att_emit(att_backward_graph(backward), "roi_align_grad", &attrs, in, 3, maps) == ATT_NONE)
        return;
    for (int l = 0; l < levels; l++)
        if (att_backward_needs_gradient(backward, l))
            att_backward_add_gradient(backward, l, maps[l]);
}

/* Four places for each of samples x samples points, or about four points. */
static double flops_of(const att_shape *y, const att_roi_align_attrs *attrs)
{
    const int points = attrs->samples > 0 ? attrs->samples * attrs->samples : 4;
    return 8.0 * points * (double)att_shape_count(*y);
}

static void align_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)in;
    cost->flops = flops_of(&out[0].shape, attrs);
}

#define OF(maps, side_, samples_, ...) \
    ATTRS(roi_align, .finest = 16, .stride = 4, .levels = (maps), .side = (side_), .samples = (samples_), __VA_ARGS__)
/* Boxes of random corners, half of which have a side of less than 0. */
#define BOXES(r) DRAWN(ATT_SAMPLE, 14, 16, r, 4)
static const att_op_case align_cases[] = {
    {.name = "one_map", OF(1, 2, 2, .aligned = 0), IN(SAMPLE(5, 7, 3), BOXES(4), CLASS(5)), .gradient = true},
    {.name = "maps",
     OF(2, 3, 2, .aligned = 0),
     IN(SAMPLE(8, 7, 2), SAMPLE(4, 4, 2), BOXES(6), CLASS(7)),
     .gradient = true},
    {.name = "aligned",
     OF(2, 2, 0, .aligned = 1),
     IN(SAMPLE(8, 8, 2), SAMPLE(4, 4, 2), BOXES(6), CLASS(7)),
     .gradient = true},
    {.name = "wide", OF(1, 2, 1, .aligned = 0), IN(SAMPLE(4, 4, 35), BOXES(3), CLASS(4))},
    {.name = "outside", OF(1, 3, 2, .aligned = 1), IN(SAMPLE(2, 2, 17), DRAWN(ATT_SAMPLE, 100, 0, 7, 4), CLASS(8))},
    {.name = "coco",
     OF(2, 7, 2, .aligned = 0),
     IN(SAMPLE(50, 68, 256), SAMPLE(25, 34, 256), DRAWN(ATT_SAMPLE, 60, 100, 100, 4), CLASS(101)),
     .bench = true},
};

const att_op att_op_roi_align = {
    .name = "roi_align",
    .attrs_size = sizeof(att_roi_align_attrs),
    .help = "y [R, side, side, C]: each of side x side parts of a box is the mean of points, interpolated in a map",
    .infer = align_infer,
    .backward = align_backward,
    .cost = align_cost,
    ATT_CASES(align_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_roi_align_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 3));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 4));
    ATT_TRY(require_boxes(infer, 1));
    ATT_TRY(check_attrs(infer));
    const int64_t *dy = infer->in[0].shape.dims;
    if (dy[0] != infer->in[1].shape.dims[0] || dy[1] != attrs->side || dy[2] != attrs->side)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s must have %d x %d parts of each of the boxes %s",
                             ATT_SHOWN(&infer->in[0]), attrs->side, attrs->side, ATT_SHOWN(&infer->in[1]));
    if (attrs->levels < 1 || attrs->levels > ATT_BOX_LEVELS)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d maps, must be 1 to %d", (int)attrs->levels, ATT_BOX_LEVELS);
    for (int l = 0; l < attrs->levels; l++)
        ATT_TRY(att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE,
                             att_shape_of(attrs->height[l], attrs->width[l], dy[3])));
    return ATT_OK;
}

static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost->flops = flops_of(&in[0].shape, attrs);
}

static const att_op_case grad_cases[] = {
    {.name = "one_map", OF(1, 2, 2, .height = {5}, .width = {7}), IN(SAMPLE(4, 2, 2, 3), BOXES(4), CLASS(5))},
    {.name = "maps", OF(2, 3, 2, .height = {8, 4}, .width = {7, 4}), IN(SAMPLE(6, 3, 3, 19), BOXES(6), CLASS(7))},
    {.name = "aligned",
     OF(2, 2, 0, .aligned = 1, .height = {8, 4}, .width = {8, 4}),
     IN(SAMPLE(6, 2, 2, 2), BOXES(6), CLASS(7))},
    {.name = "coco",
     OF(2, 7, 2, .height = {50, 25}, .width = {68, 34}),
     IN(SAMPLE(100, 7, 7, 256), DRAWN(ATT_SAMPLE, 60, 100, 100, 4), CLASS(101)),
     .bench = true},
};

const att_op att_op_roi_align_grad = {
    .name = "roi_align_grad",
    .attrs_size = sizeof(att_roi_align_attrs),
    .help = "the gradient of each map: parts of dy, added to the places that their points read",
    .infer = grad_infer,
    .cost = grad_cost,
    ATT_CASES(grad_cases),
};
