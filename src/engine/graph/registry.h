/* graph/registry.h - the operations and backends of a context. */
#ifndef ATT_GRAPH_REGISTRY_H
#define ATT_GRAPH_REGISTRY_H

#include "engine/graph/op.h"

struct att_backend; /* backend/backend.h */

typedef struct att_registry {
    const att_op *const *ops;                  /* NULL-terminated */
    const struct att_backend *const *backends; /* NULL-terminated */
} att_registry;

const att_op *att_registry_op(const att_context *context, const char *name);

#endif
