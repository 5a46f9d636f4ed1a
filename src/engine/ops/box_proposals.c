#include <attscope/ops.h>

#include "engine/ops/boxes.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_box_proposals(att_graph *graph, const att_value *objectness, const att_value *deltas, int levels,
                            att_value image_size, const att_box_proposals_options *options, att_proposals *out)
{
    att_box_proposals_attrs attrs = {.size = options->anchors.size,
                                     .overlap = options->overlap,
                                     .least = options->least,
                                     .rounded = options->anchors.rounded,
                                     .bounded = options->bounded,
                                     .per_level = options->per_level,
                                     .most = options->most};
    att_value in[2 * ATT_BOX_LEVELS + 1], values[3] = {ATT_NONE, ATT_NONE, ATT_NONE};
    for (int l = 0; l < levels && l < ATT_BOX_LEVELS; l++) {
        in[l] = objectness[l];
        in[levels + l] = deltas[l];
        attrs.stride[l][0] = options->anchors.stride[l][0];
        attrs.stride[l][1] = options->anchors.stride[l][1];
    }
    const bool fits = levels >= 1 && levels <= ATT_BOX_LEVELS;
    in[fits ? 2 * levels : 0] = image_size;
    att_emit(graph, "box_proposals", &attrs, in, fits ? 2 * levels + 1 : 1, values);
    *out = (att_proposals){values[0], values[1], values[2]};
    return values[0];
}

static att_status check_attrs(const att_infer *infer, int levels)
{
    const att_box_proposals_attrs *attrs = infer->attrs;
    if (attrs->per_level < 1 || attrs->most < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d boxes per level and %d in all, must be at least 1",
                             attrs->per_level, attrs->most);
    if (!(attrs->size > 0) || !(attrs->overlap >= 0 && attrs->overlap <= 1) || !(attrs->least >= 0))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "anchors of %g pixels, overlap %g, shortest side %g: must be positive, in 0..1, and at "
                             "least 0",
                             attrs->size, attrs->overlap, attrs->least);
    for (int l = 0; l < levels; l++)
        if (attrs->stride[l][0] < 1 || attrs->stride[l][1] < 1)
            return att_rule_fail(infer, ATT_ERR_ARGUMENT, "level %d has the strides %d and %d, must be at least 1", l,
                                 attrs->stride[l][0], attrs->stride[l][1]);
    return ATT_OK;
}

static att_status proposals_infer(att_infer *infer)
{
    const att_box_proposals_attrs *attrs = infer->attrs;
    const int levels = (infer->in_count - 1) / 2;
    if (infer->in_count % 2 == 0 || levels < 1 || levels > ATT_BOX_LEVELS)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "%d inputs, must be objectness and deltas of 1 to %d levels, and the image's size",
                             infer->in_count, ATT_BOX_LEVELS);
    for (int l = 0; l < levels; l++) {
        ATT_TRY(att_rule_require_rank(infer, l, "objectness", ATT_SAMPLE, 3));
        const int64_t *dims = infer->in[l].shape.dims;
        if (dims[2] != ATT_BOX_RATIOS || att_shape_count(infer->in[l].shape) > INT32_MAX)
            return att_rule_fail(infer, ATT_ERR_MISMATCH, "objectness %s must have %d anchors at each place",
                                 ATT_SHOWN(&infer->in[l]), ATT_BOX_RATIOS);
        ATT_TRY(att_rule_require_shape(infer, levels + l, "deltas", ATT_SAMPLE,
                                       att_shape_of(dims[0], dims[1], 4 * dims[2])));
    }
    ATT_TRY(att_rule_require_shape(infer, 2 * levels, "image_size", ATT_SAMPLE, att_shape_of(2)));
    ATT_TRY(check_attrs(infer, levels));
    ATT_TRY(att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(attrs->most, 4)));
    ATT_TRY(att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(attrs->most)));
    return att_rule_out(infer, ATT_I32, ATT_SAMPLE, (att_shape){.rank = 0});
}

/* A comparison for each anchor; overlaps are few beside them. */
static void proposals_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = 4 * (double)att_shape_count(in[0].shape);
}

#define OF(k, r, ...) \
    ATTRS(box_proposals, .size = 8, .overlap = 0.7, .least = 1, .per_level = (k), .most = (r), __VA_ARGS__)
#define STRIDES .stride = {{4, 4}, {8, 8}, {16, 16}}
#define SIZE(h) DRAWN(ATT_SAMPLE, 2, h, 2)
#define DELTAS(h, w) DRAWN(ATT_SAMPLE, 0.3, 0, h, w, 12)
static const att_op_case proposals_cases[] = {
    {.name = "one_level", OF(20, 12, STRIDES), IN(SAMPLE(4, 5, 3), DELTAS(4, 5), SIZE(18))},
    {.name = "levels",
     OF(10, 16, STRIDES, .rounded = 1),
     IN(SAMPLE(8, 6, 3), SAMPLE(4, 3, 3), SAMPLE(2, 2, 3), DELTAS(8, 6), DELTAS(4, 3), DELTAS(2, 2), SIZE(30))},
    {.name = "few",
     OF(1000, 400, STRIDES, .bounded = 1),
     IN(SAMPLE(3, 3, 3), SAMPLE(2, 2, 3), DRAWN(ATT_SAMPLE, 5, 0, 3, 3, 12), DELTAS(2, 2), SIZE(12))},
    {.name = "equal", OF(7, 9, STRIDES), IN(DRAWN(ATT_SAMPLE, 0, 1, 4, 4, 3), DELTAS(4, 4), SIZE(16))},
    {.name = "all_small", OF(7, 9, STRIDES), IN(SAMPLE(4, 4, 3), DELTAS(4, 4), DRAWN(ATT_SAMPLE, 0, 0, 2))},
    {.name = "level_2_of_800",
     OF(1000, 1000, STRIDES),
     IN(SAMPLE(200, 272, 3), DELTAS(200, 272), DRAWN(ATT_SAMPLE, 0, 800, 2)),
     .bench = true},
};

const att_op att_op_box_proposals = {
    .name = "box_proposals",
    .attrs_size = sizeof(att_box_proposals_attrs),
    .help = "boxes [R, 4], scores [R] and their count: the best anchors of each level, decoded, less what overlaps",
    .flags = ATT_OP_CONSTANT,
    .infer = proposals_infer,
    .cost = proposals_cost,
    ATT_CASES(proposals_cases),
};
