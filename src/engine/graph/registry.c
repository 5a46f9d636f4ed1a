#include "engine/graph/registry.h"

#include <string.h>

#include "base/core/context.h"

const att_op *att_registry_op(const att_context *context, const char *name)
{
    for (const att_op *const *op = att_context_registry(context)->ops; *op; op++)
        if (strcmp((*op)->name, name) == 0)
            return *op;
    return NULL;
}
