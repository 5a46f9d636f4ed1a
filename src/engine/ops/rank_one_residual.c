#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_rank_one_residual(att_graph *graph, att_value x)
{
    return att_emit(graph, "rank_one_residual", NULL, &x, 1, NULL);
}

static att_status residual_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SAMPLE, 2));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(1));
}

static void residual_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    enum { STEPS = 20 }; /* usual number of steps of the power iteration */
    (void)out, (void)attrs;
    cost->flops = 4.0 * STEPS * (double)att_shape_count(in->shape);
}

static const att_op_case residual_cases[] = {
    {.name = "odd", IN(DRAWN(ATT_SAMPLE, 1, 2, 5, 7))},
    {.name = "near_rank_one", IN(DRAWN(ATT_SAMPLE, 0.01, 1, 17, 17))},
    {.name = "tiny", IN(DRAWN(ATT_SAMPLE, 1, 2, 197, 197)), .bench = true},
};

const att_op att_op_rank_one_residual = {
    .name = "rank_one_residual",
    .help = "|X - s u v'|_F / |X|_F of a matrix X [M, N], with its largest singular value s and the vectors u and v",
    .infer = residual_infer,
    .cost = residual_cost,
    ATT_CASES(residual_cases),
};
