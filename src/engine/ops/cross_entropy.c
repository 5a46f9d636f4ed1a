#include <attscope/ops.h>

#include "engine/graph/graph.h"
#include "engine/ops/cases.h"
#include "engine/ops/cross_entropy.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_cross_entropy(att_graph *graph, att_value logits, att_value target, double smoothing)
{
    att_cross_entropy_attrs attrs = {.smoothing = smoothing};
    att_value in[2] = {logits, target};
    return att_emit(graph, "cross_entropy", &attrs, in, 2, NULL);
}

att_value att_token_cross_entropy(att_graph *graph, att_value logits, att_value target)
{
    att_cross_entropy_attrs attrs = {.rows = true};
    att_value in[2] = {logits, target};
    return att_emit(graph, "cross_entropy", &attrs, in, 2, NULL);
}

/* The logits are input `logits`; the target is the next input. */
static att_status require_operands(const att_infer *infer, int logits)
{
    const att_cross_entropy_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_rank(infer, logits, "logits", ATT_SAMPLE, attrs->rows ? 2 : 1));
    if (!attrs->rows)
        return att_rule_require_target(infer, logits, attrs->smoothing);
    const att_desc *target = &infer->in[logits + 1];
    if (!att_desc_present(target) || target->dtype != ATT_I32 || target->kind != ATT_SAMPLE ||
        target->shape.rank != 1 || target->shape.dims[0] != infer->in[logits].shape.dims[0])
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "target %s of type %s must be one number of type %s for each of the %lld tokens",
                             ATT_SHOWN(target), att_dtype_name(target->dtype), att_dtype_name(ATT_I32),
                             (long long)infer->in[logits].shape.dims[0]);
    return ATT_OK;
}

static att_status loss_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(require_operands(infer, 0));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, (att_shape){.rank = 0});
}

static void loss_backward(att_backward *backward)
{
    att_graph *graph = att_backward_graph(backward);
    if (att_backward_needs_gradient(backward, 1)) {
        att_graph_fail(graph, att_fail(graph->context, ATT_ERR_UNSUPPORTED,
                                       "cross_entropy: the target depends on parameters; it has no gradient here"));
        return;
    }
    att_value in[3] = {att_backward_gradient(backward, 0), att_backward_in(backward, 0), att_backward_in(backward, 1)};
    att_rule_add_node(backward, 0, "cross_entropy_grad", att_backward_attrs(backward), in, 3);
}

#define SMOOTHING(s) ATTRS(cross_entropy, .smoothing = (s))
#define ROWS ATTRS(cross_entropy, .rows = true)
static const att_op_case loss_cases[] = {
    {.name = "classes", SMOOTHING(0), IN(SAMPLE(7), CLASS(7)), .gradient = true},
    {.name = "smoothed", SMOOTHING(0.1), IN(SAMPLE(5), CLASS(5)), .gradient = true},
    {.name = "one_class", SMOOTHING(0.1), IN(SAMPLE(1), CLASS(1))},
    /* does not sum to 1; the gradient is then softmax sum_c t_c - t */
    {.name = "soft", IN(SAMPLE(7), DRAWN(ATT_SAMPLE, 0.1, 0.2, 7))},
    {.name = "large_logits", SMOOTHING(0.1), IN(DRAWN(ATT_SAMPLE, 1e4, 0, 33), CLASS(33))},
    {.name = "demo", SMOOTHING(0.1), IN(SAMPLE(10), CLASS(10)), .bench = true},
    {.name = "imagenet", SMOOTHING(0.1), IN(SAMPLE(1000), CLASS(1000)), .bench = true},
    {.name = "tokens", ROWS, IN(SAMPLE(5, 7), INDICES(7, 5)), .gradient = true},
    {.name = "one_token", ROWS, IN(SAMPLE(1, 33), INDICES(33, 1))},
};

const att_op att_op_cross_entropy = {
    .name = "cross_entropy",
    .attrs_size = sizeof(att_cross_entropy_attrs),
    .help = "loss = -sum_c t_c ln softmax(logits)_c, summed over the rows",
    .infer = loss_infer,
    .backward = loss_backward,
    .flops_per_in = 14, /* Maximum, exponential (10), sum, product with the target. */
    ATT_CASES(loss_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 3));
    ATT_TRY(att_rule_require_rank(infer, 0, "dloss", ATT_SAMPLE, 0));
    ATT_TRY(require_operands(infer, 1));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SAMPLE, infer->in[1].shape);
}

static const att_op_case grad_cases[] = {
    {.name = "classes", SMOOTHING(0), IN(SCALAR, SAMPLE(7), CLASS(7))},
    {.name = "smoothed", SMOOTHING(0.1), IN(SCALAR, SAMPLE(5), CLASS(5))},
    {.name = "soft", IN(SCALAR, SAMPLE(7), DRAWN(ATT_SAMPLE, 0.1, 0.2, 7))},
    {.name = "large_logits", SMOOTHING(0.1), IN(SCALAR, DRAWN(ATT_SAMPLE, 1e4, 0, 33), CLASS(33))},
    {.name = "imagenet", SMOOTHING(0.1), IN(SCALAR, SAMPLE(1000), CLASS(1000)), .bench = true},
    {.name = "tokens", ROWS, IN(SCALAR, SAMPLE(5, 7), INDICES(7, 5))},
    {.name = "one_token", ROWS, IN(SCALAR, SAMPLE(1, 33), INDICES(33, 1))},
};

const att_op att_op_cross_entropy_grad = {
    .name = "cross_entropy_grad",
    .attrs_size = sizeof(att_cross_entropy_attrs),
    .help = "dlogits = dloss (softmax(logits) sum_c t_c - t)",
    .infer = grad_infer,
    .flops_per_out = 14,
    ATT_CASES(grad_cases),
};
