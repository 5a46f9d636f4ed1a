#include "engine/kernels/ref/list.h"

#include <stddef.h>

#define ATT_REF_ADDRESS(name) &att_ref_##name,
const att_kernel *const att_kernels_ref[] = {ATT_OP_LIST(ATT_REF_ADDRESS) NULL};
