#include "engine/ops/list.h"

#include <stddef.h>

#define ATT_OP_ADDRESS(name) &att_op_##name,
const att_op *const att_ops[] = {ATT_OP_LIST(ATT_OP_ADDRESS) NULL};
