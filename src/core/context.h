/* core/context.h - making a context, for the one file that knows the lists of what is registered. */
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

#endif
