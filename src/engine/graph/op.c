#include "engine/graph/op.h"

#include <stddef.h>

const void *att_op_case_attrs(const att_op *op, const att_op_case *definition)
{
    static const max_align_t zeros[16];
    if (definition->attrs || op->attrs_size == 0 || op->attrs_size > sizeof zeros)
        return definition->attrs;
    return zeros;
}
