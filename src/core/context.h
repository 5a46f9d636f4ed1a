/* core/context.h - creates a context from a registry of ops and kernels, and lists the descriptors that programs
 * registered with a context. */
#ifndef ATT_CORE_CONTEXT_H
#define ATT_CORE_CONTEXT_H

#include <attscope/context.h>

#include "core/export.h"

/* Defined in graph/registry.h; core only stores the pointer. */
struct att_registry;

/* Like att_context_create(), with the given registry. The registry must outlive the context. */
att_status att_context_create_with(const att_settings *settings, const struct att_registry *registry,
                                   att_context **context);
ATT_FOR_LAB const struct att_registry *att_context_registry(const att_context *context);

/* The descriptors that programs registered with the context, in order of registration. `kind` is the address of the
 * descriptor's att_catalog (core/catalog.h). */
typedef struct att_registered {
    const void *kind, *descriptor;
} att_registered;
typedef struct att_registered_list {
    att_registered *items;
    int count, capacity;
} att_registered_list;
const att_registered_list *att_context_registered(const att_context *context);
/* Appends to the list. Both pointers must outlive the context. Error: ERR_MEMORY. */
att_status att_context_register(att_context *context, const void *kind, const void *descriptor);

#endif
