#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

static att_status infer_one(att_infer *infer, const char *name, att_dtype dtype)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, name, ATT_SHARED, 1));
    return att_rule_out(infer, dtype, ATT_SHARED, att_shape_of(1));
}

#define F64_INPUT(scale_, shift_, count)                                                           \
    {                                                                                              \
        .desc = {ATT_F64, ATT_SHARED, ATT_CASE_SHAPE(count)}, .scale = (scale_), .shift = (shift_) \
    }

/* --- gradient_norm ------------------------------------------------------------------------------------------------ */

static att_status infer_norm(att_infer *infer)
{
    return infer_one(infer, "squares", ATT_F64);
}

static const att_op_case norm_cases[] = {
    {.name = "one", IN(F64_INPUT(0.1, 3, 1))},
    {.name = "many", IN(F64_INPUT(0.1, 3, 333))},
    {.name = "zero", IN(F64_INPUT(0, 0, 5))},
};

const att_op att_op_gradient_norm = {
    .name = "gradient_norm",
    .help = "the square root of the sum of sum_squares, in order",
    .infer = infer_norm,
    ATT_CASES(norm_cases),
};

/* --- clip_factor -------------------------------------------------------------------------------------------------- */

/* The output has the type of the graph; cases use f32. */
static att_status infer_factor(att_infer *infer)
{
    return infer_one(infer, "norm", ATT_F32);
}

static const att_op_case factor_cases[] = {
    {.name = "below", IN(F64_INPUT(0, 0.25, 1))},
    {.name = "above", IN(F64_INPUT(0, 40, 1))},
};

const att_op att_op_clip_factor = {
    .name = "clip_factor",
    .help = "min(1, clip_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_; 1 where clip_norm is 0",
    .infer = infer_factor,
    ATT_CASES(factor_cases),
};
