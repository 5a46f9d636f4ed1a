#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

/* --- sum_lanes ---------------------------------------------------------------------------------------------------- */

static att_status infer_lanes(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "lanes", ATT_SHARED, 2));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SUMMED, att_shape_of(infer->in[0].shape.dims[1]));
}

static const att_op_case lane_cases[] = {
    {.name = "one_lane", IN(SHARED(1, 16))},
    {.name = "three_lanes", IN(SHARED(3, 4112))},
    {.name = "large_values", IN(DRAWN(ATT_SHARED, 1e25, 0, 2, 4096))},
    {.name = "demo", IN(SHARED(1, 204800)), .bench = true},
};

const att_op att_op_sum_lanes = {
    .name = "sum_lanes",
    .help = "adds the lanes to the total, in order",
    .infer = infer_lanes,
    .flops_per_in = 1,
    ATT_CASES(lane_cases),
};

/* --- sum_squares -------------------------------------------------------------------------------------------------- */

enum { BLOCK = 4096 }; /* elements per sum of squares; threads share updates in multiples of this number */

static att_status infer_squares(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SHARED, 1));
    return att_rule_out(infer, ATT_F64, ATT_SHARED, att_shape_of((infer->in[0].shape.dims[0] + BLOCK - 1) / BLOCK));
}

static const att_op_case square_cases[] = {
    {.name = "one_block", IN(SHARED(16))},
    {.name = "rest", IN(SHARED(4112))},
    {.name = "many_blocks", IN(SHARED(40960))},
    {.name = "large_values", IN(DRAWN(ATT_SHARED, 1e25, 0, 4096))},
    {.name = "demo", IN(SHARED(204800)), .bench = true},
};

const att_op att_op_sum_squares = {
    .name = "sum_squares",
    .help = "sums of squares, in f64, of each 4096 elements",
    .infer = infer_squares,
    .flops_per_in = 2,
    ATT_CASES(square_cases),
};
