#include "engine/ops/sum_samples.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

static att_status infer_sum(att_infer *infer)
{
    const att_sum_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "dy", infer->in->kind == ATT_BATCH ? ATT_BATCH : ATT_SAMPLE));
    att_shape in = infer->in[0].shape;
    if (attrs->axes < 0 || attrs->axes > in.rank)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d axes cannot be summed of %s", attrs->axes,
                             ATT_SHOWN(&infer->in[0]));
    att_shape out = {.rank = in.rank - attrs->axes};
    for (int i = 0; i < out.rank; i++)
        out.dims[i] = in.dims[in.rank - out.rank + i];
    return att_rule_out(infer, infer->in[0].dtype, ATT_SUMMED, out);
}

static const att_op_case cases[] = {
    {.name = "columns", ATTRS(sum, .axes = 1), IN(SAMPLE(5, 7))},
    {.name = "tokens", ATTRS(sum, .axes = 0), IN(SAMPLE(5, 7))},
    {.name = "middle", ATTRS(sum, .axes = 1), IN(SAMPLE(3, 5, 33))},
    {.name = "everything", ATTRS(sum, .axes = 2), IN(SAMPLE(5, 7))},
    {.name = "batch", ATTRS(sum, .axes = 0), IN(DRAWN(ATT_BATCH, 1, 0, 5, 33))},
    {.name = "large_values", ATTRS(sum, .axes = 1), IN(DRAWN(ATT_SAMPLE, 1e4, 0, 64, 17))},
    {.name = "tiny_position", ATTRS(sum, .axes = 0), IN(SAMPLE(197, 192)), .bench = true},
    {.name = "tiny_bias", ATTRS(sum, .axes = 1), IN(SAMPLE(197, 192)), .bench = true},
};

const att_op att_op_sum_samples = {
    .name = "sum_samples",
    .attrs_size = sizeof(att_sum_attrs),
    .help = "the sum over samples and the first `axes` axes; a value of the batch counts once per sample",
    .infer = infer_sum,
    .flops_per_in = 1,
    ATT_CASES(cases),
};
