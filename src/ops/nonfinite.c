#include "ops/cases.h"
#include "ops/list.h"
#include "ops/rule.h"

static att_status infer_count(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, "nonfinite", 1));
    ATT_TRY(att_rule_take(infer, "nonfinite", 0, "x", ATT_SAMPLE));
    att_rule_out(infer, ATT_I32, ATT_SAMPLE, (att_shape){.rank = 0});
    return ATT_OK;
}

static void cost_of_count(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = (double)att_shape_count(in->shape);
}

static const att_op_case cases[] = {
    {.name = "finite", .in = {ATT_CASE_SAMPLE(5, 7)}, .in_count = 1},
    /* Beyond the largest f32 about one time in three. */
    {.name = "overflowing", .in = {ATT_CASE_DRAWN(ATT_SAMPLE, 3.4e38, 0, 9, 33)}, .in_count = 1},
    {.name = "tiny", .in = {ATT_CASE_SAMPLE(197, 768)}, .in_count = 1, .bench = true},
};

const att_op att_op_nonfinite = {
    .name = "nonfinite",
    .help = "how many elements of each sample are NaN or infinite",
    .infer = infer_count,
    .cost = cost_of_count,
    ATT_CASES(cases),
};
