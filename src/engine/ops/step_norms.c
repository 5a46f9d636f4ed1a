#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { BEFORE, AFTER, BRANCH, ADDED, IN_COUNT };

att_value att_step_norms(att_graph *graph, att_value before, att_value after, att_value branch, att_value added)
{
    att_value in[IN_COUNT] = {before, after, branch, added};
    return att_emit(graph, "step_norms", NULL, in, IN_COUNT, NULL);
}

static att_status norms_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require(infer, BEFORE, "before", ATT_SAMPLE));
    ATT_TRY(att_rule_require_like(infer, AFTER, "after", ATT_SAMPLE, BEFORE));
    if (att_desc_present(&infer->in[BRANCH]))
        ATT_TRY(att_rule_require_like(infer, BRANCH, "branch", ATT_SAMPLE, BEFORE));
    if (att_desc_present(&infer->in[ADDED]))
        ATT_TRY(att_rule_require_like(infer, ADDED, "added", ATT_SAMPLE, BEFORE));
    return att_rule_out(infer, infer->in[BEFORE].dtype, ATT_SAMPLE, att_shape_of(ATT_STEP_NORMS));
}

static void norms_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    int optional = att_desc_present(&in[BRANCH]) + att_desc_present(&in[ADDED]);
    cost->flops = (5 + 2 * optional) * (double)att_shape_count(in->shape);
}

static const att_op_case norms_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7), SAMPLE(5, 7), SAMPLE(5, 7), ABSENT)},
    {.name = "gated", IN(SAMPLE(9, 13), SAMPLE(9, 13), SAMPLE(9, 13), SAMPLE(9, 13))},
    {.name = "no_branch", IN(SAMPLE(3, 33), SAMPLE(3, 33), ABSENT, ABSENT)},
    {.name = "row", IN(SAMPLE(65), SAMPLE(65), ABSENT, ABSENT)},
    {.name = "large", IN(DRAWN(ATT_SAMPLE, 1e15, 0, 4, 8), DRAWN(ATT_SAMPLE, 1e15, 0, 4, 8), ABSENT, ABSENT)},
    {.name = "tiny", IN(SAMPLE(197, 192), SAMPLE(197, 192), ABSENT, ABSENT), .bench = true},
    {.name = "small", IN(SAMPLE(197, 384), SAMPLE(197, 384), SAMPLE(197, 384), SAMPLE(197, 384)), .bench = true},
};

const att_op att_op_step_norms = {
    .name = "step_norms",
    .help = "|before|, |after - before|, |branch|, |added|: Euclidean, over all elements",
    .autocast_in = 15,
    .infer = norms_infer,
    .cost = norms_cost,
    ATT_CASES(norms_cases),
};
