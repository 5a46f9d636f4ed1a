#include "engine/ops/binary_cross_entropy.h"

#include <math.h>

#include "engine/graph/graph.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_binary_cross_entropy(att_graph *graph, att_value logits, att_value target,
                                   const att_binary_cross_entropy_options *options)
{
    const att_binary_cross_entropy_options o =
        options ? *options : (att_binary_cross_entropy_options){.positive_weight = 1};
    const att_binary_cross_entropy_attrs attrs = {.smoothing = o.smoothing,
                                                  .threshold = o.threshold,
                                                  .positive_weight = o.positive_weight,
                                                  .binary = o.binary,
                                                  .sum = o.sum};
    att_value in[2] = {logits, target};
    return att_emit(graph, "binary_cross_entropy", &attrs, in, 2, NULL);
}

/* Whether the target says yes or no for each class. */
static bool is_whole(const att_desc *target)
{
    return att_desc_present(target) && target->dtype == ATT_I32 && target->shape.rank == 1;
}

static att_status require_whole(const att_infer *infer, int logits, double smoothing)
{
    if (!att_rule_is(infer, logits + 1, ATT_SAMPLE) ||
        !att_shape_equal(infer->in[logits + 1].shape, infer->in[logits].shape))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "integer target %s must be one number for each of the logits %s",
                             ATT_SHOWN(&infer->in[logits + 1]), ATT_SHOWN(&infer->in[logits]));
    if (smoothing != 0)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "smoothing is %g, must be 0 with a target for each class",
                             smoothing);
    return ATT_OK;
}

/* Checks the attributes, and the target, which is the input after the logits. */
static att_status require_target(const att_infer *infer, int logits)
{
    const att_binary_cross_entropy_attrs *attrs = infer->attrs;
    if (!(attrs->positive_weight >= 0 && isfinite(attrs->positive_weight)))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "positive_weight is %g, must be finite and not negative",
                             attrs->positive_weight);
    if (attrs->binary && isnan(attrs->threshold))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "threshold is not a number");
    return is_whole(&infer->in[logits + 1]) ? require_whole(infer, logits, attrs->smoothing)
                                            : att_rule_require_target(infer, logits, attrs->smoothing);
}

static att_status loss_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rank(infer, 0, "logits", ATT_SAMPLE, 1));
    ATT_TRY(require_target(infer, 0));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, (att_shape){.rank = 0});
}

static void loss_backward(att_backward *backward)
{
    att_graph *graph = att_backward_graph(backward);
    if (att_backward_needs_gradient(backward, 1)) {
        att_graph_fail(graph,
                       att_fail(graph->context, ATT_ERR_UNSUPPORTED,
                                "binary_cross_entropy: the target depends on parameters; it has no gradient here"));
        return;
    }
    att_value in[3] = {att_backward_gradient(backward, 0), att_backward_in(backward, 0), att_backward_in(backward, 1)};
    att_rule_add_node(backward, 0, "binary_cross_entropy_grad", att_backward_attrs(backward), in, 3);
}

#define BCE(...) ATTRS(binary_cross_entropy, .positive_weight = 1, __VA_ARGS__)
#define WEIGHTED(...) ATTRS(binary_cross_entropy, .positive_weight = 2.5, __VA_ARGS__)
static const att_op_case loss_cases[] = {
    {.name = "classes", BCE(.sum = false), IN(SAMPLE(7), CLASS(7)), .gradient = true},
    {.name = "smoothed", BCE(.smoothing = 0.1), IN(SAMPLE(5), CLASS(5)), .gradient = true},
    {.name = "smoothed_binary",
     WEIGHTED(.smoothing = 0.1, .binary = true, .threshold = 0.2),
     IN(SAMPLE(33), CLASS(33)),
     .gradient = true},
    {.name = "one_class", BCE(.smoothing = 0.1), IN(SAMPLE(1), CLASS(1))},
    {.name = "weighted_sum", WEIGHTED(.sum = true), IN(SAMPLE(19), CLASS(19)), .gradient = true},
    {.name = "soft", WEIGHTED(.sum = false), IN(SAMPLE(23), DRAWN(ATT_SAMPLE, 0.1, 0.2, 23))},
    {.name = "soft_binary",
     WEIGHTED(.binary = true, .threshold = 0.2),
     IN(SAMPLE(23), DRAWN(ATT_SAMPLE, 0.1, 0.2, 23))},
    {.name = "at_the_threshold",
     WEIGHTED(.binary = true, .threshold = 0.25),
     IN(SAMPLE(23), DRAWN(ATT_SAMPLE, 0, 0.25, 23))},
    {.name = "large_logits", BCE(.smoothing = 0.1), IN(DRAWN(ATT_SAMPLE, 1e4, 0, 33), CLASS(33))},
    {.name = "whole", WEIGHTED(.sum = true), IN(SAMPLE(13), INDICES(2, 13)), .gradient = true},
    {.name = "tails", WEIGHTED(.sum = true), IN(DRAWN(ATT_SAMPLE, 60, 0, 65), CLASS(65))},
    {.name = "imagenet", BCE(.smoothing = 0.1), IN(SAMPLE(1000), CLASS(1000)), .bench = true},
};

const att_op att_op_binary_cross_entropy = {
    .name = "binary_cross_entropy",
    .attrs_size = sizeof(att_binary_cross_entropy_attrs),
    .help = "loss = mean_c -(w t_c ln s_c + (1 - t_c) ln(1 - s_c)), s = 1 / (1 + exp(-logits))",
    .infer = loss_infer,
    .backward = loss_backward,
    .flops_per_in = 27, /* An exponential costs about 10 operations, a logarithm as many. */
    ATT_CASES(loss_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 3));
    ATT_TRY(att_rule_require_rank(infer, 0, "dloss", ATT_SAMPLE, 0));
    ATT_TRY(att_rule_require_rank(infer, 1, "logits", ATT_SAMPLE, 1));
    ATT_TRY(require_target(infer, 1));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SAMPLE, infer->in[1].shape);
}

static const att_op_case grad_cases[] = {
    {.name = "classes", BCE(.sum = false), IN(SCALAR, SAMPLE(7), CLASS(7))},
    {.name = "smoothed_binary",
     WEIGHTED(.smoothing = 0.1, .binary = true, .threshold = 0.2, .sum = true),
     IN(SCALAR, SAMPLE(33), CLASS(33))},
    {.name = "soft", WEIGHTED(.sum = false), IN(SCALAR, SAMPLE(23), DRAWN(ATT_SAMPLE, 0.1, 0.2, 23))},
    {.name = "soft_binary",
     BCE(.binary = true, .threshold = 0.2),
     IN(SCALAR, SAMPLE(23), DRAWN(ATT_SAMPLE, 0.1, 0.2, 23))},
    {.name = "whole", WEIGHTED(.sum = true), IN(SCALAR, SAMPLE(37), INDICES(2, 37))},
    {.name = "large_logits", BCE(.smoothing = 0.1), IN(SCALAR, DRAWN(ATT_SAMPLE, 1e4, 0, 33), CLASS(33))},
    {.name = "imagenet", BCE(.smoothing = 0.1), IN(SCALAR, SAMPLE(1000), CLASS(1000)), .bench = true},
};

const att_op att_op_binary_cross_entropy_grad = {
    .name = "binary_cross_entropy_grad",
    .attrs_size = sizeof(att_binary_cross_entropy_attrs),
    .help = "dlogits = dloss ((1 - t + w t) s - w t) / classes",
    .infer = grad_infer,
    .flops_per_out = 17,
    ATT_CASES(grad_cases),
};
