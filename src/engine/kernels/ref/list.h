/* kernels/ref/list.h - the reference kernels: one for each operation (ops/list.h), in f64 arithmetic, not optimised. */
#ifndef ATT_KERNELS_REF_LIST_H
#define ATT_KERNELS_REF_LIST_H

#include "engine/backend/kernel.h"
#include "engine/ops/list.h"

#define ATT_REF_DECLARE(name) extern const att_kernel att_ref_##name;
ATT_OP_LIST(ATT_REF_DECLARE)
#undef ATT_REF_DECLARE

/* NULL-terminated. */
extern const att_kernel *const att_kernels_ref[];

#endif
