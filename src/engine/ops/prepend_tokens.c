#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_prepend_tokens(att_graph *graph, att_value tokens, att_value x)
{
    att_value in[2] = {tokens, x};
    return att_emit(graph, "prepend_tokens", NULL, in, 2, NULL);
}

static att_status infer_tokens(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require(infer, 0, "tokens", ATT_SHARED));
    ATT_TRY(att_rule_require_rank(infer, 1, "x", ATT_SAMPLE, 2));
    int64_t n = infer->in[1].shape.dims[0], c = infer->in[1].shape.dims[1];
    int64_t count = att_shape_count(infer->in[0].shape);
    if (count % c)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "tokens %s must be whole rows of %lld, as x %s has",
                             ATT_SHOWN(&infer->in[0]), (long long)c, ATT_SHOWN(&infer->in[1]));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SAMPLE, att_shape_of(count / c + n, c));
}

static void backward_of_tokens(att_backward *backward)
{
    att_graph *graph = att_backward_graph(backward);
    att_value dy = att_backward_gradient(backward, 0);
    att_shape x = att_backward_in_desc(backward, 1).shape;
    int count = (int)(att_shape_count(att_backward_in_desc(backward, 0).shape) / x.dims[1]);
    if (att_backward_needs_gradient(backward, 0))
        att_rule_add_sum(backward, 0, att_slice_tokens(graph, dy, 0, count), 2);
    if (att_backward_needs_gradient(backward, 1))
        att_backward_add_gradient(backward, 1, att_slice_tokens(graph, dy, count, (int)x.dims[0]));
}

static const att_op_case cases[] = {
    {.name = "class_token", IN(SHARED(1, 1, 7), SAMPLE(5, 7)), .gradient = true},
    {.name = "three_tokens", IN(SHARED(3, 7), SAMPLE(1, 7)), .gradient = true},
    {.name = "demo", IN(SHARED(1, 1, 64), SAMPLE(49, 64)), .bench = true},
    {.name = "tiny", IN(SHARED(1, 1, 192), SAMPLE(196, 192)), .bench = true},
};

const att_op att_op_prepend_tokens = {
    .name = "prepend_tokens",
    .help = "y [T + N, C]: shared tokens before those of x [N, C]",
    .infer = infer_tokens,
    .backward = backward_of_tokens,
    .cost = att_rule_copy_cost,
    ATT_CASES(cases),
};
