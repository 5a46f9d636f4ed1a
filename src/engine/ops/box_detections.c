#include <string.h>

#include <attscope/ops.h>

#include "engine/ops/boxes.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { LOGITS, DELTAS, PROPOSALS, COUNT, IMAGE_SIZE, INPUTS };

att_value att_box_detections(att_graph *graph, att_value logits, att_value deltas, att_value proposals, att_value count,
                             att_value image_size, const att_box_detections_options *options, att_detections *out)
{
    att_box_detections_attrs attrs = {.score = options->score,
                                      .overlap = options->overlap,
                                      .least = options->least,
                                      .most = options->most,
                                      .background_first = options->background_first,
                                      .bounded = options->bounded};
    const att_value in[INPUTS] = {logits, deltas, proposals, count, image_size};
    att_value values[4] = {ATT_NONE, ATT_NONE, ATT_NONE, ATT_NONE};
    memcpy(attrs.weights, options->weights, sizeof attrs.weights);
    att_emit(graph, "box_detections", &attrs, in, INPUTS, values);
    *out = (att_detections){values[0], values[1], values[2], values[3]};
    return values[0];
}

static att_status check_attrs(const att_infer *infer)
{
    const att_box_detections_attrs *attrs = infer->attrs;
    if (attrs->most < 1 || attrs->most > INT32_MAX)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%lld detections, must be at least 1", (long long)attrs->most);
    if (!(attrs->score >= 0 && attrs->score < 1) || !(attrs->overlap >= 0 && attrs->overlap <= 1) ||
        !(attrs->least >= 0))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "least score %g, overlap %g, shortest side %g: must be in 0..1, in 0..1, and at least 0",
                             attrs->score, attrs->overlap, attrs->least);
    for (int c = 0; c < 4; c++)
        if (!(attrs->weights[c] > 0))
            return att_rule_fail(infer, ATT_ERR_ARGUMENT, "weight %d of the deltas is %g, must be positive", c,
                                 attrs->weights[c]);
    return ATT_OK;
}

static att_status detections_infer(att_infer *infer)
{
    const att_box_detections_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, INPUTS));
    ATT_TRY(att_rule_require_rank(infer, LOGITS, "logits", ATT_SAMPLE, 2));
    ATT_TRY(att_rule_require_rank(infer, DELTAS, "deltas", ATT_SAMPLE, 2));
    const int64_t *logits = infer->in[LOGITS].shape.dims, *deltas = infer->in[DELTAS].shape.dims;
    if (logits[1] < 2 || logits[0] != deltas[0] || logits[0] > INT32_MAX || logits[1] > INT32_MAX / 4 ||
        (deltas[1] != 4 * logits[1] && deltas[1] != 4 * (logits[1] - 1)))
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "logits %s must be of a class and the background at least, and deltas %s four for each "
                             "of them, or for all but the background",
                             ATT_SHOWN(&infer->in[LOGITS]), ATT_SHOWN(&infer->in[DELTAS]));
    ATT_TRY(att_rule_require_shape(infer, PROPOSALS, "proposals", ATT_SAMPLE, att_shape_of(logits[0], 4)));
    ATT_TRY(att_rule_require_count(infer, COUNT));
    ATT_TRY(att_rule_require_shape(infer, IMAGE_SIZE, "image_size", ATT_SAMPLE, att_shape_of(2)));
    ATT_TRY(check_attrs(infer));
    ATT_TRY(att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(attrs->most, 4)));
    ATT_TRY(att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(attrs->most)));
    ATT_TRY(att_rule_out(infer, ATT_I32, ATT_SAMPLE, att_shape_of(attrs->most)));
    return att_rule_out(infer, ATT_I32, ATT_SAMPLE, (att_shape){.rank = 0});
}

/* The softmax (20 for an exponential and the sum). */
static void detections_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = 20 * (double)att_shape_count(in[LOGITS].shape);
}

#define OF(d, s, ...)                                                                                          \
    ATTRS(box_detections, .weights = {10, 10, 5, 5}, .overlap = 0.5, .least = 0.01, .most = (d), .score = (s), \
          __VA_ARGS__)
/* Boxes of random corners, of which those with right before left are left out. */
#define BOXES(r) DRAWN(ATT_SAMPLE, 20, 30, r, 4)
#define SIZE DRAWN(ATT_SAMPLE, 2, 50, 2)
static const att_op_case detections_cases[] = {
    {.name = "background_first",
     OF(10, 0.05, .background_first = 1),
     IN(SAMPLE(12, 5), SAMPLE(12, 20), BOXES(12), CLASS(13), SIZE)},
    {.name = "background_last",
     OF(10, 0.05, .bounded = 1),
     IN(SAMPLE(12, 5), SAMPLE(12, 16), BOXES(12), CLASS(13), SIZE)},
    {.name = "every_score",
     OF(100, 0, .background_first = 1),
     IN(SAMPLE(9, 4), SAMPLE(9, 12), BOXES(9), CLASS(10), SIZE)},
    {.name = "sure",
     OF(6, 0.6, .background_first = 1),
     IN(DRAWN(ATT_SAMPLE, 8, 0, 30, 3), SAMPLE(30, 12), BOXES(30), CLASS(31), SIZE)},
    {.name = "equal",
     OF(20, 0.1, .background_first = 1),
     IN(DRAWN(ATT_SAMPLE, 0, 0, 12, 5), SAMPLE(12, 20), BOXES(12), CLASS(13), SIZE)},
    {.name = "coco",
     OF(100, 0.05, .background_first = 1),
     IN(DRAWN(ATT_SAMPLE, 3, 0, 1000, 91), SAMPLE(1000, 364), DRAWN(ATT_SAMPLE, 200, 400, 1000, 4), CLASS(1001),
        DRAWN(ATT_SAMPLE, 0, 800, 2)),
     .bench = true},
};

const att_op att_op_box_detections = {
    .name = "box_detections",
    .attrs_size = sizeof(att_box_detections_attrs),
    .help = "boxes [D, 4], scores, classes and their count: proposals decoded for each class, less what overlaps",
    .flags = ATT_OP_CONSTANT,
    .infer = detections_infer,
    .cost = detections_cost,
    ATT_CASES(detections_cases),
};
