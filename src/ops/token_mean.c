#include <attscope/ops.h>

#include "ops/cases.h"
#include "ops/list.h"
#include "ops/rule.h"

att_value att_token_mean(att_graph *graph, att_value x, int first)
{
    att_attrs attrs = {.mean = {.first = first}};
    return att_emit(graph, "token_mean", &attrs, &x, 1, NULL);
}

static att_status check_first(const att_infer *infer, const char *op, int64_t total)
{
    int first = ((const att_mean_attrs *)infer->attrs)->first;
    if (first < 0 || first >= total)
        return att_fail(infer->context, ATT_ERR_ARGUMENT, "%s: the first token is %d, must be among %lld", op, first,
                        (long long)total);
    return ATT_OK;
}

static att_status mean_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, "token_mean", 1));
    ATT_TRY(att_rule_take_rank(infer, "token_mean", 0, "x", ATT_SAMPLE, 2));
    att_shape x = infer->in[0].shape;
    ATT_TRY(check_first(infer, "token_mean", x.dims[0]));
    att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(x.dims[1]));
    return ATT_OK;
}

static void mean_backward(att_backward *backward)
{
    att_attrs attrs = *att_backward_attrs(backward);
    attrs.mean.total = (int32_t)att_backward_in_desc(backward, 0).shape.dims[0];
    att_value dy = att_backward_gradient(backward, 0);
    att_backward_give(backward, 0, att_emit(att_backward_graph(backward), "token_mean_grad", &attrs, &dy, 1, NULL));
}

static void mean_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = (double)att_shape_count(in->shape);
}

#define MEAN(f, t) .attrs.mean = {(f), (t)}
static const att_op_case mean_cases[] = {
    {.name = "all", MEAN(0, 5), .in = {ATT_CASE_SAMPLE(5, 7)}, .in_count = 1, .gradient = true},
    {.name = "patches", MEAN(1, 5), .in = {ATT_CASE_SAMPLE(5, 7)}, .in_count = 1, .gradient = true},
    {.name = "one_token", MEAN(4, 5), .in = {ATT_CASE_SAMPLE(5, 33)}, .in_count = 1},
    {.name = "large_values", MEAN(0, 9), .in = {ATT_CASE_DRAWN(ATT_SAMPLE, 1, 1e4, 9, 17)}, .in_count = 1},
    {.name = "demo", MEAN(0, 49), .in = {ATT_CASE_SAMPLE(49, 64)}, .in_count = 1, .bench = true},
    {.name = "tiny", MEAN(1, 197), .in = {ATT_CASE_SAMPLE(197, 192)}, .in_count = 1, .bench = true},
};

const att_op att_op_token_mean = {
    .name = "token_mean",
    .help = "y [C] = the mean of tokens first .. N - 1 of x [N, C]",
    .infer = mean_infer,
    .backward = mean_backward,
    .cost = mean_cost,
    ATT_CASES(mean_cases),
};

static att_status grad_infer(att_infer *infer)
{
    static const char op[] = "token_mean_grad";
    int total = ((const att_mean_attrs *)infer->attrs)->total;
    ATT_TRY(att_rule_count(infer, op, 1));
    ATT_TRY(att_rule_take_rank(infer, op, 0, "dy", ATT_SAMPLE, 1));
    ATT_TRY(check_first(infer, op, total));
    att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(total, infer->in[0].shape.dims[0]));
    return ATT_OK;
}

static const att_op_case grad_cases[] = {
    {.name = "all", MEAN(0, 5), .in = {ATT_CASE_SAMPLE(7)}, .in_count = 1},
    {.name = "patches", MEAN(2, 5), .in = {ATT_CASE_SAMPLE(33)}, .in_count = 1},
    {.name = "tiny", MEAN(1, 197), .in = {ATT_CASE_SAMPLE(192)}, .in_count = 1, .bench = true},
};

const att_op att_op_token_mean_grad = {
    .name = "token_mean_grad",
    .help = "dx [total, C]: dy / (total - first) at tokens first .. total - 1, zero before",
    .infer = grad_infer,
    ATT_CASES(grad_cases),
};
