/* hub/repository.h - finds the weights of a repository of the Hub, in the cache or on the Hub. */
#ifndef ATT_HUB_REPOSITORY_H
#define ATT_HUB_REPOSITORY_H

#include "networks/hub/name.h"
#include "networks/hub/settings.h"

/* Writes the path of the file of weights. Errors: as att_hub_find() (attscope/hub.h). */
att_status att_hub_repository_find(att_context *context, const att_hub_settings *settings, const att_hub_name *name,
                                   char *path, size_t size);

#endif
