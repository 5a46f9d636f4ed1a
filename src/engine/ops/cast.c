#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

/* The output has the input's type until the plan sets another one. */
/* Differentiation runs while both types are still equal. */
static void cast_backward(att_backward *backward)
{
    att_backward_add_gradient(backward, 0, att_backward_gradient(backward, 0));
}

static const att_op_case cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "tiny", IN(SAMPLE(197, 192)), .bench = true},
};

const att_op att_op_cast = {
    .name = "cast",
    .help = "y = x in another type, rounded to nearest, ties to even",
    .infer = att_rule_infer_like_x,
    .backward = cast_backward,
    .autocast_in = 1,
    .autocast_out = 1,
    ATT_CASES(cases),
};
