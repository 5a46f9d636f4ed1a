#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/residual_norms.h"
#include "engine/ops/rule.h"

att_value att_residual_norms(att_graph *graph, att_value x, bool median)
{
    const att_centre_attrs attrs = {median};
    return att_emit(graph, "residual_norms", &attrs, &x, 1, NULL);
}

static att_status norms_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SAMPLE, 2));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(ATT_RESIDUAL_NORMS));
}

static void norms_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    double passes = ((const att_centre_attrs *)attrs)->median ? 2 * 32 : 1; /* median: one comparison per bit */
    cost->flops = (7 + passes) * (double)att_shape_count(in->shape);
}

#define MEDIAN ATTRS(centre, true)
static const att_op_case norms_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7))},
    {.name = "one_token", IN(SAMPLE(1, 33))},
    {.name = "one_channel", IN(SAMPLE(9, 1))},
    {.name = "shifted", IN(DRAWN(ATT_SAMPLE, 1, 30, 17, 40))},
    {.name = "median_odd", MEDIAN, IN(SAMPLE(5, 7))},
    {.name = "median_even", MEDIAN, IN(SAMPLE(6, 35))},
    {.name = "median_one_token", MEDIAN, IN(SAMPLE(1, 3))},
    {.name = "median_shifted", MEDIAN, IN(DRAWN(ATT_SAMPLE, 1, 30, 17, 40))},
    {.name = "demo", IN(SAMPLE(50, 64)), .bench = true},
    {.name = "tiny", IN(SAMPLE(197, 192)), .bench = true},
    {.name = "small", IN(SAMPLE(197, 384)), .bench = true},
    {.name = "median_small", MEDIAN, IN(SAMPLE(197, 384)), .bench = true},
};

const att_op att_op_residual_norms = {
    .name = "residual_norms",
    .attrs_size = sizeof(att_centre_attrs),
    .help = "|X|_1, |X|_inf, |X|_F of the tokens X [N, C], and the same of X - 1 mean(X)', or of X - 1 median(X)'",
    .autocast_in = 1,
    .infer = norms_infer,
    .cost = norms_cost,
    ATT_CASES(norms_cases),
};
