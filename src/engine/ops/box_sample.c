#include <string.h>

#include <attscope/ops.h>

#include "engine/ops/box_targets.h"
#include "engine/ops/cases.h"
#include "engine/ops/drop.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { PROPOSALS, COUNT, TRUE_BOXES, INPUTS };

att_box_sampling_attrs att_box_sampling_of(const att_graph *graph, const att_box_sampling *sampling)
{
    return (att_box_sampling_attrs){.positive = sampling->positive,
                                    .negative = sampling->negative,
                                    .least = sampling->least,
                                    .crowd = sampling->crowd,
                                    .share = sampling->share,
                                    .stream = att_drop_next_stream(graph),
                                    .best = sampling->best,
                                    .samples = sampling->samples};
}

static bool is_share(double value)
{
    return value >= 0 && value <= 1;
}

att_status att_box_sampling_check(const att_infer *infer, const att_box_sampling_attrs *attrs, int true_boxes)
{
    ATT_TRY(att_rule_require_rank(infer, true_boxes, "true_boxes", ATT_SAMPLE, 2));
    const att_desc *boxes = &infer->in[true_boxes];
    if (boxes->shape.dims[1] != 5 || boxes->shape.dims[0] > INT32_MAX)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "true boxes %s must be four numbers and a class each",
                             ATT_SHOWN(boxes));
    if (!(attrs->positive > 0 && attrs->positive <= 1) || !(attrs->negative >= 0 && attrs->negative <= attrs->positive))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "overlaps of at least %g are positive, below %g negative: must be above 0 to 1, and 0 to "
                             "the first",
                             attrs->positive, attrs->negative);
    if (!is_share(attrs->least) || !is_share(attrs->crowd) || !is_share(attrs->share) || attrs->samples < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "least overlap %g, share in a crowd %g, share of positive ones %g, %d samples: must be in "
                             "0..1, 0..1, 0..1, and at least 1",
                             attrs->least, attrs->crowd, attrs->share, attrs->samples);
    return ATT_OK;
}

att_value att_box_sample(att_graph *graph, att_value proposals, att_value count, att_value true_boxes,
                         const att_box_targets_options *options, att_box_targets *targets)
{
    att_box_sample_attrs attrs = {.sampling = att_box_sampling_of(graph, &options->sampling),
                                  .classes = options->classes,
                                  .background_first = options->background_first};
    const att_value in[INPUTS] = {proposals, count, true_boxes};
    att_value out[5] = {ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE};
    memcpy(attrs.weights, options->weights, sizeof attrs.weights);
    att_emit(graph, "box_sample", &attrs, in, INPUTS, out);
    *targets = (att_box_targets){out[0], out[1], out[2], out[3], out[4]};
    return out[0];
}

static att_status boxes_infer(att_infer *infer)
{
    const att_box_sample_attrs *attrs = infer->attrs;
    const int64_t samples = attrs->sampling.samples;
    ATT_TRY(att_rule_count(infer, INPUTS));
    ATT_TRY(att_rule_require_rank(infer, PROPOSALS, "proposals", ATT_SAMPLE, 2));
    const int64_t *proposals = infer->in[PROPOSALS].shape.dims;
    if (proposals[1] != 4 || proposals[0] > INT32_MAX)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "proposals %s must have four numbers each",
                             ATT_SHOWN(&infer->in[PROPOSALS]));
    ATT_TRY(att_rule_require_count(infer, COUNT));
    ATT_TRY(att_box_sampling_check(infer, &attrs->sampling, TRUE_BOXES));
    if (attrs->classes < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d classes, must be at least 1", attrs->classes);
    for (int c = 0; c < 4; c++)
        if (!(attrs->weights[c] > 0))
            return att_rule_fail(infer, ATT_ERR_ARGUMENT, "weight %d of the deltas is %g, must be positive", c,
                                 attrs->weights[c]);
    ATT_TRY(att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(samples, 4)));
    ATT_TRY(att_rule_out(infer, ATT_I32, ATT_SAMPLE, att_shape_of(samples)));
    ATT_TRY(att_rule_out(infer, ATT_I32, ATT_SAMPLE, att_shape_of(samples)));
    ATT_TRY(att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(samples, 4)));
    return att_rule_out(infer, ATT_I32, ATT_SAMPLE, (att_shape){.rank = 0});
}

/* An overlap (15 operations) of each pair, at most. */
static void boxes_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = 15 * (double)in[PROPOSALS].shape.dims[0] * (double)in[TRUE_BOXES].shape.dims[0];
}

#define OF(best_, samples_, ...)                                            \
    ATTRS(box_sample, .weights = {10, 10, 5, 5}, .classes = 5, __VA_ARGS__, \
          .sampling = {.positive = 0.4,                                     \
                       .negative = 0.3,                                     \
                       .share = 0.25,                                       \
                       .crowd = 0.5,                                        \
                       .best = (best_),                                     \
                       .samples = (samples_),                               \
                       .stream = 3})
/* Boxes of random corners, three quarters of which have no area. */
#define BOXES(...) DRAWN(ATT_SAMPLE, 20, 30, __VA_ARGS__)
static const att_op_case boxes_cases[] = {
    {.name = "all", OF(ATT_BEST_NONE, 90, .background_first = 1), IN(BOXES(30, 4), CLASS(31), BOXES(12, 5))},
    {.name = "few", OF(ATT_BEST_OF_CANDIDATE, 12, .background_first = 0), IN(BOXES(40, 4), CLASS(41), BOXES(12, 5))},
    {.name = "of_boxes", OF(ATT_BEST_OF_BOX, 8, .background_first = 1), IN(BOXES(17, 4), CLASS(18), BOXES(9, 5))},
    {.name = "no_boxes",
     OF(ATT_BEST_NONE, 16, .background_first = 1),
     IN(BOXES(40, 4), CLASS(41), DRAWN(ATT_SAMPLE, 0, 0, 3, 5))},
    {.name = "coco",
     OF(ATT_BEST_NONE, 512, .background_first = 1),
     IN(DRAWN(ATT_SAMPLE, 150, 400, 2000, 4), CLASS(2001), DRAWN(ATT_SAMPLE, 150, 400, 100, 5)),
     .bench = true},
};

const att_op att_op_box_sample = {
    .name = "box_sample",
    .attrs_size = sizeof(att_box_sample_attrs),
    .help =
        "boxes [S, 4], classes, columns, deltas and their count: proposals and true boxes that a training run samples",
    .flags = ATT_OP_CONSTANT | ATT_OP_DRAWS | ATT_OP_NEEDS_SAMPLES,
    .infer = boxes_infer,
    .cost = boxes_cost,
    ATT_CASES(boxes_cases),
};
