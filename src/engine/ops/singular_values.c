#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_singular_values(att_graph *graph, att_value x)
{
    return att_emit(graph, "singular_values", NULL, &x, 1, NULL);
}

static int64_t count_of(att_shape shape)
{
    return shape.dims[0] < shape.dims[1] ? shape.dims[0] : shape.dims[1];
}

static att_status values_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SAMPLE, 2));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(count_of(infer->in[0].shape)));
}

/* Reduction to a bidiagonal matrix by Householder transformations (Golub, Van Loan); its singular values cost little.
 */
static void values_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    const double least = (double)count_of(in->shape), all = (double)att_shape_count(in->shape);
    cost->flops = 4 * all * least - 4.0 / 3 * least * least * least;
}

static const att_op_case values_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7))},
    {.name = "tall", IN(SAMPLE(33, 6))},
    {.name = "square", IN(SAMPLE(17, 17))},
    {.name = "one_token", IN(SAMPLE(1, 33))},
    {.name = "one_channel", IN(SAMPLE(9, 1))},
    {.name = "shifted", IN(DRAWN(ATT_SAMPLE, 1, 30, 17, 40))},
    {.name = "demo", IN(SAMPLE(50, 64)), .bench = true},
    {.name = "tiny", IN(SAMPLE(197, 192)), .bench = true},
};

const att_op att_op_singular_values = {
    .name = "singular_values",
    .help = "singular values of the tokens X [N, C], descending, over |X|_F",
    .infer = values_infer,
    .cost = values_cost,
    ATT_CASES(values_cases),
};
