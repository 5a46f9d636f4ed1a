#include <attscope/ops.h>

#include <math.h>

#include "engine/ops/cases.h"
#include "engine/ops/context_broadcast.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X, SCALE, RESIDUAL, IN_COUNT };

att_value att_context_broadcast(att_graph *graph, att_value x, double keep, double share, att_value scale)
{
    att_broadcast_attrs attrs = {.keep = keep, .share = share};
    att_value in[IN_COUNT] = {x, scale, ATT_NONE};
    return att_emit(graph, "context_broadcast", &attrs, in, IN_COUNT, NULL);
}

static att_status broadcast_infer(att_infer *infer)
{
    const att_broadcast_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require_rank(infer, X, "x", ATT_SAMPLE, 2));
    if (att_desc_present(&infer->in[SCALE]))
        ATT_TRY(att_rule_require_vector(infer, SCALE, "scale", X));
    if (att_desc_present(&infer->in[RESIDUAL]))
        ATT_TRY(att_rule_require_like(infer, RESIDUAL, "residual", ATT_SAMPLE, X));
    if (!isfinite(attrs->keep) || !isfinite(attrs->share))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "keep is %g and share is %g, must be finite", attrs->keep,
                             attrs->share);
    return att_rule_out(infer, infer->in[X].dtype, ATT_SAMPLE, infer->in[X].shape);
}

/* The map is symmetric in the tokens, so it is its own transpose. Runs before a residual is absorbed. */
static void broadcast_backward(att_backward *backward)
{
    if (att_backward_needs_gradient(backward, X)) {
        att_value in[IN_COUNT] = {att_backward_gradient(backward, 0), att_backward_in(backward, SCALE), ATT_NONE};
        att_rule_add_node(backward, X, "context_broadcast", att_backward_attrs(backward), in, IN_COUNT);
    }
    att_rule_add_product(backward, SCALE, "context_broadcast_scale_grad", NULL, X);
}

/* The sum over tokens, its addition to every token, and the product with keep. */
static void broadcast_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    const att_broadcast_attrs *broadcast = attrs;
    bool shares = broadcast->share != 0 || att_desc_present(&in[SCALE]);
    int each = (shares ? 2 : 0) + (broadcast->keep != 1 ? 1 : 0);
    cost->flops = each * (double)att_shape_count(in[X].shape);
}

static bool broadcast_absorb(att_node *producer, const att_node *consumer)
{
    return att_rule_absorb_added(producer, consumer, RESIDUAL);
}

#define CB ATTRS(broadcast, 0.5, 0.5)
#define CB_S ATTRS(broadcast, 1, 0)
static const att_op_case broadcast_cases[] = {
    {.name = "cb", CB, IN(SAMPLE(5, 7), ABSENT, ABSENT), .gradient = true},
    {.name = "cb_s", CB_S, IN(SAMPLE(5, 7), SHARED(7), ABSENT), .gradient = true},
    {.name = "uneven", ATTRS(broadcast, 0.3, -1.7), IN(SAMPLE(3, 33), ABSENT, SAMPLE(3, 33))},
    {.name = "one_token", CB_S, IN(SAMPLE(1, 7), SHARED(7), SAMPLE(1, 7))},
    {.name = "nothing_shared", ATTRS(broadcast, 0.5, 0), IN(SAMPLE(5, 33), ABSENT, SAMPLE(5, 33))},
    {.name = "demo", CB, IN(SAMPLE(50, 64), ABSENT, SAMPLE(50, 64)), .bench = true},
    {.name = "small", CB_S, IN(SAMPLE(197, 384), SHARED(384), SAMPLE(197, 384)), .bench = true},
};

const att_op att_op_context_broadcast = {
    .name = "context_broadcast",
    .attrs_size = sizeof(att_broadcast_attrs),
    .help = "y_i = keep x_i + share (.) mean_j x_j (+ residual), over all tokens",
    .autocast_in = 1u << X,
    .autocast_out = 1,
    .infer = broadcast_infer,
    .backward = broadcast_backward,
    .cost = broadcast_cost,
    .absorb = broadcast_absorb,
    ATT_CASES(broadcast_cases),
};

static att_status scale_grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 2));
    ATT_TRY(att_rule_require_like(infer, 1, "x", ATT_SAMPLE, 0));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SUMMED, att_shape_of(infer->in[1].shape.dims[1]));
}

static const att_op_case scale_grad_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7), SAMPLE(5, 7))},
    {.name = "one_token", IN(SAMPLE(1, 33), SAMPLE(1, 33))},
    {.name = "small", IN(SAMPLE(197, 384), SAMPLE(197, 384)), .bench = true},
};

const att_op att_op_context_broadcast_scale_grad = {
    .name = "context_broadcast_scale_grad",
    .attrs_size = sizeof(att_broadcast_attrs),
    .help = "dscale = the sum over samples of mean_j x_j (.) sum_i dy_i",
    .autocast_in = 3,
    .infer = scale_grad_infer,
    .flops_per_in = 2,
    ATT_CASES(scale_grad_cases),
};
