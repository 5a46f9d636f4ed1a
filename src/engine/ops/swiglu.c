#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { A, B, IN_COUNT };
enum { GRAD_DY, GRAD_A, GRAD_B, GRAD_IN_COUNT };

att_value att_swiglu(att_graph *graph, att_value a, att_value b)
{
    att_value in[IN_COUNT] = {a, b};
    return att_emit(graph, "swiglu", NULL, in, IN_COUNT, NULL);
}

/* Checks inputs `first` and `first` + 1, which are a and b, and returns the shape of the result. */
static att_status check_operands(const att_infer *infer, int first, att_shape *result)
{
    const att_desc *a = &infer->in[first];
    ATT_TRY(att_rule_require_rows(infer, first, "a"));
    *result = a->shape;
    if (att_desc_present(&infer->in[first + 1]))
        return att_rule_require_like(infer, first + 1, "b", ATT_SAMPLE, first);
    if (att_rule_columns(a) % 2)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "a %s must have two halves", ATT_SHOWN(a));
    result->dims[result->rank - 1] /= 2;
    return ATT_OK;
}

static att_status swiglu_infer(att_infer *infer)
{
    att_shape result;
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(check_operands(infer, A, &result));
    return att_rule_out(infer, infer->in[A].dtype, ATT_SAMPLE, result);
}

static void swiglu_backward(att_backward *backward)
{
    att_value in[GRAD_IN_COUNT] = {att_backward_gradient(backward, 0), att_backward_in(backward, A),
                                   att_backward_in(backward, B)};
    att_rule_add_outputs(backward, "swiglu_grad", NULL, in, GRAD_IN_COUNT, IN_COUNT);
}

static const att_op_case swiglu_cases[] = {
    {.name = "two", IN(SAMPLE(5, 7), SAMPLE(5, 7)), .gradient = true},
    {.name = "halves", IN(SAMPLE(3, 5, 14), ABSENT), .gradient = true},
    {.name = "tails", IN(DRAWN(ATT_SAMPLE, 60, 0, 9, 66), ABSENT)},
    {.name = "large_values", IN(DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33), SAMPLE(5, 33))},
    {.name = "small", IN(SAMPLE(197, 2048), ABSENT), .bench = true},
    {.name = "small_two", IN(SAMPLE(197, 1024), SAMPLE(197, 1024)), .bench = true},
};

const att_op att_op_swiglu = {
    .name = "swiglu",
    .help = "y = silu(a) (.) b; without b, of the halves of a",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_in = 1u << A | 1u << B,
    .autocast_out = 1,
    .infer = swiglu_infer,
    .backward = swiglu_backward,
    .flops_per_out = 12, /* An exponential costs about 8 operations. */
    ATT_CASES(swiglu_cases),
};

static att_status grad_infer(att_infer *infer)
{
    att_shape result;
    ATT_TRY(att_rule_count(infer, GRAD_IN_COUNT));
    ATT_TRY(att_rule_require_rows(infer, GRAD_DY, "dy"));
    ATT_TRY(check_operands(infer, GRAD_A, &result));
    ATT_TRY(att_rule_require_shape(infer, GRAD_DY, "dy", ATT_SAMPLE, result));
    for (int i = GRAD_A; i < GRAD_IN_COUNT; i++)
        if (att_desc_present(&infer->in[i]))
            att_rule_out(infer, infer->in[i].dtype, ATT_SAMPLE, infer->in[i].shape);
    return ATT_OK;
}

static const att_op_case grad_cases[] = {
    {.name = "two", IN(SAMPLE(5, 7), SAMPLE(5, 7), SAMPLE(5, 7))},
    {.name = "halves", IN(SAMPLE(3, 5, 7), SAMPLE(3, 5, 14), ABSENT)},
    {.name = "tails", IN(SAMPLE(9, 33), DRAWN(ATT_SAMPLE, 60, 0, 9, 66), ABSENT)},
    {.name = "large_values", IN(SAMPLE(5, 33), DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33), SAMPLE(5, 33))},
    {.name = "small", IN(SAMPLE(197, 1024), SAMPLE(197, 2048), ABSENT), .bench = true},
};

const att_op att_op_swiglu_grad = {
    .name = "swiglu_grad",
    .help = "da = dy b s (1 + a (1 - s)), db = dy a s, s = 1 / (1 + exp(-a)); halves as in a",
    .autocast_in = 7,
    .autocast_out = 3,
    .infer = grad_infer,
    .flops_per_in = 17,
    ATT_CASES(grad_cases),
};
