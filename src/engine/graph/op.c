#include "engine/graph/op.h"

#include <stddef.h>

const void *att_op_case_attrs(const att_op *op, const att_op_case *definition)
{
    static const max_align_t zeros[16];
    if (definition->attrs || op->attrs_size == 0 || op->attrs_size > sizeof zeros)
        return definition->attrs;
    return zeros;
}

void att_op_cost(const att_op *op, const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    bool per_in = op->flops_per_in > 0;
    const att_desc *of = per_in ? in : out;
    double each = per_in ? op->flops_per_in : op->flops_per_out > 0 ? op->flops_per_out : 1;
    if (op->cost) {
        op->cost(in, out, attrs, cost);
        cost->flops = cost->flops > 0 ? cost->flops : 2 * cost->macs;
    } else if (att_desc_present(of))
        cost->flops = each * (double)att_shape_count(of->shape);
}
