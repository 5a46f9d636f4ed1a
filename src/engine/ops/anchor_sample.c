#include <attscope/ops.h>

#include "engine/ops/box_targets.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_anchor_sample(att_graph *graph, att_value true_boxes, const att_value *maps, int levels,
                            const att_anchors *anchors, const att_box_sampling *sampling, att_anchor_targets *targets)
{
    att_anchor_sample_attrs attrs = {.sampling = att_box_sampling_of(graph, sampling),
                                     .size = anchors->size,
                                     .rounded = anchors->rounded,
                                     .levels = levels};
    att_value out[3] = {ATT_NONE, ATT_NONE, ATT_NONE};
    for (int l = 0; l < levels && l < ATT_BOX_LEVELS; l++)
        for (int axis = 0; axis < 2; axis++) {
            attrs.stride[l][axis] = anchors->stride[l][axis];
            attrs.sides[l][axis] = (int32_t)att_value_shape(graph, maps[l]).dims[axis];
        }
    att_emit(graph, "anchor_sample", &attrs, &true_boxes, 1, out);
    *targets = (att_anchor_targets){out[0], out[1], out[2]};
    return out[0];
}

static att_status anchors_infer(att_infer *infer)
{
    const att_anchor_sample_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_box_sampling_check(infer, &attrs->sampling, 0));
    if (attrs->levels < 1 || attrs->levels > ATT_BOX_LEVELS || !(attrs->size > 0))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d levels, anchors of %g pixels: must be 1 to %d, and positive",
                             attrs->levels, attrs->size, ATT_BOX_LEVELS);
    for (int l = 0; l < attrs->levels; l++)
        for (int axis = 0; axis < 2; axis++)
            if (attrs->stride[l][axis] < 1 || attrs->sides[l][axis] < 1)
                return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                                     "level %d has the stride %d and the side %d, must be at least 1", l,
                                     attrs->stride[l][axis], attrs->sides[l][axis]);
    const int64_t count = att_anchor_count(attrs);
    if (count > INT32_MAX)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%lld anchors are too many", (long long)count);
    ATT_TRY(att_rule_out(infer, ATT_I32, ATT_SAMPLE, att_shape_of(count)));
    ATT_TRY(att_rule_out(infer, ATT_I32, ATT_SAMPLE, att_shape_of(count)));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(count, 4));
}

/* A draw for each anchor (about 40 operations for four). */
static void anchors_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)in, (void)out;
    cost->flops = 10 * (double)att_anchor_count(attrs);
}

#define SAMPLING(best_, samples_, ...)  \
    .sampling = {.positive = 0.5,       \
                 .negative = 0.3,       \
                 .share = 0.5,          \
                 .best = (best_),       \
                 .samples = (samples_), \
                 .stream = 7,           \
                 __VA_ARGS__}
#define LEVELS .size = 8, .levels = 3, .stride = {{4, 4}, {8, 8}, {16, 16}}, .sides = {{8, 6}, {4, 3}, {2, 2}}
#define ANCHORS(...) ATTRS(anchor_sample, __VA_ARGS__)
/* Boxes of random corners, half of which have no area; classes below 0 make crowds. */
#define BOXES(g) DRAWN(ATT_SAMPLE, 14, 12, g, 5)
static const att_op_case anchors_cases[] = {
    {.name = "all", ANCHORS(SAMPLING(ATT_BEST_NONE, 300, .crowd = 1), LEVELS), IN(BOXES(9))},
    {.name = "few", ANCHORS(SAMPLING(ATT_BEST_OF_CANDIDATE, 16, .crowd = 0.5), LEVELS, .rounded = 1), IN(BOXES(9))},
    {.name = "of_boxes", ANCHORS(SAMPLING(ATT_BEST_OF_BOX, 32, .least = 0.3, .crowd = 0.1), LEVELS), IN(BOXES(12))},
    {.name = "no_boxes",
     ANCHORS(SAMPLING(ATT_BEST_OF_BOX, 32, .crowd = 0.5), LEVELS),
     IN(DRAWN(ATT_SAMPLE, 0, 0, 3, 5))},
    {.name = "coco",
     ANCHORS(SAMPLING(ATT_BEST_OF_CANDIDATE, 256, .crowd = 0.5), .size = 32, .levels = 5,
             .stride = {{4, 4}, {8, 8}, {16, 16}, {32, 32}, {64, 64}},
             .sides = {{200, 272}, {100, 136}, {50, 68}, {25, 34}, {13, 17}}),
     IN(DRAWN(ATT_SAMPLE, 150, 400, 100, 5)),
     .bench = true},
};

const att_op att_op_anchor_sample = {
    .name = "anchor_sample",
    .attrs_size = sizeof(att_anchor_sample_attrs),
    .help = "classes [A], columns [A] and deltas [A, 4] of anchors that a training run samples",
    .flags = ATT_OP_CONSTANT | ATT_OP_DRAWS | ATT_OP_NEEDS_SAMPLES,
    .infer = anchors_infer,
    .cost = anchors_cost,
    ATT_CASES(anchors_cases),
};
