#include "engine/ops/combine.h"

#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

enum { X, Z, IN_COUNT };

att_value att_combine(att_graph *graph, double a, att_value x, double b, att_value z)
{
    att_combine_attrs attrs = {.a = a, .b = b};
    att_value in[IN_COUNT] = {x, z};
    return att_emit(graph, "combine", &attrs, in, IN_COUNT, NULL);
}

static att_status combine_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(att_rule_require(infer, X, "x", ATT_SAMPLE));
    if (att_desc_present(&infer->in[Z]))
        ATT_TRY(att_rule_require_like(infer, Z, "z", ATT_SAMPLE, X));
    return att_rule_out(infer, infer->in[X].dtype, ATT_SAMPLE, infer->in[X].shape);
}

static void combine_backward(att_backward *backward)
{
    const att_combine_attrs *attrs = att_backward_attrs(backward);
    const double factors[IN_COUNT] = {attrs->a, attrs->b};
    att_graph *graph = att_backward_graph(backward);
    for (int i = 0; i < IN_COUNT; i++)
        if (att_backward_needs_gradient(backward, i))
            att_backward_add_gradient(backward, i,
                                      att_combine(graph, factors[i], att_backward_gradient(backward, 0), 0, ATT_NONE));
}

#define FACTORS(x, z) ATTRS(combine, .a = (x), .b = (z))
static const att_op_case combine_cases[] = {
    {.name = "odd", FACTORS(0.7, -0.3), IN(SAMPLE(5, 7), SAMPLE(5, 7)), .gradient = true},
    {.name = "scalars", FACTORS(0.5, 0.5), IN(SCALAR, SCALAR)},
    {.name = "scaled", FACTORS(-2, 0), IN(SAMPLE(33), ABSENT), .gradient = true},
    {.name = "imagenet", FACTORS(1, -1), IN(SAMPLE(1000), SAMPLE(1000)), .bench = true},
};

const att_op att_op_combine = {
    .name = "combine",
    .attrs_size = sizeof(att_combine_attrs),
    .help = "y = a x + b z",
    .infer = combine_infer,
    .backward = combine_backward,
    .flops_per_out = 3, /* Two products and a sum. */
    ATT_CASES(combine_cases),
};
