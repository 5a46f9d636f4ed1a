#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_tanh(att_graph *graph, att_value x)
{
    return att_emit(graph, "tanh", NULL, &x, 1, NULL);
}

static const att_op_case tanh_cases[] = {
    {.name = "odd", IN(SAMPLE(5, 7)), .gradient = true},
    {.name = "scalar", IN(SCALAR)},
    {.name = "tails", IN(DRAWN(ATT_SAMPLE, 6, 0, 40, 33))},
    {.name = "large_values", IN(DRAWN(ATT_SAMPLE, 1e6, 0, 5, 33))},
    {.name = "tiny", IN(SAMPLE(197, 768)), .bench = true},
};

/* The output stays f32. Near 1, bf16 has steps of 1/256, so that 1 - y^2 would lose all digits. */
const att_op att_op_tanh = {
    .name = "tanh",
    .help = "y = tanh(x)",
    .autocast_in = 1,
    .infer = att_rule_infer_like_x,
    .backward = att_rule_backward_y,
    .flops_per_out = 15, /* A rational function with degrees 11 and 10. */
    ATT_CASES(tanh_cases),
};

#define GRAD_IN(...) SAMPLE(__VA_ARGS__), DRAWN(ATT_SAMPLE, 0.4, 0, __VA_ARGS__)
static const att_op_case grad_cases[] = {
    {.name = "odd", IN(GRAD_IN(5, 7))},
    {.name = "saturated", IN(SAMPLE(5, 33), DRAWN(ATT_SAMPLE, 0, 1, 5, 33))},
    {.name = "tiny", IN(GRAD_IN(197, 768)), .bench = true},
};

const att_op att_op_tanh_grad = {
    .name = "tanh_grad",
    .help = "dx = dy (1 - y^2)",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = att_rule_infer_grad_y,
    .flops_per_out = 3,
    ATT_CASES(grad_cases),
};
