/* core/plugin.h - where plugins are: shared objects that are loaded when they are needed. */
#ifndef ATT_CORE_PLUGIN_H
#define ATT_CORE_PLUGIN_H

#include <limits.h>
#include <stdbool.h>

/* Writes the path of the plugin <name>.so and returns whether there is one. Plugins lie in the folder that the
 * environment's ATTSCOPE_PLUGINS names; else beside the library or program, or in the library folder of the prefix that
 * the program is installed below. */
bool att_plugin_find(const char *name, char path[PATH_MAX]);

#endif
