#include "engine/ops/two_maps_rule.h"

#include "engine/ops/rule.h"

att_status att_two_maps_infer_grad(att_infer *infer, const att_two_maps_rule *rule)
{
    ATT_TRY(att_rule_count(infer, GRAD_IN_COUNT));
    ATT_TRY(att_rule_require(infer, GRAD_DY, "dy", ATT_SAMPLE));
    ATT_TRY(rule->check_inputs(infer, GRAD_V));
    ATT_TRY(att_rule_require_shape(infer, GRAD_DY, "dy", ATT_SAMPLE, rule->out_shape(infer, GRAD_V)));
    for (int i = GRAD_V; i < GRAD_IN_COUNT; i++)
        att_rule_out(infer, infer->in[i].dtype, ATT_SAMPLE, infer->in[i].shape);
    return ATT_OK;
}

void att_two_maps_backward(att_backward *backward, const char *grad_op)
{
    att_value in[GRAD_IN_COUNT] = {att_backward_gradient(backward, 0)}, out[IN_COUNT];
    for (int i = 0; i < IN_COUNT; i++)
        in[GRAD_V + i] = att_backward_in(backward, i);
    att_emit(att_backward_graph(backward), grad_op, att_backward_attrs(backward), in, GRAD_IN_COUNT, out);
    if (att_backward_needs_gradient(backward, V))
        att_backward_add_gradient(backward, V, out[V]);
    for (int i = ROW_MAP; i <= COLUMN_MAP; i++)
        if (att_backward_needs_gradient(backward, i))
            att_rule_add_sum(backward, i, out[i], 3);
}
