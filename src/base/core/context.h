/* core/context.h - creates a context from a registry of ops and kernels, and lists the descriptors that programs
 * registered with a context. */
#ifndef ATT_CORE_CONTEXT_H
#define ATT_CORE_CONTEXT_H

#include <attscope/context.h>
#include <attscope/progress.h>

#include "base/core/export.h"

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

/* A condition for changing files through a context (io/file.h, store/database.h). check() is called before each change,
 * from any thread. If it fails, with a message about `path`, the change is not made. check NULL: no condition. */
typedef att_status (*att_write_check_fn)(const void *user, att_context *context, const char *path);
ATT_FOR_LAB void att_context_guard_writes(att_context *context, att_write_check_fn check, const void *user);
bool att_context_is_guarded(const att_context *context);
/* Calls check(). Without one, succeeds. */
att_status att_context_check_write(att_context *context, const char *path);

/* The function that shows the progress of downloads (attscope/hub.h). NULL: none. */
void att_context_set_progress(att_context *context, att_progress_fn show, void *user);
/* Calls it. Returns false if it asks to stop. */
bool att_context_show_progress(const att_context *context, const att_progress *progress);

#endif
