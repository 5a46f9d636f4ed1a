/* backend/plugin.h - a backend in a plugin (core/plugin.h), which is loaded when a plan, weights or an update ask for
 * it.
 *
 * A plugin is a shared object that exports one att_backend_plugin under the name ATT_BACKEND_PLUGIN_SYMBOL. It is
 * linked with a copy of the folders that kernels use, so it needs nothing of the program that loads it.
 */
#ifndef ATT_BACKEND_PLUGIN_H
#define ATT_BACKEND_PLUGIN_H

#include "engine/backend/backend.h"

#define ATT_BACKEND_PLUGIN_SYMBOL "att_backend_plugin_descriptor"

typedef struct att_backend_plugin {
    const char *version; /* ATT_VERSION: a plugin of another version is refused */
    const att_backend *backend;
    /* Finds the device and opens what the kernels need; does nothing if that has been done. */
    att_status (*start)(att_context *context);
} att_backend_plugin;

/* Loads the plugin of a backend, which then stays loaded. ERR_UNSUPPORTED, with the reason in the message, if it is not
 * installed, does not load, is of another version, or finds no device. */
att_status att_backend_load(att_context *context, const char *name, const att_backend **backend);

#endif
