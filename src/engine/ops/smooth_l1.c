#include "engine/ops/smooth_l1.h"

#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X, TARGET, COLUMNS, INPUTS };

att_value att_smooth_l1(att_graph *graph, att_value x, att_value target, att_value columns, double beta)
{
    const att_smooth_l1_attrs attrs = {.beta = beta};
    const att_value in[INPUTS] = {x, target, columns};
    return att_emit(graph, "smooth_l1", &attrs, in, INPUTS, NULL);
}

/* Checks x, which is input `x`, and the target and columns after it. */
static att_status require_operands(const att_infer *infer, int x)
{
    const att_smooth_l1_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_rank(infer, x + X, "x", ATT_SAMPLE, 2));
    ATT_TRY(att_rule_require_rank(infer, x + TARGET, "target", ATT_SAMPLE, 2));
    const int64_t *of = infer->in[x + X].shape.dims, *target = infer->in[x + TARGET].shape.dims;
    if (target[0] != of[0] || of[1] % target[1] != 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "x %s must have as many rows as the target %s and a multiple of its columns",
                             ATT_SHOWN(&infer->in[x + X]), ATT_SHOWN(&infer->in[x + TARGET]));
    const att_desc *columns = &infer->in[x + COLUMNS];
    if (!att_desc_present(columns) || columns->dtype != ATT_I32 || !att_rule_is(infer, x + COLUMNS, ATT_SAMPLE) ||
        !att_shape_equal(columns->shape, att_shape_of(of[0])))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "columns %s must be one number of type %s for each row of x %s",
                             ATT_SHOWN(columns), att_dtype_name(ATT_I32), ATT_SHOWN(&infer->in[x + X]));
    if (!(attrs->beta >= 0 && isfinite(attrs->beta)))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "beta is %g, must be finite and at least 0", attrs->beta);
    return ATT_OK;
}

static att_status loss_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, INPUTS));
    ATT_TRY(require_operands(infer, 0));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, (att_shape){.rank = 0});
}

static void loss_backward(att_backward *backward)
{
    const att_value in[] = {att_backward_gradient(backward, 0), att_backward_in(backward, X),
                            att_backward_in(backward, TARGET), att_backward_in(backward, COLUMNS)};
    att_rule_add_outputs(backward, "smooth_l1_grad", att_backward_attrs(backward), in, 4, 2);
}

#define BETA(b) ATTRS(smooth_l1, .beta = (b))
static const att_op_case loss_cases[] = {
    {.name = "classes", BETA(1), IN(SAMPLE(6, 12), SAMPLE(6, 4), INDICES(3, 6)), .gradient = true},
    {.name = "sharp", BETA(1.0 / 9), IN(SAMPLE(5, 4), SAMPLE(5, 4), INDICES(1, 5)), .gradient = true},
    {.name = "absolute", BETA(0), IN(SAMPLE(5, 14), SAMPLE(5, 7), INDICES(2, 5)), .gradient = true},
    {.name = "equal", BETA(0), IN(DRAWN(ATT_SAMPLE, 0, 1, 3, 4), DRAWN(ATT_SAMPLE, 0, 1, 3, 4), INDICES(1, 3))},
    {.name = "coco", BETA(1.0 / 9), IN(SAMPLE(512, 364), SAMPLE(512, 4), INDICES(91, 512)), .bench = true},
};

const att_op att_op_smooth_l1 = {
    .name = "smooth_l1",
    .attrs_size = sizeof(att_smooth_l1_attrs),
    .help = "loss = sum of |e| - beta / 2, or e^2 / (2 beta) below beta, e = chosen columns of x less the target",
    .infer = loss_infer,
    .backward = loss_backward,
    .flops_per_in = 1,
    ATT_CASES(loss_cases),
};

static att_status grad_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1 + INPUTS));
    ATT_TRY(att_rule_require_rank(infer, 0, "dloss", ATT_SAMPLE, 0));
    ATT_TRY(require_operands(infer, 1));
    ATT_TRY(att_rule_out(infer, infer->in[1].dtype, ATT_SAMPLE, infer->in[1 + X].shape));
    return att_rule_out(infer, infer->in[1].dtype, ATT_SAMPLE, infer->in[1 + TARGET].shape);
}

static const att_op_case grad_cases[] = {
    {.name = "classes", BETA(1), IN(SCALAR, SAMPLE(6, 12), SAMPLE(6, 4), INDICES(3, 6))},
    {.name = "absolute", BETA(0), IN(SCALAR, SAMPLE(5, 14), SAMPLE(5, 7), INDICES(2, 5))},
    {.name = "equal", BETA(0), IN(SCALAR, DRAWN(ATT_SAMPLE, 0, 1, 3, 4), DRAWN(ATT_SAMPLE, 0, 1, 3, 4), INDICES(1, 3))},
    {.name = "coco", BETA(1.0 / 9), IN(SCALAR, SAMPLE(512, 364), SAMPLE(512, 4), INDICES(91, 512)), .bench = true},
};

const att_op att_op_smooth_l1_grad = {
    .name = "smooth_l1_grad",
    .attrs_size = sizeof(att_smooth_l1_attrs),
    .help = "dx = dloss sign(e), or dloss e / beta below beta, in the chosen columns, dtarget the same times -1",
    .infer = grad_infer,
    .flops_per_out = 1,
    ATT_CASES(grad_cases),
};
