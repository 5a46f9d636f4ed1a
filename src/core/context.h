/* core/context.h - making a context, for the one file that knows the lists of ops and kernels; and what programs
 * register with one. */
#ifndef ATT_CORE_CONTEXT_H
#define ATT_CORE_CONTEXT_H

#include <attscope/context.h>

#include "core/export.h"

/* Defined in graph/registry.h; core only carries the pointer. */
struct att_registry;

/* As att_context_create(), with a given registry, which must outlive the context. */
att_status att_context_create_with(const att_settings *settings, const struct att_registry *registry,
                                   att_context **context);
ATT_FOR_LAB const struct att_registry *att_context_registry(const att_context *context);

/* What programs registered with the context, in that order. core/catalog.h gives it a meaning. */
typedef struct att_registered {
    const void *kind, *descriptor;
} att_registered;
typedef struct att_registered_list {
    att_registered *items;
    int count, capacity;
} att_registered_list;
const att_registered_list *att_context_registered(const att_context *context);
/* Both pointers are kept. ERR_MEMORY. */
att_status att_context_register(att_context *context, const void *kind, const void *descriptor);

#endif
