#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_cos_sin(att_graph *graph, att_value x)
{
    return att_emit(graph, "cos_sin", NULL, &x, 1, NULL);
}

static att_status cos_sin_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rows(infer, 0, "x"));
    att_shape shape = infer->in[0].shape;
    shape.dims[shape.rank - 1] *= 2;
    if (att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "x %s is too large", ATT_SHOWN(&infer->in[0]));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

static const att_op_case cos_sin_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "row", IN(SAMPLE(3))},
    {.name = "large_angles", IN(DRAWN(ATT_SAMPLE, 1000, 0, 3, 5, 33))},
    {.name = "small_table", IN(DRAWN(ATT_SAMPLE, 10, 0, 196, 6, 32)), .bench = true},
};

const att_op att_op_cos_sin = {
    .name = "cos_sin",
    .help = "y [.., 2 C]: cos(x), then sin(x), of x [.., C]",
    .infer = cos_sin_infer,
    .backward = att_rule_backward_y,
    .flops_per_out = 10, /* A cosine or sine costs about 10 operations. */
    ATT_CASES(cos_sin_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rows(infer, 0, "dy"));
    ATT_TRY(att_rule_require_like(infer, 1, "y", ATT_SAMPLE, 0));
    att_shape shape = infer->in[0].shape;
    if (shape.dims[shape.rank - 1] % 2)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the last axis of dy %s must be even", ATT_SHOWN(&infer->in[0]));
    shape.dims[shape.rank - 1] /= 2;
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

static const att_op_case grad_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 14), SAMPLE(5, 14))},
    {.name = "small_table", IN(SAMPLE(196, 6, 64), SAMPLE(196, 6, 64))},
};

const att_op att_op_cos_sin_grad = {
    .name = "cos_sin_grad",
    .help = "dx = dy_sin cos(x) - dy_cos sin(x)",
    .infer = grad_infer,
    .flops_per_out = 3,
    ATT_CASES(grad_cases),
};
