#include "ops/cases.h"
#include "ops/list.h"
#include "ops/rule.h"

enum { BLOCK = 4096 }; /* elements to one sum of squares: the grain in which updates are shared between threads */

static att_status infer_lanes(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, "sum_lanes", 1));
    ATT_TRY(att_rule_take_rank(infer, "sum_lanes", 0, "lanes", ATT_SHARED, 2));
    int64_t n = infer->in[0].shape.dims[1];
    att_rule_out(infer, infer->in[0].dtype, ATT_SHARED, att_shape_of(n));
    att_rule_out(infer, ATT_F64, ATT_SHARED, att_shape_of((n + BLOCK - 1) / BLOCK));
    return ATT_OK;
}

static void cost_of_lanes(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)attrs;
    cost->flops = (double)att_shape_count(in->shape) + (double)att_shape_count(out->shape);
}

static const att_op_case cases[] = {
    {.name = "one_lane", .in = {ATT_CASE_SHARED(1, 16)}, .in_count = 1},
    {.name = "three_lanes", .in = {ATT_CASE_SHARED(3, 4112)}, .in_count = 1},
    {.name = "many_blocks", .in = {ATT_CASE_SHARED(2, 40960)}, .in_count = 1},
    {.name = "large_values", .in = {ATT_CASE_DRAWN(ATT_SHARED, 1e25, 0, 2, 4096)}, .in_count = 1},
    {.name = "demo", .in = {ATT_CASE_SHARED(2, 204800)}, .in_count = 1, .bench = true},
};

const att_op att_op_sum_lanes = {
    .name = "sum_lanes",
    .help = "total = the sum of the lanes, in order; squares = sums of squares of each 4096 elements of total",
    .infer = infer_lanes,
    .cost = cost_of_lanes,
    ATT_CASES(cases),
};
