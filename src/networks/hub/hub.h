/* hub/hub.h - att_hub_find() with given settings. */
#ifndef ATT_HUB_HUB_H
#define ATT_HUB_HUB_H

#include <attscope/hub.h>

#include "networks/hub/settings.h"

/* As att_hub_find(), with settings that do not come from the environment. */
att_status att_hub_find_with(att_context *context, const att_hub_settings *settings, const char *name, char *path,
                             size_t size);

#endif
